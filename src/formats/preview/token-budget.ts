import { estimateTokenCount } from "tokenx";
import { type CutData, cutToFit } from "../../core/preview/cut-data.ts";
import type { DataSchema } from "../../core/preview/data-validator.ts";
import { PREVIEW_CHARACTERS } from "./cut-markdown.ts";

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

/** Reads an option that counts something: a whole number from `least` on, or `Infinity` for no limit; else throws. */
export const readLimit = limitReader(0);

/** Reads a limit of at least 1 in the same way. */
export const readPositiveLimit = limitReader(1);

function limitReader(least: number) {
  return (name: string, given: number | undefined, otherwise: number): number => {
    if (given === undefined) return otherwise;
    if (given === Number.POSITIVE_INFINITY || (Number.isSafeInteger(given) && given >= least)) return given;
    throw new RangeError(`${name} must be a whole number of at least ${least}, or Infinity; it is ${given}.`);
  };
}

/** Characters looked at in one go: bounds the memory of the estimator, which lists every word it sees. */
const SLICE = 65_536;

/**
 * Estimates how many tokens a model reads in a text, to within some ten percent for prose; linear in its length. Beyond
 * 65,536 characters the text is estimated slice by slice, which may count a word on a seam twice.
 */
export function estimateTokens(text: string): number {
  return countUpTo(text, Number.POSITIVE_INFINITY);
}

/** Tells whether the estimate stays within a limit, and stops looking once it does not. */
export function isWithinTokens(text: string, limit: number): boolean {
  return limit === Number.POSITIVE_INFINITY || countUpTo(text, limit) <= limit;
}

function countUpTo(text: string, limit: number): number {
  let tokens = 0;
  let start = 0;
  while (start < text.length && tokens <= limit) {
    const end = endOfSlice(text, start + SLICE);
    tokens += estimateTokenCount(text.slice(start, end));
    start = end;
  }
  return tokens;
}

/** One less where a surrogate pair would be split. */
function endOfSlice(text: string, end: number): number {
  if (end >= text.length) return text.length;
  return (text.codePointAt(end - 1) as number) > 0xffff ? end - 1 : end;
}

/** Characters of one text that are estimated; the rest is taken to be like them. */
const SAMPLE = 1_048_576;

/** Estimates the tokens of several texts; those beyond a million characters by their beginning. */
export function countTokens(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + countText(text), 0);
}

function countText(text: string): number {
  if (text.length <= SAMPLE) return estimateTokens(text);
  return Math.round((estimateTokens(text.slice(0, SAMPLE)) / SAMPLE) * text.length);
}
