import { MAX_JSON_DEPTH } from "../../core/json/json-depth.ts";

/**
 * Estimates how many characters a value has as JSON, from below, without writing it: characters that are escaped count once, and a
 * number is one. Stops counting beyond `limit`, so that a huge value costs no more than one of that size. What is nested deeper than is
 * ever read, or holds itself, throws.
 */
export function measureJson(value: unknown, limit: number): number {
  return measure(value, limit, 0);
}

function measure(value: unknown, limit: number, level: number): number {
  switch (typeof value) {
    case "string":
      return value.length + 2;
    case "object":
      if (value === null) return 4;
      if (level > MAX_JSON_DEPTH) throw new RangeError("The value is nested too deeply.");
      return measureObject(value, limit, level + 1);
    case "boolean":
      return 4;
    default:
      return 1;
  }
}

function measureObject(value: object, limit: number, level: number): number {
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return Math.ceil(value.byteLength / 3) * 4;
  // Both brackets, and one comma less than there are items.
  let count = 1;
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length && count <= limit; at++) {
      count += 1 + measure(value[at], limit - count, level);
    }
    return count;
  }
  if (value instanceof Map || value instanceof Set) {
    for (const item of value) {
      if (count > limit) break;
      count += 1 + measure(item, limit - count, level);
    }
    return count;
  }
  for (const key in value) {
    if (count > limit) break;
    const member = (value as Record<string, unknown>)[key];
    // Members without a value are not written.
    if (member !== undefined) count += key.length + 4 + measure(member, limit - count, level);
  }
  return count;
}
