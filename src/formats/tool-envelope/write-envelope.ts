import { isValueTooDeep } from "../../core/json/json-depth.ts";
import { isLeftOut } from "../../core/json/json-text.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { FormatError } from "../format-error.ts";
import { toJsonPiece, toJsonText } from "../json-text.ts";
import { Base64Writer, toBase64Text } from "./base64-writer.ts";

/** Items from which on a list is written in parts. */
const LONG_LIST = 64;

/** Characters of one part: long enough to be worth a call, short enough to be allocated cheaply. */
const PART_CHARACTERS = 32_768;

/** Writes an envelope as base64 of its compact JSON, after a prefix. */
export function writeEnvelope(
  prefix: string,
  envelope: { readonly payload: unknown; readonly [member: string]: unknown },
): string {
  if (!hasLongList(envelope.payload)) return toBase64Text(prefix, toJsonText(envelope));
  const writer = new Base64Writer(prefix);
  writeMembers(writer, envelope, 2);
  const written = writer.finish();
  // Each piece is within the limit by itself.
  if (!isValueTooDeep(envelope, written.length)) return written;
  throw new FormatError("not_json", "The value cannot be written: it is nested too deeply to be read again.");
}

/** Is a long list, or holds one, and nothing on the way says itself how it is written. */
function hasLongList(value: unknown): boolean {
  return isLongList(value) || holdsLongList(value);
}

function holdsLongList(value: unknown): boolean {
  if (!isPlainObject(value) || "toJSON" in value) return false;
  let isLong = false;
  for (const key in value) {
    const member = value[key];
    if (isWriter(member)) return false;
    isLong ||= isLongList(member);
  }
  return isLong;
}

function isLongList(value: unknown): value is readonly unknown[] {
  if (!Array.isArray(value) || value.length < LONG_LIST) return false;
  return Object.getPrototypeOf(value) === Array.prototype && !("toJSON" in value) && !value.some(isWriter);
}

/** Says itself how it is written, and may ask under which key: which the pieces of a list do not know. */
function isWriter(value: unknown): boolean {
  return typeof value === "object" && value !== null && "toJSON" in value;
}

/** Writes an object member by member, so many levels down. */
function writeMembers(
  writer: Base64Writer,
  value: { readonly [member: string]: unknown },
  levels: number,
): void {
  let separator = "{";
  for (const key of Object.keys(value)) {
    const member = value[key];
    if (isLeftOut(member)) continue;
    writer.add(`${separator}${JSON.stringify(key)}:`);
    separator = ",";
    if (isLongList(member)) writeList(writer, member);
    else if (levels > 1 && holdsLongList(member)) writeMembers(writer, member as typeof value, levels - 1);
    else writer.add(toJsonPiece(member));
  }
  writer.add(separator === "{" ? "{}" : "}");
}

/** Writes a list some items at a time, as many as make a part of the right length. */
function writeList(writer: Base64Writer, list: readonly unknown[]): void {
  let separator = "[";
  let count = LONG_LIST;
  for (let from = 0; from < list.length; ) {
    const text = toJsonPiece(Array.prototype.slice.call(list, from, from + count));
    // Apart, because joining them would copy the longer one.
    writer.add(separator);
    writer.add(text.slice(1, -1));
    separator = ",";
    from += count;
    count = Math.max(1, Math.ceil((count * PART_CHARACTERS) / text.length));
  }
  writer.add("]");
}
