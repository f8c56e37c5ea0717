import { toWire } from "../wire/wire.ts";

/** Anything JSON text can hold. */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

/**
 * Any value at all, written so that the compiler keeps the literals in what is asked for by it: `{ status: "open" }` stays that, and does
 * not become `{ status: string }`. It does so wherever a literal could be wanted, and these types have one everywhere.
 */
export type KeepLiterals =
  | ("" | 0 | 0n | true)
  | { readonly [key: string]: KeepLiterals }
  | readonly KeepLiterals[]
  | []
  | NonNullable<unknown>
  | null
  | undefined;

/** True for object literals, `Object.create(null)` and what `JSON.parse` makes, of any realm; false for arrays and instances. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Reads a property where it is an own one: what a prototype offers stays out. */
export function ownMember<O extends object, K extends keyof O>(from: O, key: K): O[K] | undefined {
  return Object.hasOwn(from, key) ? from[key] : undefined;
}

/** Reads what lies at a path of own members of plain objects. */
export function memberAt(value: unknown, ...path: readonly string[]): unknown {
  let at = value;
  for (const key of path) at = isPlainObject(at) ? ownMember(at, key) : undefined;
  return at;
}

/** Tells whether a value is a list of strings. */
export function isStringList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === "string");
}

/** Tells whether two lists hold the same members in the same order. */
export function isSameList<T>(one: readonly T[], other: readonly T[]): boolean {
  return one.length === other.length && one.every((member, at) => member === other[at]);
}

/** Sets an own property whatever its name: plain assignment would lose `__proto__`. */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== "__proto__") target[key] = value;
  else Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
}

/**
 * Data as JSON writes it: a member that is undefined is left out, a date is text. That is what the schema of a tool describes;
 * only what JSON cannot hold at all takes its wire form.
 */
export function asJson(data: unknown): unknown {
  if (isPlainJson(data)) return data;
  const text = toJsonTextOrNone(data);
  return text === undefined ? toWire(data, { errors: false }) : JSON.parse(text);
}

/** The deepest nesting that is read: the same in every language that reads these formats. */
export const MAX_JSON_DEPTH = 512;

/** Each level takes an opening and a closing character, so shorter text cannot be too deep. */
const HARMLESS_LENGTH = (MAX_JSON_DEPTH + 1) * 2;

/**
 * Tells whether JSON text is nested too deeply. The text counts and not the value, in which a key that is given twice may hide
 * what it was given first; but where the value has as many objects and arrays as the text has `openings`, looking at the value is
 * enough, and takes a quarter of the time.
 */
export function isTooDeep(text: string, value: unknown, openings: number | undefined): boolean {
  if (text.length < HARMLESS_LENGTH) return false;
  const counted = openings === undefined ? 0 : countContainers(value, MAX_JSON_DEPTH);
  if (counted === TOO_DEEP) return true;
  return counted !== openings && isTextTooDeep(text);
}

/** Tells whether a value is nested more deeply than what is read; only for what JSON has been written of, which has no circle. */
export function isValueTooDeep(value: unknown, writtenLength: number): boolean {
  return writtenLength >= HARMLESS_LENGTH && countContainers(value, MAX_JSON_DEPTH) === TOO_DEEP;
}

const TOO_DEEP = Number.NEGATIVE_INFINITY;

/** Counts the objects and arrays of a value; `TOO_DEEP` when they are nested more than so many levels deep. */
function countContainers(value: unknown, levels: number): number {
  if (typeof value !== "object" || value === null) return 0;
  if (levels === 0) return TOO_DEEP;
  let count = 1;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item = value[i];
      if (typeof item === "object") count += countContainers(item, levels - 1);
    }
    return count;
  }
  for (const key in value) {
    const member = (value as Record<string, unknown>)[key];
    if (typeof member === "object") count += countContainers(member, levels - 1);
  }
  return count;
}

/** Counts `[` and `{`, those in strings too, four bytes at a time; nothing where the bytes do not lie on a word. */
export function countOpenings(bytes: Uint8Array): number | undefined {
  if (bytes.length < HARMLESS_LENGTH || bytes.byteOffset % 4 !== 0) return undefined;
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
  let count = 0;
  for (let i = 0; i < words.length; i++) {
    // The two differ in one bit; without it, either becomes zero here, and no other byte does.
    const x = ((words[i] as number) & 0xdfdfdfdf) ^ 0x5b5b5b5b;
    const zeros = ~(((x & 0x7f7f7f7f) + 0x7f7f7f7f) | x | 0x7f7f7f7f);
    if (zeros !== 0) count += Math.imul(zeros >>> 7, 0x01010101) >>> 24;
  }
  for (let i = words.length * 4; i < bytes.length; i++) if (isOpening(bytes[i] as number)) count += 1;
  return count;
}

const QUOTE = 34;
const BACKSLASH = 92;
const CURLY = 32;
const OPENING = 123;
const CLOSING = 125;

function isOpening(code: number): boolean {
  return (code | CURLY) === OPENING;
}

/** Tells whether text opens more objects and arrays than are read, one in another; it need not be JSON. */
export function isTextTooDeep(text: string): boolean {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) {
      for (i++; i < text.length && text.charCodeAt(i) !== QUOTE; i++) {
        if (text.charCodeAt(i) === BACKSLASH) i++;
      }
    } else if (isOpening(code)) {
      depth += 1;
      if (depth > MAX_JSON_DEPTH) return true;
    } else if ((code | CURLY) === CLOSING) depth -= 1;
  }
  return false;
}

/** Text that is not JSON, or a value that JSON cannot hold. */
export class JsonTextError extends Error {
  override readonly name = "JsonTextError";
  readonly code: "bad_json" | "not_json";
  /** Whether it is JSON by its grammar, and refused for what it holds. */
  readonly isWellFormed: boolean;

  constructor(
    code: JsonTextError["code"],
    message: string,
    { cause, isWellFormed = false }: { cause?: unknown; isWellFormed?: boolean } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.isWellFormed = isWellFormed;
  }
}

/**
 * Reads JSON text; anything else, or anything nested too deeply, or a number beyond the doubles, is a `bad_json` error. See
 * `isTooDeep` for `openings`.
 */
export function parseJsonText(text: string, openings?: number): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new JsonTextError("bad_json", "The text is not JSON.", { cause });
  }
  if (isTooDeep(text, value, openings)) {
    const message = `The JSON is nested more than ${MAX_JSON_DEPTH} levels deep.`;
    throw new JsonTextError("bad_json", message, { isWellFormed: true });
  }
  if (MAY_OVERFLOW.test(text) && overflows(text)) {
    const message = "The JSON holds a number beyond the range of doubles.";
    throw new JsonTextError("bad_json", message, { isWellFormed: true });
  }
  return value;
}

/** What every number has that is read as infinite, and few other texts do. */
const MAY_OVERFLOW = /\d{300}|\d[eE]\+?\d{2}/;
const STRING_OR_NUMBER = /["\d]/g;
const NUMBER = /[\d.eE+-]+/y;

/** Looks at all numbers of a JSON text, as a key that is given twice hides the first one in the value. */
function overflows(text: string): boolean {
  let at = 0;
  for (;;) {
    STRING_OR_NUMBER.lastIndex = at;
    const found = STRING_OR_NUMBER.exec(text);
    if (found === null) return false;
    if (found[0] === '"') {
      at = stringEnd(text, found.index + 1);
      continue;
    }
    NUMBER.lastIndex = found.index;
    const [number = ""] = NUMBER.exec(text) ?? [];
    if (!Number.isFinite(Number(number))) return true;
    at = found.index + number.length;
  }
}

/** Where a string ends that begins before `at`. */
function stringEnd(text: string, at: number): number {
  let end = at;
  while (text[end] !== '"') end += text[end] === "\\" ? 2 : 1;
  return end + 1;
}

/** The same, or nothing where the text is no JSON. */
export function parseJsonTextOrNone(text: string): unknown {
  return orNone(() => parseJsonText(text));
}

/** Writes a value as compact JSON; what JSON cannot hold, or nobody would read, is refused. */
export function toJsonText(value: unknown): string {
  const text = toJsonPiece(value);
  if (isValueTooDeep(value, text.length))
    throw notJson(`it is nested more than ${MAX_JSON_DEPTH} levels deep`);
  return text;
}

/** The same for a piece of a value whose depth is looked at as a whole; nothing becomes `null` or `{}` that is not. */
export function toJsonPiece(value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    throw notJson("it holds a bigint, refers to itself, is nested too deeply, or reading it throws", cause);
  }
  if (text === undefined) throw notJson("it is undefined, a function or a symbol");
  if (isSuspect(text)) refuseForeign(value, 0);
  return text;
}

/** Looks for what `JSON.stringify` writes in place of something it cannot hold: without any, nothing was replaced. */
function isSuspect(text: string): boolean {
  return text.includes("null") || text.includes("{}") || text.includes('{"0":');
}

/** The same, or nothing where JSON cannot hold the value. */
export function toJsonTextOrNone(value: unknown): string | undefined {
  return orNone(() => toJsonText(value));
}

function orNone<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    if (error instanceof JsonTextError) return undefined;
    throw error;
  }
}

function refuseForeign(value: unknown, depth: number): void {
  switch (typeof value) {
    case "number":
      if (!Number.isFinite(value)) throw notJson(`it holds ${value}`);
      return;
    case "object":
      if (value !== null) refuseForeignObject(value, depth);
      return;
    default:
  }
}

function refuseForeignObject(value: object, depth: number): void {
  if (depth > MAX_JSON_DEPTH) throw notJson(`it is nested more than ${MAX_JSON_DEPTH} levels deep`);
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      if (isLeftOut(value[i]))
        throw notJson(
          `an array in it holds ${value[i] === undefined ? "undefined" : "a function or symbol"}`,
        );
      refuseForeign(value[i], depth + 1);
    }
    return;
  }
  // An object with `toJSON` is written as it says: a date, for one.
  if (typeof (value as { toJSON?: unknown }).toJSON === "function") return;
  if (value instanceof Error) throw notJson("it holds an error");
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer)
    throw notJson("it holds bytes; send them as base64");
  if (Object.keys(value).length === 0 && !isPlainObject(value)) throw notJson(`it holds a ${kindOf(value)}`);
  for (const member of Object.values(value)) refuseForeign(member, depth + 1);
}

/** What JSON leaves out of an object. */
export function isLeftOut(value: unknown): boolean {
  return value === undefined || typeof value === "function" || typeof value === "symbol";
}

function kindOf(value: object): string {
  return Object.prototype.toString.call(value).slice(8, -1).toLowerCase();
}

function notJson(what: string, cause?: unknown): JsonTextError {
  return new JsonTextError("not_json", `The value cannot be written as JSON: ${what}.`, { cause });
}

/** Visits and levels within which a value is looked at without noting where one has been. */
const QUICK_VISITS = 10_000;
const QUICK_LEVELS = 32;

/** Tells whether a value is made of what `JSON.parse` makes, all the way down, however deep, and without a circle. */
export function isPlainJson(value: unknown): boolean {
  return isPlainTree(value, 0, { visits: QUICK_VISITS }) ?? isPlainGraph(value);
}

/** The same for what is small and shallow, as nearly all values are, without allocating; nothing where it cannot tell. */
function isPlainTree(value: unknown, level: number, left: { visits: number }): boolean | undefined {
  if (typeof value !== "object" || value === null) return isScalar(value);
  const isArray = Array.isArray(value);
  if (!isArray && !isPlainObject(value)) return false;
  const members: readonly unknown[] = isArray ? value : Object.values(value);
  left.visits -= members.length;
  if (level >= QUICK_LEVELS || left.visits < 0) return undefined;
  for (let at = 0; at < members.length; at++) {
    const isPlain = isPlainTree(members[at], level + 1, left);
    if (isPlain !== true) return isPlain;
  }
  return true;
}

function isPlainGraph(value: unknown): boolean {
  const left: unknown[] = [value];
  const inside = new Set<object>();
  const done = new Set<object>();
  while (left.length > 0) {
    const next = left.at(-1);
    if (typeof next !== "object" || next === null) {
      if (!isScalar(next)) return false;
      left.pop();
    } else if (inside.delete(next) || done.has(next)) {
      // All it holds has been looked at: it was on top of it.
      done.add(next);
      left.pop();
    } else {
      inside.add(next);
      const isArray = Array.isArray(next);
      if (!isArray && !isPlainObject(next)) return false;
      for (const member of isArray ? next : Object.values(next)) {
        if (typeof member === "object" && member !== null && inside.has(member)) return false;
        left.push(member);
      }
    }
  }
  return true;
}

function isScalar(value: unknown): boolean {
  return value === null || typeof value === "string" || typeof value === "boolean" || Number.isFinite(value);
}

/** Writes plain JSON so that equal values give equal text, with keys in the order of RFC 8785. */
export function canonicalJson(value: JsonValue): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`;
  const members = value as Readonly<Record<string, JsonValue>>;
  const keys = Object.keys(members)
    .filter((key) => members[key] !== undefined)
    .sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalJson(members[key] as JsonValue)}`).join()}}`;
}
