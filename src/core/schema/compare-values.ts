import { setOwn } from "../json/json-value.ts";

/** Tells objects that are bags of properties from dates, maps, bytes and their like, which are values. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return Object.prototype.toString.call(value) === "[object Object]";
}

/** The keys of an object that JSON would write: own, enumerable, and not `undefined`. */
export function presentKeys(value: object): string[] {
  return Object.keys(value).filter((key) => (value as Record<string, unknown>)[key] !== undefined);
}

/** Compares two values as JSON does: numbers by value, objects without regard to order, own properties only. */
export function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, i) => isEqual(item, b[i]));
  }
  if (!isRecord(a) || !isRecord(b)) return false;
  const keys = presentKeys(a);
  if (keys.length !== presentKeys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && isEqual(a[key], b[key]));
}

/** Finds out whether two items of a list are equal, in one pass: by themselves, or by a text that only equals share. */
export function hasDuplicates(list: readonly unknown[]): boolean {
  const seen = new Set<unknown>();
  const special = new Map<object, number>();
  for (const item of list) {
    const key = typeof item === "object" && item !== null ? canonicalText(item, special) : canonicalKey(item);
    if (seen.has(key)) return true;
    seen.add(key);
  }
  return false;
}

/** Strings are quoted so that they cannot meet the text of an object. */
function canonicalKey(item: unknown): unknown {
  return typeof item === "string" ? JSON.stringify(item) : item;
}

/** Objects that are no JSON are equal to themselves alone, so they are numbered. */
function canonicalText(value: unknown, special: Map<object, number>): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value !== "object" || value === null) return `${typeof value} ${String(value)}`;
  if (Array.isArray(value)) return `[${value.map((item) => canonicalText(item, special)).join(",")}]`;
  if (!isRecord(value)) {
    const number = special.get(value) ?? special.size;
    special.set(value, number);
    return `#${number}`;
  }
  const parts = presentKeys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalText(value[key], special)}`);
  return `{${parts.join(",")}}`;
}

/** Copies JSON data so that the copy shares nothing with the original. */
export function cloneJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(cloneJson);
  if (typeof value !== "object" || value === null) return value;
  const result: Record<string, unknown> = {};
  for (const key of Object.keys(value))
    setOwn(result, key, cloneJson((value as Record<string, unknown>)[key]));
  return result;
}
