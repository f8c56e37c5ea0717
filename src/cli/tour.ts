import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect, styleText } from "node:util";
import { ParcelBook } from "../../examples/parcel-office/parcel-book.ts";
import { parcelOperations } from "../../examples/parcel-office/parcel-operations.ts";
import {
  type AnyOperation,
  type CallErrorJSON,
  defineOperation,
  type ExecuteOptions,
  type Executor,
  OperationRegistry,
  type ResponseEnvelope,
  Type,
  toCallError,
} from "../index.ts";

/** Settings of `runTour`. */
interface TourOptions {
  readonly write: (text: string) => void;
  /** One line of JSON for each stop, for programs. @default false */
  readonly json?: boolean;
  /** @default false */
  readonly colors?: boolean;
}

/** One call of the tour: what is asked, and why the answer looks as it does. */
interface Stop {
  readonly title: string;
  /** @default "execute" */
  readonly method?: "execute" | "subscribe";
  readonly operation: string;
  readonly input: unknown;
  readonly options?: ExecuteOptions;
  /** What to take away from it. */
  readonly why: string;
}

/** What a stop came to: envelopes, or the one error instead of them. */
type StopAnswer =
  | { readonly outcome: "ok" | "tool error"; readonly envelopes: readonly ResponseEnvelope[] }
  | { readonly outcome: "call error"; readonly error: CallErrorJSON };

/** The tour, in order: every outcome a call can have. */
const STOPS: readonly Stop[] = [
  {
    title: "A result, and the paper that travels with it",
    operation: "parcel.track",
    input: { id: "P-1001" },
    why: "The handler returned a plain object. The registry checked the input, checked the result, and wrapped it: data is what you asked for, meta says where it came from.",
  },
  {
    title: "A sloppy result, brought to its declared shape",
    operation: "archive.find",
    input: { id: "P-7" },
    why: 'The archive answered { id: "P-7", kg: "2.5", to: "Lisbon", internalNote: … }. What the output schema does not name was stripped, text that is a number was converted, a declared default was filled. Nothing is invented, and meta.waybill.normalization names every change.',
  },
  {
    title: "A tool error: it ran and reported an error",
    operation: "parcel.track",
    input: { id: "P-101" },
    why: "The handler returned toolError(…). That is an answer, so it comes back as an envelope, marked isError, with a code for programs and a sentence for people. The typed client of createClient() throws it instead, envelope attached.",
  },
  {
    title: "A call error: the input is wrong",
    operation: "parcel.book",
    input: { kg: "heavy", to: "" },
    why: "The handler never ran. The error says where (a JSON pointer), what was expected and what was found; correctable means that the caller can fix it.",
  },
  {
    title: "A call error: the caller may not",
    operation: "parcel.deliver",
    input: { id: 7 },
    options: { identity: { subject: "ada", scopes: ["parcels:read"] } },
    why: "Access is decided before the input is looked at: the id is wrong too, and nobody learns that without the scope.",
  },
  {
    title: "A call error: as far as you can see, there is no such operation",
    operation: "parcel.plan",
    input: {},
    why: "In this registry parcel.plan is there for other operations only. Calling it and listing the registry agree that it does not exist.",
  },
  {
    title: "A call error: it took too long",
    method: "subscribe",
    operation: "parcel.watch",
    input: { id: "P-1003" },
    options: { timeoutMs: 50 },
    why: "The parcel is still under way, so its subscription waits. The deadline reached the handler through its AbortSignal, and would have reached every call that handler had made. Retryable means that the same input may work later.",
  },
  {
    title: "A subscription: one envelope for each value",
    method: "subscribe",
    operation: "parcel.watch",
    input: { id: "P-1001" },
    why: "Each value is checked and wrapped like any other result, and numbered, so that a gap would show.",
  },
];

/** Calls one operation after the other and writes down what comes back. */
export async function runTour({ write, json = false, colors = false }: TourOptions): Promise<void> {
  const office = createTourRegistry();
  if (!json) write(`A tour of Waybill: ${STOPS.length} calls into one registry, every outcome there is.\n`);
  for (const [index, stop] of STOPS.entries()) {
    const answer = await answerOf(office, stop);
    const step = index + 1;
    const { title, method = "execute", operation, input, options, why } = stop;
    const line = { step, title, method, operation, input, ...(options && { options }), ...answer, why };
    write(json ? `${JSON.stringify(line)}\n` : showStop(stop, answer, { step, colors }));
  }
  if (!json) write("\nYour own first registry is 20 lines: see README.md.\n");
}

/** What the tour changes of the parcel office: one operation wants a scope, one is for other operations only. */
const CHANGES: Readonly<Record<string, Partial<AnyOperation>>> = {
  "parcel.deliver": { access: { scopes: { allOf: ["parcels:deliver"] } } },
  "parcel.plan": { visibility: "internal" },
};

/** Makes a registry of the parcel office that is there without a config, on a book of its own, and an older system beside it. */
function createTourRegistry(): Executor {
  // Nothing is at that path, and the tour writes nothing: the book is as it is before anybody has written in it.
  const book = new ParcelBook(join(tmpdir(), `waybill-tour-${randomUUID()}`, "parcels.json"));
  const office = parcelOperations(book).map((one) => ({
    ...one,
    ...CHANGES[`${one.namespace}.${one.name}`],
  }));
  return new OperationRegistry([...office, findArchived]);
}

/** Stands for an older system: a number kept as text, a note that is nobody's business, a field it does not know. */
const ARCHIVE: Readonly<Record<string, object>> = {
  "P-7": { id: "P-7", kg: "2.5", to: "Lisbon", internalNote: "fragile customer" },
};

const findArchived = defineOperation({
  namespace: "archive",
  name: "find",
  version: "1.0.0",
  type: "query",
  description: "Finds a parcel in the archive.",
  inputSchema: Type.Object({ id: Type.String() }),
  outputSchema: Type.Object({
    id: Type.String(),
    kg: Type.Number(),
    to: Type.String(),
    status: Type.String({ default: "in transit" }),
  }),
  // The archive promises nothing about its rows; the output schema is what callers can rely on.
  handler: ({ id }) => ARCHIVE[id] as never,
});

async function answerOf(office: Executor, stop: Stop): Promise<StopAnswer> {
  try {
    const envelopes: ResponseEnvelope[] = [];
    if (stop.method === "subscribe") {
      for await (const envelope of office.subscribe(stop.operation, stop.input, stop.options))
        envelopes.push(envelope);
    } else {
      envelopes.push(await office.execute(stop.operation, stop.input, stop.options));
    }
    return { outcome: envelopes.some((envelope) => envelope.meta.isError) ? "tool error" : "ok", envelopes };
  } catch (thrown) {
    return { outcome: "call error", error: toCallError(thrown).toJSON() };
  }
}

type Paint = Parameters<typeof styleText>[0];

const WIDTH = 100;
const LABEL = 12;
const OUTCOME_COLORS = { ok: "green", "tool error": "yellow", "call error": "red" } as const;

/** Writes one stop for people: the call, what came back, and why. */
function showStop(
  stop: Stop,
  answer: StopAnswer,
  { step, colors }: { readonly step: number; readonly colors: boolean },
): string {
  const paint = (style: Paint, text: string): string => (colors ? styleText(style, text) : text);
  const labelled = (label: string, value: unknown): string => row(label, show(value, colors));
  const lines = [`\n${paint("bold", `${step}/${STOPS.length}  ${stop.title}`)}`, row("call", callText(stop))];
  const outcome = row("outcome", paint(OUTCOME_COLORS[answer.outcome], answer.outcome));
  if (answer.outcome === "call error") lines.push(outcome, labelled("error", answer.error));
  else
    lines.push(
      outcome,
      ...answer.envelopes.flatMap(({ data, meta }) => [labelled("data", data), labelled("meta", meta)]),
    );
  lines.push(row("why", wrap(stop.why)));
  return `${lines.join("\n")}\n`;
}

function callText({ method = "execute", operation, input, options }: Stop): string {
  const given = [show(operation, false), show(input, false), ...(options ? [show(options, false)] : [])];
  return `registry.${method}(${given.join(", ")})`;
}

function show(value: unknown, colors: boolean): string {
  return inspect(value, { depth: null, colors, breakLength: WIDTH - LABEL, compact: 3 });
}

function row(label: string, text: string): string {
  return `     ${label.padEnd(LABEL - 5)} ${text.replaceAll("\n", `\n${" ".repeat(LABEL + 1)}`)}`;
}

function wrap(text: string): string {
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines[lines.length - 1] ?? "";
    if (last !== "" && last.length + word.length >= WIDTH - LABEL) lines.push(word);
    else lines[lines.length - 1] = last === "" ? word : `${last} ${word}`;
  }
  return lines.join("\n");
}
