import { isPlainObject, type JsonValue, setOwn } from "../../core/json/json-value.ts";

/** How much of a foreign value is copied before it is refused. */
export interface JsonBounds {
  /** Characters of the value written as JSON, near enough. */
  readonly length: number;
  /** Nested objects and arrays. */
  readonly depth: number;
}

interface Copying {
  readonly bounds: JsonBounds;
  length: number;
}

/**
 * Copies plain JSON into frozen data that shares nothing with its source; throws a `TypeError` with the reason when it is
 * something else, or too much. A value that contains itself is too deep, and one that shares its parts is as long as it reads.
 */
export function copyJson(value: unknown, bounds: JsonBounds): JsonValue {
  return copy(value, 0, { bounds, length: 0 });
}

function copy(value: unknown, depth: number, state: Copying): JsonValue {
  if (value === null || typeof value === "boolean") return grow(state, 5, value);
  if (typeof value === "string") return grow(state, value.length + 2, value);
  if (typeof value === "number" && Number.isFinite(value)) return grow(state, 8, value + 0);
  if (typeof value !== "object") throw new TypeError(`It must be plain JSON, and holds ${nameOf(value)}.`);
  if (depth >= state.bounds.depth) {
    throw new TypeError(`It is nested deeper than ${state.bounds.depth} levels.`);
  }
  grow(state, 2, undefined);
  if (Array.isArray(value)) return Object.freeze(Array.from(value, (item) => copy(item, depth + 1, state)));
  if (!isPlainObject(value)) throw new TypeError("It must be plain JSON, and holds a special object.");
  return Object.freeze(copyMembers(value, depth, state));
}

function copyMembers(source: Record<string, unknown>, depth: number, state: Copying): JsonValue {
  const result: Record<string, JsonValue> = {};
  for (const key of Object.keys(source)) {
    const member = source[key];
    if (member === undefined) continue;
    grow(state, key.length + 4, undefined);
    setOwn(result, key, copy(member, depth + 1, state));
  }
  return result;
}

function grow<T>(state: Copying, length: number, value: T): T {
  state.length += length;
  if (state.length <= state.bounds.length) return value;
  throw new TypeError(`It is longer than ${state.bounds.length} characters.`);
}

function nameOf(value: unknown): string {
  return typeof value === "number" || value === undefined ? String(value) : `a ${typeof value}`;
}

/** Writes plain JSON so that equal values give equal text, whatever order their keys came in. */
export function canonicalText(value: JsonValue): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalText).join()}]`;
  const members = value as Readonly<Record<string, JsonValue>>;
  const keys = Object.keys(members).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalText(members[key] ?? null)}`).join()}}`;
}
