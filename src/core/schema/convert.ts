import { typeBits } from "./evaluation.ts";
import { TYPE_BITS } from "./schema-node.ts";

/** Brings a value to one of the allowed types when exactly one loses nothing; undefined when none or several do. */
export function convert(value: unknown, allowed: number): { readonly value: unknown } | undefined {
  const results = new Set<unknown>();
  for (const candidate of candidates(value)) {
    if ((typeBits(candidate) & allowed) !== 0) results.add(candidate);
  }
  if (results.size !== 1) return undefined;
  const [only] = results;
  return { value: only };
}

/** Every other way to write the value that can be turned back into it. */
function candidates(value: unknown): unknown[] {
  switch (typeof value) {
    case "string":
      return fromString(value);
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0) ? [String(value)] : [];
    case "boolean":
      return [String(value)];
    case "bigint":
      return Number.isSafeInteger(Number(value)) ? [Number(value), String(value)] : [String(value)];
    case "object":
      return fromDate(value);
    default:
      return [];
  }
}

function fromString(text: string): unknown[] {
  if (text === "true") return [true];
  if (text === "false") return [false];
  const number = Number(text);
  return Number.isFinite(number) && String(number) === text ? [number] : [];
}

function fromDate(value: object | null): unknown[] {
  if (!(value instanceof Date) || Number.isNaN(value.getTime())) return [];
  return [value.toISOString()];
}

/** The types that every one of the given masks allows; all of them when no mask says anything. */
export function commonTypes(masks: readonly number[]): number {
  let common = -1;
  for (const mask of masks) {
    if (mask !== 0) common &= (mask & TYPE_BITS.number) !== 0 ? mask | TYPE_BITS.integer : mask;
  }
  return common;
}
