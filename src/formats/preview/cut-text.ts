import { type GraphemeBoundaries, graphemeBoundaries } from "../../core/text/graphemes.ts";
import { estimateTokens, isWithinTokens } from "./estimate-tokens.ts";
import { fenceSeam } from "./fences.ts";
import { readLimit } from "./read-limit.ts";

/** Characters of a preview unless the caller says otherwise. */
export const PREVIEW_CHARACTERS = 2_000;

/** How much of a text may stay. */
export interface CutTextOptions {
  /** UTF-16 units of the outcome, marker included. @default 2_000 */
  readonly maxCharacters?: number;
  /** Estimated tokens of the outcome, marker included. @default no limit */
  readonly maxTokens?: number;
}

/** A text within its limits. */
export interface CutText {
  readonly text: string;
  readonly truncated: boolean;
  /** UTF-16 units of the original that are not in `text`. */
  readonly omittedCharacters: number;
}

interface Limits {
  readonly characters: number;
  readonly tokens: number;
}

const SHORT_MARKER = "…";

/** The last part of a preview, in which the end of a line or a word is looked for. */
const LINE_SEARCH = 0.25;
const WORD_SEARCH = 0.1;

/**
 * Shortens Markdown or plain text to its beginning and a last line that says how much is missing. Never splits a
 * character as people see it, nor a fenced block: one that is cut is closed, or left out where there is no room for it.
 * A first character that alone exceeds the limit leaves nothing but the marker, and limits without room for that leave
 * the empty text.
 */
export function cutText(text: string, options: CutTextOptions = {}): CutText {
  const limits: Limits = {
    characters: readLimit("maxCharacters", options.maxCharacters, PREVIEW_CHARACTERS),
    tokens: readLimit("maxTokens", options.maxTokens, Number.POSITIVE_INFINITY),
  };
  if (fits(text, limits)) return { text, truncated: false, omittedCharacters: 0 };
  return new TextCut(text, limits).make();
}

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

function fits(text: string, limits: Limits): boolean {
  return text.length <= limits.characters && isWithinTokens(text, limits.tokens);
}

/** Writes the line that stands for what was left out. */
function writeMarker(omitted: number): string {
  return `… (${omitted.toLocaleString("en-US")} more characters)`;
}

class TextCut {
  readonly #text: string;
  readonly #limits: Limits;
  readonly #boundaries: GraphemeBoundaries;
  readonly #isShort: boolean;
  /** Characters for what is kept and the closing of a fence; the longest marker is set aside. */
  readonly #room: number;

  constructor(text: string, limits: Limits) {
    const longest = writeMarker(text.length);
    const half: Limits = { characters: limits.characters / 2 - 1, tokens: limits.tokens / 2 };
    this.#text = text;
    this.#limits = limits;
    this.#isShort = !fits(longest, half);
    const reserved = 1 + (this.#isShort ? SHORT_MARKER.length : longest.length);
    this.#room = Math.max(0, Math.min(limits.characters, text.length) - reserved);
    this.#boundaries = graphemeBoundaries(text, this.#room);
  }

  make(): CutText {
    const best = this.#keep(this.#room);
    if (fits(best.text, this.#limits)) return best;
    return this.#withinTokens() ?? { text: "", truncated: true, omittedCharacters: this.#text.length };
  }

  /** Doubles what is kept until it has too many tokens, then halves the gap; never relies on one growing with the other. */
  #withinTokens(): CutText | undefined {
    let best: CutText | undefined;
    let good = 0;
    let bad = this.#room + 1;
    for (let room = 0; room < bad; room = nextRoom(good, bad)) {
      const cut = this.#keep(room);
      if (fits(cut.text, this.#limits)) {
        best = cut;
        good = room;
      } else bad = room;
      if (bad - good <= Math.max(1, good / 64)) break;
    }
    return best;
  }

  /** Keeps as much as goes into `room` characters together with the closing of a fence. */
  #keep(room: number): CutText {
    let place = this.#pleasantPlace(room);
    for (;;) {
      const seam = fenceSeam(this.#text, place);
      if (seam.open === undefined) return this.#write(seam.place, "");
      const { closing, contentStart, start } = seam.open;
      if (seam.place + 1 + closing.length <= room) return this.#write(seam.place, closing);
      const left = room - closing.length - 1;
      const inside = [this.#pleasantPlace(left), this.#boundaries.atOrBefore(left)];
      // Before its first line rather than empty; another block may have ended only where this one begins.
      place = inside.find((at) => at >= contentStart) ?? start;
    }
  }

  /** The end of a line, else of a word, not far before the limit; else any boundary. */
  #pleasantPlace(room: number): number {
    const place = this.#boundaries.atOrBefore(room);
    const line = this.#text.lastIndexOf("\n", place - 1) + 1;
    if (place > 0 && line > place * (1 - LINE_SEARCH)) return line;
    for (let at = place; at > place * (1 - WORD_SEARCH); at--) {
      if (isSpace(this.#text.charCodeAt(at))) return this.#boundaries.atOrBefore(at);
    }
    return place;
  }

  #write(place: number, closing: string): CutText {
    const omittedCharacters = this.#text.length - place;
    const marker = this.#isShort ? SHORT_MARKER : writeMarker(omittedCharacters);
    const parts = closing === "" ? [marker] : [closing, marker];
    const head = this.#text.slice(0, place);
    if (place > 0 && !head.endsWith("\n")) parts.unshift("");
    return { text: head + parts.join("\n"), truncated: true, omittedCharacters };
  }
}

function nextRoom(good: number, bad: number): number {
  return Math.min(Math.max(64, good * 2), Math.ceil((good + bad) / 2));
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09 || code === 0x0a;
}
