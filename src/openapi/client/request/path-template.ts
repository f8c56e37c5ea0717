import type { ParameterPlan } from "../plan.ts";
import { escapeLiteral, escapeText } from "./escape.ts";
import { invalidInput, notCallable, shown } from "./invalid-input.ts";
import { isAbsent } from "./parameter-value.ts";
import { createPathWriter } from "./path-parameter.ts";
import { readInput } from "./read-input.ts";

/** A path of a document, ready to be filled in. */
export interface PathTemplate {
  write(input: object): string;
  /** What stands behind a `?` in the path: no document should have it, and some do. */
  writeQuery?(input: object): string;
}

/** `.` and `..` as URL parsers see them. */
const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:\/|$)/i;

/** Tells whether a path has segments that lead elsewhere. */
export function hasDotSegment(path: string): boolean {
  return DOT_SEGMENT.test(path);
}

/** Reads a path once; a fragment is left out. `basePath` comes first and does not end with `/`. */
export function createPathTemplate(
  path: string,
  parameters: readonly ParameterPlan[],
  basePath: string,
): PathTemplate {
  const [address = "", query] = splitOutsideBraces(path);
  const begun = address.startsWith("/") ? address : `/${address}`;
  const pieces = toPieces(begun, parameters);
  const write = (input: object) => {
    const filled = basePath + fill(pieces, input);
    if (hasDotSegment(filled)) throw dotSegment(parameters);
    return filled;
  };
  if (query === undefined || query === "") return { write };
  // What may stay in a path may separate here.
  const escaped = parameters.map((parameter) => ({ ...parameter, allowReserved: false }));
  const queryPieces = toPieces(query, escaped);
  return { write, writeQuery: (input) => fill(queryPieces, input) };
}

interface Piece {
  readonly text: string;
  readonly key?: string;
  readonly writeValue?: (value: unknown) => string;
}

function fill(pieces: readonly Piece[], input: object): string {
  let filled = "";
  for (const { text, key, writeValue } of pieces) {
    if (key === undefined || writeValue === undefined) {
      filled += text;
      continue;
    }
    const value = readInput(input, key);
    if (isAbsent(value)) throw invalidInput(key, "is missing");
    filled += writeValue(value);
  }
  return filled;
}

/** Splits fixed text from `{names}`; braces that name no parameter are text. */
function toPieces(template: string, parameters: readonly ParameterPlan[]): Piece[] {
  const byName = new Map(parameters.filter((each) => each.in === "path").map((each) => [each.name, each]));
  const pieces: Piece[] = [];
  for (const part of template.split(/(\{[^{}]*\})/)) {
    const parameter = part.startsWith("{") ? byName.get(part.slice(1, -1)) : undefined;
    if (parameter !== undefined) {
      pieces.push({ text: "", key: parameter.key, writeValue: quickly(parameter) });
    } else if (part !== "") pieces.push({ text: escapeLiteral(part) });
  }
  return pieces;
}

/** Plain text in the plain style needs nothing but escaping. */
function quickly(parameter: ParameterPlan): (value: unknown) => string {
  const write = createPathWriter(parameter);
  const { key, style, allowReserved, contentType } = parameter;
  if (style !== "simple" || allowReserved || contentType !== undefined) return write;
  return (value) => (typeof value === "string" && value !== "" ? escapeText(value, key) : write(value));
}

/** The path and the query of a template, without its fragment; `?` and `#` inside of braces belong to a name. */
function splitOutsideBraces(path: string): [string, string?] {
  const plain = path.replace(/\{[^{}]*\}/g, (name) => "x".repeat(name.length));
  const hash = plain.indexOf("#");
  const end = hash === -1 ? path.length : hash;
  const mark = plain.slice(0, end).indexOf("?");
  return mark === -1 ? [path.slice(0, end)] : [path.slice(0, mark), path.slice(mark + 1, end)];
}

function dotSegment(parameters: readonly ParameterPlan[]) {
  const keys = parameters.filter((each) => each.in === "path").map((each) => each.key);
  const [only] = keys;
  if (only === undefined) return notCallable('The path holds "." or "..", which leads elsewhere.');
  if (keys.length === 1)
    return invalidInput(only, 'makes a segment "." or ".." of the path, which leads elsewhere');
  const names = keys.slice(0, 5).map(shown).join(", ");
  return invalidInput(
    only,
    `or another of ${names} makes a segment "." or ".." of the path, which leads elsewhere`,
  );
}
