import { type CutData, cutToFit } from "../../core/preview/cut-data.ts";
import type { DataSchema } from "../../core/preview/data-validator.ts";
import { PREVIEW_CHARACTERS } from "./cut-text.ts";
import { estimateTokens, isWithinTokens } from "./estimate-tokens.ts";
import { readLimit } from "./read-limit.ts";

/** How much of some data may stay, and what it has to remain. */
export interface CutDataOptions {
  /** What the cut data must still match; without it only arrays and strings are shortened. */
  readonly schema?: DataSchema | undefined;
  /** Length of the cut data as compact JSON, in UTF-16 units. @default 2_000 */
  readonly maxCharacters?: number | undefined;
  /** Estimated tokens of that JSON. @default no limit */
  readonly maxTokens?: number | undefined;
}

/**
 * Shortens structured data so that it still matches its schema: arrays from the end, then strings, then by leaving out
 * optional properties. `truncated` becomes true where the data has it, or its schema declares it. Data that fits, or of which no
 * valid cut fits, comes back as it is; what JSON cannot hold is refused with a `TypeError` that names its pointer.
 */
export function cutData<T>(value: T, options: CutDataOptions = {}): CutData<T> {
  const maxCharacters = readLimit("maxCharacters", options.maxCharacters, PREVIEW_CHARACTERS);
  const most = readLimit("maxTokens", options.maxTokens, Number.POSITIVE_INFINITY);
  return cutToFit(value, {
    schema: options.schema,
    maxCharacters,
    ...(most !== Number.POSITIVE_INFINITY && {
      tokens: { most, estimate: estimateTokens, isWithin: (text) => isWithinTokens(text, most) },
    }),
  });
}
