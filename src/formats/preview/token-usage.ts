import { estimateTokens } from "./estimate-tokens.ts";

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
