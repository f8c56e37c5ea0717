import type { Document, Node, Pair, YAMLError } from "yaml";
import { type ConfigPath, quote } from "./config-path.ts";
import { TextMistake } from "./json-text-map.ts";

/** What a YAML text holds, and where. */
export interface YamlText {
  readonly value: unknown;
  /** What is odd about the text, and where. */
  readonly warnings: readonly TextMistake[];
  /** Where a value or the name of a member begins; for what is not there, where the nearest thing around it does. */
  offsetOf(path: ConfigPath, at: "key" | "value"): number;
}

/** Reads YAML 1.2 with merge keys; throws a `TextMistake` for the first thing that is wrong. */
export async function readYamlText(text: string): Promise<YamlText> {
  const yaml = await import("yaml");
  let document: Document.Parsed;
  let value: unknown;
  try {
    document = yaml.parseDocument(text, { merge: true, prettyErrors: false, logLevel: "error" });
    const [error] = document.errors;
    if (error?.code === "MULTIPLE_DOCS")
      throw new TextMistake("A config is one YAML document; a second one begins here.", error.pos[0]);
    if (error !== undefined) throw toMistake(error, text);
    value = document.toJS({ maxAliasCount: 100 });
  } catch (thrown) {
    if (thrown instanceof TextMistake) throw thrown;
    // Aliases that multiply, or nesting that leaves no stack.
    throw new TextMistake("The config is nested too deeply, or has aliases that make too much of it.", 0);
  }
  const warnings = document.warnings.map(({ message, pos }) => new TextMistake(toSentence(message), pos[0]));
  const resolve = (node: unknown): unknown => (yaml.isAlias(node) ? node.resolve(document) : node);
  const step = (node: unknown, part: string | number): { key?: Node; value: unknown } | undefined => {
    const at = resolve(node);
    if (yaml.isSeq(at)) return typeof part === "number" ? { value: at.items[part] } : undefined;
    if (!yaml.isMap(at)) return undefined;
    const isMeant = ({ key }: Pair): boolean => String(yaml.isScalar(key) ? key.value : key) === String(part);
    const pair = at.items.find(isMeant);
    return pair === undefined ? undefined : { key: pair.key as Node, value: pair.value };
  };
  return {
    value,
    warnings,
    offsetOf(path, at) {
      let offset = 0;
      let node: unknown = document.contents;
      for (const [index, part] of path.entries()) {
        const next = step(node, part);
        if (next === undefined) break;
        const isKey = at === "key" && index === path.length - 1;
        offset = startOf(isKey ? next.key : next.value) ?? startOf(next.key) ?? offset;
        node = next.value;
      }
      return offset;
    },
  };
}

/** A reference without quotes is taken for the beginning of a map where braces or brackets are around it. */
function toMistake({ message, pos: [at] }: YAMLError, text: string): TextMistake {
  if (text[at] !== "{" || text[at - 1] !== "$") return new TextMistake(toSentence(message), at);
  const said = "Within braces or brackets a value with a reference stands in quotes";
  const [reference] = /^\{[^{}\n]{0,80}\}/.exec(text.slice(at, at + 100)) ?? ["{NAME}"];
  return new TextMistake(`${said}; write ${quote(`$${reference}`)}.`, at - 1);
}

function startOf(node: unknown): number | undefined {
  return (node as Partial<Node> | null | undefined)?.range?.[0];
}

function toSentence(message: string): string {
  const line = message.split("\n", 1)[0] as string;
  return line.endsWith(".") ? line : `${line}.`;
}
