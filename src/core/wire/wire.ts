import { adoptEnvelope, isResponseEnvelope } from "../envelope/envelope.ts";
import type { ResponseEnvelope } from "../envelope/response-meta.ts";
import { type ErrorCode, errorTraits } from "../errors/error-codes.ts";
import { toErrorDetails } from "../errors/error-details.ts";
import { CallError, detailsToSend, isCallError, toCallError } from "../errors/errors.ts";
import { joinPointer } from "../json/json-pointer.ts";
import { isPlainObject, type JsonValue, setOwn } from "../json/json-value.ts";
import { shortText, truncateText } from "../text/truncate-text.ts";
import { decodeBase64, encodeBase64 } from "./base64.ts";

/** The one key that marks what JSON cannot hold: `{"$waybill": [kind, payload]}`. */
export const WIRE_KEY = "$waybill";

/** Bounds on what crosses a wire, the same in both directions. */
export const WIRE_LIMITS = {
  /** Nested objects, arrays, maps and sets, unless the caller says otherwise. */
  depth: 512,
  /** The most a caller may ask for: beyond it the stack is at risk. */
  maxDepth: 1_000,
  /** Digits of one bigint, which are slow to read in great numbers. */
  bigintDigits: 10_000,
  /** Characters of the name or code of an error; what is longer is cut. */
  errorName: 200,
  /** Characters of the message of an error, likewise. */
  errorMessage: 8_192,
} as const;

/** How a value is written for a wire and read back. */
export interface WireOptions {
  /** Nested objects, arrays, maps and sets; from 0 to 1,000. @default 512 */
  readonly maxDepth?: number;
  /** The code of the error for what cannot cross. @default "VALIDATION_ERROR" */
  readonly code?: ErrorCode;
  /** Whether errors among the data are written, with their name and message, or refused. @default true */
  readonly errors?: boolean;
}

/** Where a conversion is, and what it is inside of. */
export interface WireWalk {
  readonly maxDepth: number;
  readonly code: ErrorCode;
  readonly errors: boolean;
  /** The key taken at each depth; entries past the current depth are stale. */
  readonly path: (string | number)[];
  /** The container open at each depth, likewise. */
  readonly open: object[];
}

/** Converts one value; `depth` counts the containers around it. */
export type Convert = (value: unknown, depth: number, walk: WireWalk) => unknown;

/** Longest pointer an error shows: keys are the sender's text. */
const SHOWN_POINTER = 200;

/** Runs a conversion; whatever goes wrong comes out as a `CallError`. */
function runWalk(convert: Convert, value: unknown, options: WireOptions): unknown {
  const { maxDepth = WIRE_LIMITS.depth, code = "VALIDATION_ERROR", errors = true } = options;
  if (!Number.isInteger(maxDepth) || maxDepth < 0 || maxDepth > WIRE_LIMITS.maxDepth) {
    throw new TypeError(`maxDepth must be an integer from 0 to ${WIRE_LIMITS.maxDepth}.`);
  }
  try {
    return convert(value, 0, { maxDepth, code, errors, path: [], open: [] });
  } catch (thrown) {
    if (isCallError(thrown)) throw thrown;
    throw new CallError(code, "A value could not be read while it was being converted for a wire.", {
      cause: thrown,
    });
  }
}

/** Throws the error for a value that cannot cross, naming its place, what it is, and the fix. */
function refuse(walk: WireWalk, depth: number, what: string): never {
  const pointer = walk.path.slice(0, depth).reduce<string>(joinPointer, "");
  const shown = shortText(pointer, SHOWN_POINTER);
  throw new CallError(walk.code, `The value at "${shown}" cannot cross a wire: ${what}.`, {
    details: { pointer: shown },
  });
}

/** Opens a container, unless it is too deep or inside itself. */
function enter(container: object, depth: number, walk: WireWalk): void {
  for (let i = 0; i < depth; i++) {
    if (walk.open[i] === container) refuse(walk, depth, "it contains itself; send ids instead of references");
  }
  if (depth >= walk.maxDepth) {
    refuse(walk, depth, `it is nested deeper than ${walk.maxDepth} levels; flatten it`);
  }
  walk.open[depth] = container;
}

/** Converts every item; the same array back when none changes, unless a copy is asked for. */
function mapItems(
  items: readonly unknown[],
  depth: number,
  walk: WireWalk,
  convert: Convert,
  always = false,
): unknown[] {
  let copy: unknown[] | undefined = always ? [] : undefined;
  for (let i = 0; i < items.length; i++) {
    walk.path[depth] = i;
    const item = items[i];
    const converted = convert(item, depth + 1, walk);
    if (copy === undefined && converted !== item) copy = Array.from({ length: i }, (_, at) => items[at]);
    copy?.push(converted);
  }
  return copy ?? (items as unknown[]);
}

/** Converts every own enumerable member; the same object back when none changes, unless a copy is asked for. */
function mapMembers(
  source: Record<string, unknown>,
  depth: number,
  walk: WireWalk,
  convert: Convert,
  always = false,
): Record<string, unknown> {
  const keys = Object.keys(source);
  let copy: Record<string, unknown> | undefined = always ? {} : undefined;
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i] as string;
    walk.path[depth] = key;
    const member = source[key];
    const converted = convert(member, depth + 1, walk);
    if (copy === undefined && converted !== member) {
      copy = {};
      for (const earlier of keys.slice(0, i)) setOwn(copy, earlier, source[earlier]);
    }
    if (copy !== undefined) setOwn(copy, key, converted);
  }
  return copy ?? source;
}

/**
 * Turns a value into plain JSON that `fromWire` turns back: bytes, bigints, dates, maps, sets, `undefined`, `NaN`,
 * the infinities, `-0` and errors become tagged objects. The same object comes back when nothing needs changing. An
 * instance goes as its `toJSON()`, else as its own fields; symbol keys are left out, as JSON does. Of an error that is no
 * `CallError` its name and message go, never its stack or cause. Functions, symbols, cycles and objects with no fields to
 * show are refused.
 */
export function toWire(value: unknown, options: WireOptions = {}): JsonValue {
  return runWalk(encode, value, options) as JsonValue;
}

function tag(kind: string, ...payload: readonly unknown[]): object {
  return { [WIRE_KEY]: [kind, ...payload] };
}

function encode(value: unknown, depth: number, walk: WireWalk): unknown {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return encodeNumber(value);
    case "undefined":
      return tag("undefined");
    case "bigint":
      return encodeBigint(value, depth, walk);
    case "object":
      return value === null ? null : encodeObject(value, depth, walk);
    case "function":
      return refuse(walk, depth, "it is a function; send what it returns, or leave it out");
    case "symbol":
      return refuse(walk, depth, "it is a symbol; send a string instead");
  }
}

function encodeNumber(value: number): unknown {
  if (Object.is(value, -0)) return tag("number", "-0");
  return Number.isFinite(value) ? value : tag("number", String(value));
}

function encodeBigint(value: bigint, depth: number, walk: WireWalk): unknown {
  const text = String(value);
  if (text.length > WIRE_LIMITS.bigintDigits) {
    refuse(walk, depth, `it is a bigint of more than ${WIRE_LIMITS.bigintDigits} digits; send it as bytes`);
  }
  return tag("bigint", text);
}

function encodeObject(value: object, depth: number, walk: WireWalk): unknown {
  const builtIn = encodeBuiltIn(value, depth, walk);
  if (builtIn !== undefined) return builtIn;
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON !== "function") return encodeFields(value, depth, walk, false);
  const json: unknown = toJSON.call(value, String(walk.path[depth - 1] ?? ""));
  if (typeof json !== "object" || json === null) return encode(json, depth, walk);
  // Asked once, as JSON does; a copy, so that writing the text does not ask again.
  return encodeBuiltIn(json, depth, walk) ?? encodeFields(json, depth, walk, true);
}

/** Encodes what the language itself defines; undefined for everything else. */
function encodeBuiltIn(value: object, depth: number, walk: WireWalk): unknown {
  if (isPlainObject(value) || Array.isArray(value)) return undefined;
  if (value instanceof Date) return encodeDate(value, depth, walk);
  if (value instanceof ArrayBuffer) return tag("bytes", encodeBase64(new Uint8Array(value)));
  if (ArrayBuffer.isView(value)) {
    return tag("bytes", encodeBase64(new Uint8Array(value.buffer, value.byteOffset, value.byteLength)));
  }
  if (value instanceof Map) {
    enter(value, depth, walk);
    return tag("map", mapItems([...value], depth, walk, encodeEntry));
  }
  if (value instanceof Set) {
    enter(value, depth, walk);
    return tag("set", mapItems([...value], depth, walk, encode));
  }
  if (!(value instanceof Error)) return undefined;
  if (walk.errors) return tag("error", toErrorPayload(value));
  return refuse(walk, depth, "it is an error; throw it, or send its message as a string");
}

function encodeDate(value: Date, depth: number, walk: WireWalk): unknown {
  if (Number.isNaN(value.getTime())) refuse(walk, depth, "it is an invalid date; send null instead");
  return tag("date", Date.prototype.toISOString.call(value));
}

/** A key and its value share the depth of their map. */
function encodeEntry(entry: unknown, depth: number, walk: WireWalk): unknown {
  const [key, value] = entry as [unknown, unknown];
  return [encode(key, depth, walk), encode(value, depth, walk)];
}

function encodeFields(value: object, depth: number, walk: WireWalk, copy: boolean): unknown {
  enter(value, depth, walk);
  if (Array.isArray(value)) return mapItems(value, depth, walk, encode, copy);
  const source = value as Record<string, unknown>;
  const instance = !isPlainObject(value);
  if (typeof Blob !== "undefined" && value instanceof Blob) {
    refuse(walk, depth, "it is a Blob; send its bytes, new Uint8Array(await blob.arrayBuffer())");
  }
  if (instance && Object.keys(source).length === 0) {
    refuse(walk, depth, "it is an object without fields to show; give it a toJSON method");
  }
  const members = mapMembers(source, depth, walk, encode, copy || instance);
  return Object.hasOwn(source, WIRE_KEY) ? tag("object", members) : members;
}

/** Turns what `toWire` made back into the value it was; throws nothing but `CallError`, whatever it is given. */
export function fromWire(value: unknown, options: WireOptions = {}): unknown {
  return runWalk(decode, value, options);
}

function decode(value: unknown, depth: number, walk: WireWalk): unknown {
  if (value === null) return null;
  switch (typeof value) {
    case "string":
    case "boolean":
    case "number":
      return value;
    case "object":
      return decodeObject(value, depth, walk);
    default:
      return refuse(walk, depth, "it is not JSON");
  }
}

function decodeObject(value: object, depth: number, walk: WireWalk): unknown {
  if (Array.isArray(value)) {
    enter(value, depth, walk);
    return mapItems(value, depth, walk, decode);
  }
  if (!isPlainObject(value)) return refuse(walk, depth, "it is not JSON");
  if (Object.hasOwn(value, WIRE_KEY)) return decodeTag(value, depth, walk);
  enter(value, depth, walk);
  return mapMembers(value, depth, walk, decode);
}

function decodeTag(value: Record<string, unknown>, depth: number, walk: WireWalk): unknown {
  const content = value[WIRE_KEY];
  if (Object.keys(value).length !== 1 || !Array.isArray(content)) return refuseTag(walk, depth);
  const [kind, payload] = content as readonly unknown[];
  if (kind === "undefined") return content.length === 1 ? undefined : refuseTag(walk, depth);
  const decodePayload = content.length === 2 ? DECODERS.get(kind) : undefined;
  return decodePayload === undefined ? refuseTag(walk, depth) : decodePayload(payload, depth, walk);
}

function refuseTag(walk: WireWalk, depth: number): never {
  return refuse(walk, depth, `its "${WIRE_KEY}" tag is malformed; write it with toWire`);
}

const NUMBERS = new Map<unknown, number>([
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-Infinity", Number.NEGATIVE_INFINITY],
  ["-0", -0],
]);

const BIGINT = /^(?:0|-?[1-9][0-9]*)$/;

const DECODERS = new Map<unknown, Convert>([
  ["number", (payload, depth, walk) => NUMBERS.get(payload) ?? refuseTag(walk, depth)],
  ["bigint", decodeBigint],
  ["date", decodeDate],
  ["bytes", decodeBytes],
  ["map", decodeMap],
  ["set", decodeSet],
  ["error", (payload, depth, walk) => fromErrorPayload(payload) ?? refuseTag(walk, depth)],
  ["object", decodeEscaped],
]);

function decodeBigint(payload: unknown, depth: number, walk: WireWalk): bigint {
  if (typeof payload !== "string" || payload.length > WIRE_LIMITS.bigintDigits) return refuseTag(walk, depth);
  return BIGINT.test(payload) ? BigInt(payload) : refuseTag(walk, depth);
}

function decodeDate(payload: unknown, depth: number, walk: WireWalk): Date {
  if (typeof payload !== "string") return refuseTag(walk, depth);
  const date = new Date(payload);
  // The parser takes far more than ISO 8601; only what it would write itself counts.
  const exact = !Number.isNaN(date.getTime()) && date.toISOString() === payload;
  return exact ? date : refuseTag(walk, depth);
}

function decodeBytes(payload: unknown, depth: number, walk: WireWalk): Uint8Array {
  const bytes = typeof payload === "string" ? decodeBase64(payload) : undefined;
  return bytes ?? refuseTag(walk, depth);
}

/** In one function, without `mapItems`: the deepest map allowed has to fit the stack, also where its frames are larger, as on Node 22. */
function decodeMap(payload: unknown, depth: number, walk: WireWalk): Map<unknown, unknown> {
  if (!Array.isArray(payload)) return refuseTag(walk, depth);
  enter(payload, depth, walk);
  const map = new Map<unknown, unknown>();
  for (let i = 0; i < payload.length; i++) {
    walk.path[depth] = i;
    const entry: unknown = payload[i];
    if (!Array.isArray(entry) || entry.length !== 2) return refuseTag(walk, depth + 1);
    map.set(decode(entry[0], depth + 1, walk), decode(entry[1], depth + 1, walk));
  }
  return map.size === payload.length ? map : refuseTag(walk, depth);
}

function decodeSet(payload: unknown, depth: number, walk: WireWalk): Set<unknown> {
  if (!Array.isArray(payload)) return refuseTag(walk, depth);
  enter(payload, depth, walk);
  const set = new Set(mapItems(payload, depth, walk, decode));
  return set.size === payload.length ? set : refuseTag(walk, depth);
}

/** An ordinary object that happens to have the reserved key; an escape around anything else is not ours. */
function decodeEscaped(payload: unknown, depth: number, walk: WireWalk): unknown {
  if (!isPlainObject(payload) || !Object.hasOwn(payload, WIRE_KEY)) return refuseTag(walk, depth);
  enter(payload, depth, walk);
  return mapMembers(payload, depth, walk, decode);
}

/** The envelope and its meta are two levels more than the data they carry. */
const ENVELOPE_WIRE = {
  code: "OUTPUT_INVALID",
  maxDepth: WIRE_LIMITS.depth + 2,
} as const satisfies WireOptions;

/** Writes an envelope as JSON text that `decodeEnvelope` reads back exactly. */
export function encodeEnvelope(envelope: ResponseEnvelope): string {
  const value = toWire(envelope, ENVELOPE_WIRE);
  try {
    return JSON.stringify(value);
  } catch (cause) {
    // A getter that answers differently the second time, or more text than a string can hold.
    throw new CallError("OUTPUT_INVALID", "The result cannot be written as JSON.", { cause });
  }
}

/** Reads an envelope back, checks it, and marks it as ours: call it only where the sender is trusted to make envelopes. */
export function decodeEnvelope(text: string): ResponseEnvelope {
  const value = fromWire(parseJson(text), ENVELOPE_WIRE);
  if (isResponseEnvelope(value)) return adoptEnvelope(value);
  throw new CallError("OUTPUT_INVALID", "What came back is JSON, but not a response envelope.");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CallError("OUTPUT_INVALID", "What came back is not JSON.", { cause });
  }
}

type ErrorPayload = Readonly<Record<string, JsonValue>>;

const FOREIGN_MEMBERS: readonly string[] = ["name", "message"];
const CALL_ERROR_MEMBERS: readonly string[] = [
  "code",
  "message",
  "retryable",
  "correctable",
  "httpStatus",
  "details",
];

/** What of an error crosses a wire: all a `CallError` shows, the name and message of any other; never a stack or cause. */
function toErrorPayload(error: Error): ErrorPayload {
  if (isCallError(error)) return toCallErrorPayload(toCallError(error));
  const { name, message } = error as { name: unknown; message: unknown };
  return {
    name: typeof name === "string" ? truncateText(name, WIRE_LIMITS.errorName) : "Error",
    message: typeof message === "string" ? truncateText(message, WIRE_LIMITS.errorMessage) : "",
  };
}

/** Makes the error again; nothing when the payload is not exactly what `toErrorPayload` writes. */
function fromErrorPayload(payload: unknown): Error | undefined {
  if (!isPlainObject(payload)) return undefined;
  return Object.hasOwn(payload, "code") ? fromCallErrorPayload(payload) : fromForeignPayload(payload);
}

/** Field by field rather than by `toJSON`, which a subclass may have written anew. */
function toCallErrorPayload(error: CallError): ErrorPayload {
  const { code, message, retryable, correctable, httpStatus } = error;
  const details = toErrorDetails(detailsToSend(error));
  const known = truncateText(code, WIRE_LIMITS.errorName);
  return {
    code: known,
    message: truncateText(message, WIRE_LIMITS.errorMessage),
    retryable,
    correctable,
    ...(httpStatus === errorTraits(known).httpStatus ? {} : { httpStatus }),
    ...(details === undefined ? {} : { details }),
  };
}

function fromCallErrorPayload(payload: Readonly<Record<string, unknown>>): CallError | undefined {
  if (!hasOnly(payload, CALL_ERROR_MEMBERS)) return undefined;
  const { code, message, retryable, correctable, httpStatus, details } = payload;
  const usable =
    isText(code, WIRE_LIMITS.errorName) &&
    code !== "" &&
    isText(message, WIRE_LIMITS.errorMessage) &&
    typeof retryable === "boolean" &&
    typeof correctable === "boolean" &&
    (!Object.hasOwn(payload, "httpStatus") || isFailureStatus(httpStatus));
  if (!usable) return undefined;
  const status = isFailureStatus(httpStatus) ? httpStatus : undefined;
  return new CallError(code, message, { retryable, correctable, httpStatus: status, details, stack: false });
}

function fromForeignPayload(payload: Readonly<Record<string, unknown>>): Error | undefined {
  const { name, message } = payload;
  if (!hasOnly(payload, FOREIGN_MEMBERS)) return undefined;
  if (!isText(name, WIRE_LIMITS.errorName) || !isText(message, WIRE_LIMITS.errorMessage)) return undefined;
  const error = new Error(message);
  Object.defineProperty(error, "name", { value: name, writable: true, configurable: true });
  return error;
}

function hasOnly(payload: Readonly<Record<string, unknown>>, members: readonly string[]): boolean {
  return Object.keys(payload).every((key) => members.includes(key));
}

function isText(value: unknown, length: number): value is string {
  return typeof value === "string" && value.length <= length;
}

function isFailureStatus(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 400 && value <= 599;
}
