import { isPlainObject, setOwn } from "../../../core/json/json-value.ts";

/** Gives the value at a path; nothing where there is none, or where anything but plain objects and lists is on the way. */
export function valueAt(value: unknown, path: readonly string[]): unknown {
  let current = value;
  for (const key of path) {
    const isContainer = isPlainObject(current) || Array.isArray(current);
    if (!isContainer || !Object.hasOwn(current as object, key)) return undefined;
    current = (current as Record<string, unknown>)[key];
  }
  return current;
}

/** Copies an input with another value at a path; what is not an object on the way becomes one. */
export function withValueAt(input: unknown, path: readonly string[], value: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  const copy: Record<string, unknown> = {};
  if (isPlainObject(input)) for (const name of Object.keys(input)) setOwn(copy, name, input[name]);
  setOwn(copy, key, withValueAt(Object.hasOwn(copy, key) ? copy[key] : undefined, rest, value));
  return copy;
}

/** Reads a count that came from outside: a number, or digits. */
export function toCount(value: unknown): number | undefined {
  const number = typeof value === "string" && /^[0-9]{1,15}$/.test(value) ? Number(value) : value;
  return typeof number === "number" && Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}

/** The longest cursor that is handed on. */
const CURSOR_LENGTH = 8_192;

/** Reads a cursor that came from outside; an empty one, or nought, is none. */
export function toCursor(value: unknown): string | number | undefined {
  if (typeof value === "string") return value !== "" && value.length <= CURSOR_LENGTH ? value : undefined;
  return typeof value === "number" && Number.isFinite(value) && value !== 0 ? value : undefined;
}
