import { issueWords } from "../../../core/schema/schema-issue.ts";
import type { EnvelopeView, ResultView } from "../../protocol.ts";
import type { TreeMark, TreeMarks } from "../parts/json-tree.tsx";
import { listIn, memberOf, membersIn, shownText } from "../parts/show-json.ts";

/** What an envelope tells of itself, read with care: nothing is taken for what it is not. */
export interface ResultFactsView {
  readonly isError: boolean;
  readonly durationMs: number | undefined;
  readonly attempts: number | undefined;
  readonly obtained: string | undefined;
  /** How many places were changed to fit the schema, in words. */
  readonly changes: readonly string[];
  /** How many places miss the schema. */
  readonly violations: number;
  /** Where both are, by pointer into the data. */
  readonly marks: TreeMarks;
  /** The rest, for people: names and texts. */
  readonly told: readonly (readonly [name: string, text: string])[];
  readonly details: { readonly value: unknown } | undefined;
}

const CHANGES = [
  ["stripped", { tone: "warn", word: "stripped" }],
  ["defaulted", { tone: "note", word: "filled in" }],
  ["converted", { tone: "accent", word: "converted" }],
] as const;
const TOLD = [
  ["code", "Code"],
  ["message", "Message"],
  ["event", "Event"],
  ["cursor", "Cursor"],
] as const;

/** Reads the facts of an envelope. */
export function factsOf({ meta }: EnvelopeView): ResultFactsView {
  const facts = membersIn(meta["waybill"]);
  const report = membersIn(facts["normalization"]);
  const marks = new Map<string, TreeMark[]>();
  const add = (pointer: unknown, mark: TreeMark): number => {
    if (typeof pointer !== "string") return 0;
    const here = marks.get(pointer) ?? [];
    marks.set(pointer, here);
    return here.push(mark);
  };
  const changes = CHANGES.flatMap(([kind, mark]) => {
    const count = listIn(report[kind]).filter((pointer) => add(pointer, mark)).length;
    return count === 0 ? [] : [`${count.toLocaleString("en")} ${mark.word}`];
  });
  const more = numberIn(report["omitted"]) ?? 0;
  const sequence = numberIn(facts["sequence"]);
  const violations = listIn(facts["violations"]).filter((violation) => {
    const { pointer, expected, found } = membersIn(violation);
    const words = issueWords({ expected: shownText(expected), found: shownText(found) });
    const word = `misses its schema: ${words}`;
    return add(pointer, { tone: "bad", word });
  }).length;
  const told = [
    ...TOLD.map(([key, name]) => [name, facts[key]]),
    // People count from one.
    ["Value no.", sequence === undefined ? undefined : sequence + 1],
    ["Next page", membersIn(facts["page"])["next"]],
  ];
  return {
    isError: meta["isError"] === true,
    durationMs: numberIn(facts["durationMs"]),
    attempts: numberIn(facts["attempts"]),
    obtained: typeof facts["obtained"] === "string" ? facts["obtained"] : undefined,
    changes: more > 0 ? [...changes, `${more.toLocaleString("en")} more`] : changes,
    violations,
    marks,
    told: told.flatMap(([name, value]) =>
      value === undefined ? [] : [[shownText(name), shownText(value)] as const],
    ),
    details: memberOf(facts, "details"),
  };
}

function numberIn(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

const OBTAINED: ReadonlyMap<string, string> = new Map([
  ["structured-content", "from its structured content"],
  ["envelope-block", "from an envelope in its content"],
  ["contract-json", "from a block of JSON it promised"],
  ["text-json", "from JSON in its text"],
  ["content", "its content as it is"],
  ["body", "from the body of the answer"],
  ["members", "the members of the result"],
  ["return-value", "what the handler returned"],
]);

/** Says in words how the data was found. */
export function obtainedWords(obtained: string): string {
  return OBTAINED.get(obtained) ?? obtained;
}

/** What came back before anything was made of it. */
export function rawOf({ envelope, rawData }: ResultView): unknown {
  const { data, meta } = envelope;
  const first = rawData === undefined ? data : rawData;
  switch (meta.source) {
    case "mcp":
      return pick(meta, ["content", "structuredContent", "isError", "_meta"]);
    case "http":
      return { ...pick(meta, ["statusCode", "headers", "setCookie"]), body: first };
    case "local":
      return first;
  }
}

function pick(
  from: Readonly<Record<string, unknown>>,
  names: readonly string[],
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(names.flatMap((name) => (Object.hasOwn(from, name) ? [[name, from[name]]] : [])));
}
