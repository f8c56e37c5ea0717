import { type GraphemeBoundaries, graphemeBoundaries } from "../../core/text/truncate-text.ts";
import { estimateTokens, isWithinTokens, readLimit } from "./token-budget.ts";

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

/** A fenced block that is still open. */
export interface OpenFence {
  /** Where the line with the opening marker begins. */
  readonly start: number;
  /** Where the line behind the opening marker begins. */
  readonly contentStart: number;
  /** A line that closes the block, in the quotes and list items it stands in. */
  readonly closing: string;
  readonly marker: string;
}

/** A place to cut Markdown at, and the fenced block that is open there. */
export interface FenceSeam {
  readonly place: number;
  readonly open: OpenFence | undefined;
}

/** Quotes and list items followed into each other; what lies deeper is read as text. */
const MAX_CONTAINERS = 32;

const LINE_END = /\r\n|\n|\r/g;
const QUOTE = / {0,3}>[ \t]?/y;
const ITEM = / {0,3}([-+*]|(\d{1,9})[.)])(?=[ \t]|$)/y;
const HEADING = / {0,3}#{1,6}(?=[ \t]|$)/y;

/** A list item by the columns its contents are indented by; undefined is a quote. */
type Container = number | undefined;

/**
 * Finds where Markdown may be cut, at a place or a little before it: never inside a line that opens or closes a fenced
 * block. Follows CommonMark for fences, quotes, list items and paragraphs; HTML blocks are read as text.
 */
export function fenceSeam(text: string, place: number): FenceSeam {
  const blocks = new Blocks();
  for (let start = 0; start < place; ) {
    LINE_END.lastIndex = start;
    const found = LINE_END.exec(text);
    const end = found?.index ?? text.length;
    const next = found === null ? end : LINE_END.lastIndex;
    if (end > place) {
      const part = text.slice(start, place);
      if (blocks.isFence(text.slice(start, end)) || blocks.isFence(part))
        return { place: start, open: blocks.open };
      blocks.read(part, start, place);
      break;
    }
    blocks.read(text.slice(start, end), start, next);
    start = next;
  }
  return { place, open: blocks.open };
}

/** What is open between two lines of Markdown. */
class Blocks {
  open: OpenFence | undefined;
  #containers: Container[] = [];
  #inParagraph = false;

  /** Tells whether a line would open or close a fenced block. */
  isFence(line: string): boolean {
    const trial = new Blocks();
    trial.open = this.open;
    trial.#containers = [...this.#containers];
    trial.#inParagraph = this.#inParagraph;
    trial.read(line, -1, -1);
    return trial.open !== this.open;
  }

  read(line: string, start: number, next: number): void {
    const cursor = new LineCursor(line);
    const entered = this.#enter(cursor);
    if (entered < this.#containers.length) {
      if (this.#isLazy(cursor)) return;
      this.#containers.length = entered;
      this.open = undefined;
      this.#inParagraph = false;
    }
    if (this.open === undefined) this.#readOutside(cursor, start, next);
    else if (closes(this.open.marker, cursor)) this.open = undefined;
  }

  /** Counts the containers of the line before that this line continues. */
  #enter(cursor: LineCursor): number {
    for (const [index, container] of this.#containers.entries()) {
      const isInside = container === undefined ? cursor.take(QUOTE) !== null : cursor.takeIndent(container);
      if (!isInside) return index;
    }
    return this.#containers.length;
  }

  /** A paragraph goes on without the marks of its containers, as long as nothing else begins. */
  #isLazy(cursor: LineCursor): boolean {
    if (!this.#inParagraph || this.open !== undefined || cursor.isBlank()) return false;
    if (isBreakOrHeading(cursor) || cursor.fence() !== undefined) return false;
    return cursor.match(QUOTE) === null && cursor.match(ITEM) === null;
  }

  #readOutside(cursor: LineCursor, start: number, next: number): void {
    while (this.#containers.length < MAX_CONTAINERS && this.#openContainer(cursor)) this.#inParagraph = false;
    const fence = cursor.fence();
    if (fence !== undefined && !(fence.marker.startsWith("`") && cursor.has("`", fence.end))) {
      const { marker } = fence;
      this.open = { start, contentStart: next, closing: this.#prefix() + marker, marker };
      this.#inParagraph = false;
    } else {
      const isText = !cursor.isBlank() && !isBreakOrHeading(cursor);
      this.#inParagraph = isText && (this.#inParagraph || cursor.indent() < 4);
    }
  }

  #openContainer(cursor: LineCursor): boolean {
    if (cursor.take(QUOTE) !== null) {
      this.#containers.push(undefined);
      return true;
    }
    if (isBreakOrHeading(cursor)) return false;
    const item = cursor.match(ITEM);
    if (item === null || (this.#inParagraph && !mayInterrupt(item, cursor))) return false;
    cursor.take(ITEM);
    const spaces = cursor.isBlank() || cursor.indent() > 4 ? 1 : cursor.indent();
    cursor.takeIndent(spaces);
    this.#containers.push(item[0].length + spaces);
    return true;
  }

  #prefix(): string {
    return this.#containers.map((indent) => (indent === undefined ? "> " : " ".repeat(indent))).join("");
  }
}

function closes(opening: string, cursor: LineCursor): boolean {
  const fence = cursor.fence();
  if (fence === undefined || fence.marker[0] !== opening[0]) return false;
  return fence.marker.length >= opening.length && cursor.isBlankFrom(fence.end);
}

function isBreakOrHeading(cursor: LineCursor): boolean {
  return cursor.match(HEADING) !== null || cursor.isThematicBreak();
}

/** Within a paragraph only an item with text, numbered 1 if at all, begins a list. */
function mayInterrupt(item: RegExpExecArray, cursor: LineCursor): boolean {
  return (item[2] === undefined || Number(item[2]) === 1) && !cursor.isBlankFrom(item.index + item[0].length);
}

/** A run of backticks or tildes at the beginning of a line. */
export interface FenceMark {
  readonly marker: string;
  /** Where in the line the run ends. */
  readonly end: number;
}

/** Reads one line of Markdown from left to right, each character a few times; tabs reach to multiples of four columns. */
class LineCursor {
  readonly #line: string;
  #at = 0;
  #column = 0;

  constructor(line: string) {
    this.#line = line;
  }

  /** Tries a sticky pattern here; it must not loop, for lines may be megabytes long. */
  match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#line);
  }

  /** Tries a sticky pattern and steps over what it matched. */
  take(pattern: RegExp): RegExpExecArray | null {
    const found = this.match(pattern);
    if (found !== null) this.#advance(this.#at + found[0].length);
    return found;
  }

  /** Steps over the indentation of a list item; a blank line needs none. */
  takeIndent(columns: number): boolean {
    if (this.isBlank()) return true;
    if (this.indent() < columns) return false;
    const target = this.#column + columns;
    while (this.#column < target) this.#advance(this.#at + 1);
    return true;
  }

  /** Columns of white space ahead, up to 32. */
  indent(): number {
    let column = this.#column;
    for (let at = this.#at; this.#isSpace(at) && column - this.#column < 32; at++) {
      column += this.#line[at] === "\t" ? 4 - (column % 4) : 1;
    }
    return column - this.#column;
  }

  /** The run of three or more backticks or tildes ahead, indented by less than four columns. */
  fence(): FenceMark | undefined {
    const start = this.#textStart();
    const letter = this.#line[start];
    if (letter !== "`" && letter !== "~") return undefined;
    let end = start;
    while (this.#line[end] === letter) end++;
    return end - start < 3 ? undefined : { marker: this.#line.slice(start, end), end };
  }

  /** Tells whether nothing but three or more of `*`, `-` or `_` is ahead. */
  isThematicBreak(): boolean {
    const start = this.#textStart();
    const letter = this.#line[start];
    if (letter !== "*" && letter !== "-" && letter !== "_") return false;
    let count = 0;
    for (let at = start; at < this.#line.length; at++) {
      if (this.#line[at] === letter) count++;
      else if (!this.#isSpace(at)) return false;
    }
    return count >= 3;
  }

  /** Tells whether nothing but white space is ahead. */
  isBlank(): boolean {
    return this.isBlankFrom(this.#at);
  }

  /** Tells whether nothing but white space follows a place in the line. */
  isBlankFrom(place: number): boolean {
    let at = place;
    while (this.#isSpace(at)) at++;
    return at >= this.#line.length;
  }

  /** Tells whether a letter follows anywhere behind a place in the line. */
  has(letter: string, place: number): boolean {
    return this.#line.includes(letter, place);
  }

  #textStart(): number {
    let at = this.#at;
    while (this.#line[at] === " " && at - this.#at < 3) at++;
    return at;
  }

  #isSpace(at: number): boolean {
    return this.#line[at] === " " || this.#line[at] === "\t";
  }

  #advance(to: number): void {
    for (; this.#at < to; this.#at++) {
      this.#column += this.#line[this.#at] === "\t" ? 4 - (this.#column % 4) : 1;
    }
  }
}
