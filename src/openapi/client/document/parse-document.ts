import { findJsonFault } from "../../../core/json/json-fault.ts";
import { decodeText } from "./decode-text.ts";
import { parseYaml } from "./parse-yaml.ts";

/** A document that was read, and whether its text names other files. */
export interface ParsedDocument {
  readonly value: unknown;
  /** False only where no reference can lead out of the document. */
  readonly mayReferOut: boolean;
}

const REFERS_OUT = /"\$ref"\s*:\s*"[^#"]/;
const YAML_NAME = /\.ya?ml$/i;

/** Reads the bytes of a JSON or YAML document; `name` is what errors call it. */
export async function parseDocument(bytes: Buffer, name: string): Promise<ParsedDocument> {
  const text = decodeText(bytes, looksLikeJson(bytes));
  if (text === undefined) throw new Error(`${name} is not UTF-8 text; save it as UTF-8.`);
  if (text.trim() === "") throw new Error(`${name} is empty.`);
  refuseMarkup(text, name);
  if (!looksLikeJson(bytes)) return { value: await parseYaml(text, name), mayReferOut: true };
  try {
    return { value: JSON.parse(text), mayReferOut: REFERS_OUT.test(text) };
  } catch (error) {
    const original = decodeText(bytes, false) ?? text;
    if (YAML_NAME.test(name)) return { value: await parseYaml(original, name), mayReferOut: true };
    throw new Error(`${name} is not valid JSON: ${describeJsonError(original)}`, { cause: error });
  }
}

/** Pages that show a document are taken for the document itself. */
function refuseMarkup(text: string, name: string): void {
  const start = text.slice(0, 1_000).trimStart();
  if (!start.startsWith("<")) return;
  const what = start.startsWith("<?xml") ? "XML" : "an HTML page";
  throw new Error(
    `${name} is ${what}, not an OpenAPI document; give the place of the document itself, which is JSON or YAML.`,
  );
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
  const at = findJsonFault(text);
  const before = text.slice(0, at);
  const line = before.split("\n").length;
  const column = at - before.lastIndexOf("\n");
  const what = at >= text.length ? "it ends too early" : `unexpected ${JSON.stringify(text.charAt(at))}`;
  return `${what}, at line ${line}, column ${column}.`;
}
