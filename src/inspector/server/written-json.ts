import { toJsonTextOrNone } from "../../core/json/json-text.ts";
import { toWire } from "../../core/wire/wire.ts";
import { measureJson } from "./measure-json.ts";

/** A value as JSON text, or why there is none. */
export type WrittenJson =
  | { readonly text: string }
  | { readonly omitted: "too-long"; readonly characters: number }
  | { readonly omitted: "not-json" };

/** How far a value that is too long is measured, in lengths of what is allowed. */
export const MEASURED_TIMES = 8;

/**
 * Writes a value as JSON, as it is now. What JSON cannot hold takes its wire form; what would be longer than `limit` is measured and
 * not written, and whatever throws while it is read is no JSON. What is written in its place, where that is something else, is made
 * only once it is known to be short enough.
 */
export function writtenJson(
  value: unknown,
  limit: number,
  replace: (value: unknown) => unknown = (same) => same,
): WrittenJson {
  try {
    const characters = measureJson(value, limit * MEASURED_TIMES);
    if (characters > limit) return { omitted: "too-long", characters };
    const shown = replace(value);
    const text = toJsonTextOrNone(shown) ?? JSON.stringify(toWire(shown, { errors: false }));
    if (text.length > limit) return { omitted: "too-long", characters: text.length };
    return { text };
  } catch {
    return { omitted: "not-json" };
  }
}
