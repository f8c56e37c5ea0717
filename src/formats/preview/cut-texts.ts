import { type CutTextOptions, cutText, PREVIEW_CHARACTERS } from "./cut-text.ts";
import { estimateTokens } from "./estimate-tokens.ts";
import { readLimit } from "./read-limit.ts";

/** Texts that share one limit. */
export interface CutTexts {
  readonly texts: readonly string[];
  readonly truncated: boolean;
}

/** Shortens several texts to one limit together, in order: whole ones first, then one that is cut, then none. Blank ones do not count. */
export function cutTexts(texts: readonly string[], options: CutTextOptions = {}): CutTexts {
  let characters = readLimit("maxCharacters", options.maxCharacters, PREVIEW_CHARACTERS);
  let tokens = readLimit("maxTokens", options.maxTokens, Number.POSITIVE_INFINITY);
  const kept: string[] = [];
  for (const text of texts) {
    if (text.trim() === "") continue;
    const cut = cutText(text, { maxCharacters: characters, maxTokens: tokens });
    if (cut.text !== "") kept.push(cut.text);
    if (cut.truncated) return { texts: kept, truncated: true };
    characters -= text.length;
    if (tokens !== Number.POSITIVE_INFINITY) tokens -= estimateTokens(text);
  }
  return { texts: kept, truncated: false };
}
