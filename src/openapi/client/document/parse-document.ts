import { decodeText } from "./decode-text.ts";
import { jsonFaultAt } from "./json-fault.ts";

/** A document that was read, and whether its text names other files. */
export interface ParsedDocument {
  readonly value: unknown;
  /** False only where no reference can lead out of the document. */
  readonly mayReferOut: boolean;
}

/** Aliases may multiply what YAML says this many times. */
const MAX_ALIASES = 1_000;
const REFERS_OUT = /"\$ref"\s*:\s*"[^#"]/;
const YAML_NAME = /\.ya?ml$/i;

/** Reads the bytes of a JSON or YAML document; `name` is what errors call it. */
export async function parseDocument(bytes: Buffer, name: string): Promise<ParsedDocument> {
  const text = decodeText(bytes, looksLikeJson(bytes));
  if (text === undefined) throw new Error(`${name} is not UTF-8 text; save it as UTF-8.`);
  if (text.trim() === "") throw new Error(`${name} is empty.`);
  if (!looksLikeJson(bytes)) return { value: await parseYaml(text, name), mayReferOut: true };
  try {
    return { value: JSON.parse(text), mayReferOut: REFERS_OUT.test(text) };
  } catch (error) {
    const original = decodeText(bytes, false) ?? text;
    if (YAML_NAME.test(name)) return { value: await parseYaml(original, name), mayReferOut: true };
    throw new Error(`${name} is not valid JSON: ${describeJsonError(original)}`, { cause: error });
  }
}

function looksLikeJson(bytes: Buffer): boolean {
  const start = bytes
    .subarray(0, 1_024)
    .toString("utf8")
    .replace(/^\uFEFF/, "")
    .trimStart();
  return start.startsWith("{") || start.startsWith("[");
}

/** Says where the text of the file is broken, which what `JSON.parse` throws does not. */
function describeJsonError(text: string): string {
  const at = jsonFaultAt(text);
  const before = text.slice(0, at);
  const line = before.split("\n").length;
  const column = at - before.lastIndexOf("\n");
  const what = at >= text.length ? "it ends too early" : `unexpected ${JSON.stringify(text.charAt(at))}`;
  return `${what}, at line ${line}, column ${column}.`;
}

async function parseYaml(text: string, name: string): Promise<unknown> {
  const { parseDocument: parse } = await import("yaml");
  try {
    const document = parse(text, { version: "1.2", schema: "core", merge: true, uniqueKeys: true });
    const [problem] = document.errors;
    if (problem !== undefined) {
      const [place] = problem.linePos ?? [];
      const reason = problem.message.split("\n", 1)[0]?.replace(/ at line \d+, column \d+:?$/, "");
      throw new YamlFault(
        place === undefined ? `${reason}` : `${reason}, at line ${place.line}, column ${place.col}`,
      );
    }
    return document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (error) {
    throw new Error(`${name} is not valid YAML: ${describeYamlError(error)}.`, { cause: error });
  }
}

/** What the reader of YAML has to say about a text. */
class YamlFault extends Error {
  override readonly name = "YamlFault";
}

function describeYamlError(error: unknown): string {
  if (error instanceof YamlFault) return error.message;
  if (error instanceof RangeError) return "it is nested too deeply";
  if (error instanceof Error && error.message.includes("alias count"))
    return "its aliases multiply without bounds";
  return "it cannot be read";
}
