import { estimateTokenCount } from "tokenx";

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
