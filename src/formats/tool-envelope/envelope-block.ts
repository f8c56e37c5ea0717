import { countOpenings, isLeftOut, isPlainObject, isValueTooDeep } from "../../core/json/json-value.ts";
import { isObject } from "../../core/schema/json-schema.ts";
import { withUnknown } from "../carrier.ts";
import { FormatError, parseFormatJson, writeFormatJson, writeFormatPiece } from "../format-error.ts";
import {
  Base64Writer,
  fromBase64Text,
  fromUtf8,
  hasStrayBits,
  paddingOf,
  toBase64Text,
} from "./base64-text.ts";

/** What the second block of a version 1 envelope begins with. */
export const ENVELOPE_PREFIX = "__ENVELOPE_V1__:";

/** Bounds on what is read, with their defaults. */
export const ENVELOPE_LIMITS = {
  /** Bytes of JSON in one envelope block. */
  bytes: 16_777_216,
} as const;

/** Who made an envelope, when, and to which version of the format. */
export interface ToolEnvelopeMeta {
  readonly tool: string;
  /** ISO 8601. */
  readonly ts: string;
  readonly version: number;
  readonly [unknown: string]: unknown;
}

/** What an envelope block holds. */
export interface ToolEnvelope<T = unknown> {
  readonly payload: T;
  readonly meta: ToolEnvelopeMeta;
}

/** Departures from RFC 4648 and UTF-8 that a lenient reader puts up with. */
export type Tolerated = "whitespace" | "url_alphabet" | "missing_padding" | "stray_bits" | "bom";

/** An envelope as it was read. */
export interface ParsedEnvelope<T = unknown> extends ToolEnvelope<T> {
  /** Top-level fields the format does not define; absent when there are none. */
  readonly extra?: Readonly<Record<string, unknown>>;
  /** What a strict reader would have refused; absent when there is nothing. */
  readonly tolerated?: readonly Tolerated[];
}

/** How strictly a block is read. */
export interface EnvelopeBlockOptions {
  /** Puts up with the departures `Tolerated` names, and reports them. @default false */
  readonly lenient?: boolean | undefined;
  /** Bytes of JSON; a larger block is refused before it is decoded. @default 16 MiB */
  readonly maxBytes?: number | undefined;
  /**
   * Decides about versions: that of the prefix, and where the prefix says 1 a later one in `meta`, as writers have it that never
   * change the prefix. @default version 1 alone
   */
  readonly acceptVersion?: ((version: number) => boolean) | undefined;
}

const MARKER = "__ENVELOPE_V";
const PREFIX = /^__ENVELOPE_V([1-9][0-9]{0,8})__:/;
const BOM = "\uFEFF";

/** Tells whether a text begins like an envelope block of any version. */
export function isEnvelopeBlock(text: string): boolean {
  return versionOf(text) !== undefined;
}

/** Reads an envelope block; every way to fail has its own `FormatError` code. */
export function parseEnvelopeBlock<T = unknown>(
  text: string,
  options: EnvelopeBlockOptions = {},
): ParsedEnvelope<T> {
  return readBlock(text, options) as ParsedEnvelope<T>;
}

/** Writes an envelope block; `meta.version` is 1, and unknown fields of `meta` come after the known. */
export function toEnvelopeBlock(
  payload: unknown,
  meta: { readonly tool: string; readonly ts: string; readonly [unknown: string]: unknown },
  extra?: Readonly<Record<string, unknown>>,
): string {
  if (payload === undefined || typeof payload === "function" || typeof payload === "symbol") {
    throw failure("not_json", "An envelope needs a payload that JSON can hold; use null for none.");
  }
  const { tool, ts } = meta;
  const known = { tool, ts, version: 1 };
  const envelope = { payload, meta: isKnown(meta) ? known : withUnknown(known, meta) };
  return writeEnvelope(ENVELOPE_PREFIX, extra === undefined ? envelope : withUnknown(envelope, extra));
}

/** Tells whether a meta has no fields but those every meta has. */
function isKnown(meta: object): boolean {
  for (const key in meta) if (key !== "tool" && key !== "ts" && key !== "version") return false;
  return true;
}

function readBlock(text: string, options: EnvelopeBlockOptions): ParsedEnvelope {
  const { lenient = false, maxBytes = ENVELOPE_LIMITS.bytes, acceptVersion = isVersionOne } = options;
  const version = versionOf(text);
  if (version === undefined) throw failure("not_an_envelope", "not an envelope block");
  if (!acceptVersion(version)) {
    throw failure(
      "unsupported_version",
      `Envelope version ${version} is not supported; pass acceptVersion to decide otherwise.`,
    );
  }
  const encoded = text.slice(text.indexOf(":") + 1);
  if (decodedLength(encoded) > maxBytes) {
    throw failure(
      "too_large",
      `The envelope block holds more than ${maxBytes} bytes; raise maxBytes to read it.`,
    );
  }
  const tolerated: Tolerated[] = [];
  const json = readJson(lenient ? straighten(encoded, tolerated) : encoded, lenient, tolerated);
  const envelope = readShape(json, version, acceptVersion);
  return tolerated.length > 0 ? { ...envelope, tolerated } : envelope;
}

/** The version in the prefix of a block; nothing when it has none. */
function versionOf(text: unknown): number | undefined {
  if (typeof text !== "string" || !text.startsWith(MARKER)) return undefined;
  if (text.startsWith(ENVELOPE_PREFIX)) return 1;
  const prefix = PREFIX.exec(text);
  return prefix === null ? undefined : Number(prefix[1]);
}

function isVersionOne(version: number): boolean {
  return version === 1;
}

/** Bytes a base64 text stands for, told from its length alone. */
function decodedLength(encoded: string): number {
  const { length } = encoded;
  return Math.floor((length * 3) / 4) - paddingOf(encoded);
}

function readJson(encoded: string, lenient: boolean, tolerated: Tolerated[]): unknown {
  const { text, openings } = readText(encoded);
  if (!text.startsWith(BOM)) return parseEnvelopeJson(text, openings);
  if (!lenient) throw failure("bad_utf8", "The JSON of the envelope block begins with a byte order mark.");
  tolerated.push("bom");
  return parseEnvelopeJson(text.slice(1), openings);
}

/** Apart from the parsing, so that the bytes are gone by then. */
function readText(encoded: string): { readonly text: string; readonly openings: number | undefined } {
  const bytes = fromBase64Text(encoded);
  if (bytes === undefined) {
    throw failure(
      "bad_base64",
      "The envelope block is not RFC 4648 base64: alphabet, padding or stray bits.",
    );
  }
  const text = fromUtf8(bytes);
  if (text === undefined) throw failure("bad_utf8", "The envelope block does not hold UTF-8.");
  return { text, openings: countOpenings(bytes) };
}

/** Rewrites base64 the way RFC 4648 wants it, naming what had to be changed; what cannot be saved is left as it is. */
function straighten(encoded: string, tolerated: Tolerated[]): string {
  let text = encoded;
  if (/[ \t\n\r]/.test(text)) {
    tolerated.push("whitespace");
    text = text.replace(/[ \t\n\r]+/g, "");
  }
  if (/[-_]/.test(text)) {
    tolerated.push("url_alphabet");
    text = text.replaceAll("-", "+").replaceAll("_", "/");
  }
  if (!text.endsWith("=") && text.length % 4 > 1) {
    tolerated.push("missing_padding");
    text = text.padEnd(text.length + 4 - (text.length % 4), "=");
  }
  if (text.length % 4 !== 0 || !hasStrayBits(text)) return text;
  const straight = clearStrayBits(text);
  if (straight !== text) tolerated.push("stray_bits");
  return straight;
}

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

function clearStrayBits(text: string): string {
  const padding = paddingOf(text);
  const at = text.length - padding - 1;
  const value = ALPHABET.indexOf(text.charAt(at));
  if (value < 0) return text;
  return text.slice(0, at) + ALPHABET.charAt(value & (padding === 1 ? ~3 : ~15)) + "=".repeat(padding);
}

function parseEnvelopeJson(json: string, openings: number | undefined): unknown {
  try {
    return parseFormatJson(json, openings);
  } catch (cause) {
    throw failure("bad_json", `The envelope block does not hold JSON. ${(cause as Error).message}`, cause);
  }
}

function readShape(
  value: unknown,
  version: number,
  acceptVersion: (version: number) => boolean,
): ParsedEnvelope {
  if (!isObject(value) || !Object.hasOwn(value, "payload") || !Object.hasOwn(value, "meta")) {
    throw failure("bad_shape", 'The envelope is not an object with "payload" and "meta".');
  }
  const { payload, meta } = value;
  if (!isEnvelopeMeta(meta)) {
    throw failure(
      "bad_shape",
      'The envelope\'s "meta" lacks "tool" (text), "ts" (text) or "version" (number).',
    );
  }
  if (meta.version !== version && !(isLater(meta.version, version) && acceptVersion(meta.version))) {
    throw failure(
      "version_mismatch",
      `The block's prefix says version ${version}, its meta says ${meta.version}.`,
    );
  }
  for (const key in value) if (key !== "payload" && key !== "meta") return withExtra(value, meta);
  return { payload, meta };
}

/** Behind the prefix of version 1, `meta` may say a later version. */
function isLater(version: number, prefix: number): boolean {
  return prefix === 1 && Number.isSafeInteger(version) && version > 1;
}

function withExtra(value: Record<string, unknown>, checked: ToolEnvelopeMeta): ParsedEnvelope {
  const { payload, meta: _, ...extra } = value;
  return { payload, meta: checked, extra };
}

function isEnvelopeMeta(meta: unknown): meta is ToolEnvelopeMeta {
  if (!isObject(meta)) return false;
  return hasOwn(meta, "tool", "string") && hasOwn(meta, "ts", "string") && hasOwn(meta, "version", "number");
}

function hasOwn(value: Record<string, unknown>, key: string, type: "string" | "number"): boolean {
  return Object.hasOwn(value, key) && typeof value[key] === type;
}

function failure(code: FormatError["code"], message: string, cause?: unknown): FormatError {
  return new FormatError(code, message, { format: "tool-envelope", ...(cause !== undefined && { cause }) });
}

/** Items from which on a list is written in parts. */
const LONG_LIST = 64;

/** Characters of one part: long enough to be worth a call, short enough to be allocated cheaply. */
const PART_CHARACTERS = 32_768;

/** Writes an envelope as base64 of its compact JSON, after a prefix. */
function writeEnvelope(
  prefix: string,
  envelope: { readonly payload: unknown; readonly [member: string]: unknown },
): string {
  if (!hasLongList(envelope.payload)) return toBase64Text(prefix, writeFormatJson(envelope));
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
    else writer.add(writeFormatPiece(member));
  }
  writer.add(separator === "{" ? "{}" : "}");
}

/** Writes a list some items at a time, as many as make a part of the right length. */
function writeList(writer: Base64Writer, list: readonly unknown[]): void {
  let separator = "[";
  let count = LONG_LIST;
  for (let from = 0; from < list.length; ) {
    const text = writeFormatPiece(Array.prototype.slice.call(list, from, from + count));
    // Apart, because joining them would copy the longer one.
    writer.add(separator);
    writer.add(text.slice(1, -1));
    separator = ",";
    from += count;
    count = Math.max(1, Math.ceil((count * PART_CHARACTERS) / text.length));
  }
  writer.add("]");
}
