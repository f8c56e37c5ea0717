import { isTooDeep, isValueTooDeep, MAX_JSON_DEPTH } from "./json-depth.ts";
import { isPlainObject } from "./json-value.ts";

/** Text that is not JSON, or a value that JSON cannot hold. */
export class JsonTextError extends Error {
  override readonly name = "JsonTextError";
  readonly code: "bad_json" | "not_json";

  constructor(code: JsonTextError["code"], message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
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
    throw new JsonTextError("bad_json", `The JSON is nested more than ${MAX_JSON_DEPTH} levels deep.`);
  }
  if (MAY_OVERFLOW.test(text) && overflows(text)) {
    throw new JsonTextError("bad_json", "The JSON holds a number beyond the range of doubles.");
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
  // Whoever says how to be written is taken at their word: a date, for one.
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
