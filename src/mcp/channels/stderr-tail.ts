import { StringDecoder } from "node:string_decoder";
import { toPlainLine } from "../client/plain-line.ts";
import { toVisibleText } from "../client/visible-text.ts";

/** Settings of `createStderrTail`. */
export interface StderrTailOptions {
  /** How many characters are kept; a longer line is told in pieces of this length. */
  readonly chars: number;
  /** Asked for each chunk, so that lines are only cut while somebody listens. */
  readonly listener: () => ((line: string) => void) | undefined;
}

/** What a process said last on its standard error. */
export interface StderrTail {
  /** Without terminal sequences and control characters. */
  readonly text: string;
  push(chunk: Buffer): void;
  /** Tells the line that has no newline. */
  end(): void;
}

/** Makes a tail that keeps a bounded number of characters, whatever comes. */
export function createStderrTail(options: StderrTailOptions): StderrTail {
  return new BoundedTail(options);
}

class BoundedTail implements StderrTail {
  readonly #options: StderrTailOptions;
  readonly #decoder = new StringDecoder("utf8");
  #tail = "";
  #line = "";

  constructor(options: StderrTailOptions) {
    this.#options = options;
  }

  get text(): string {
    return toVisibleText(this.#tail);
  }

  push(chunk: Buffer): void {
    const text = this.#decoder.write(chunk);
    this.#tail = lastChars(this.#tail + text, this.#options.chars);
    const listener = this.#options.listener();
    if (listener) this.#tellLines(text, listener);
    else this.#line = "";
  }

  end(): void {
    const listener = this.#options.listener();
    if (listener && this.#line !== "") listener(toVisibleText(this.#line));
    this.#line = "";
  }

  #tellLines(text: string, listener: (line: string) => void): void {
    const lines = (this.#line + text).split("\n");
    this.#line = lines.pop() ?? "";
    for (const line of lines) this.#tellPieces(line, listener);
    while (this.#line.length > this.#options.chars) {
      listener(toVisibleText(this.#line.slice(0, this.#options.chars)));
      this.#line = this.#line.slice(this.#options.chars);
    }
  }

  #tellPieces(line: string, listener: (line: string) => void): void {
    const { chars } = this.#options;
    for (let from = 0; from === 0 || from < line.length; from += chars) {
      listener(toVisibleText(line.slice(from, from + chars)));
    }
  }
}

function lastChars(text: string, chars: number): string {
  if (text.length <= chars) return text;
  const tail = text.slice(text.length - chars);
  const first = tail.charCodeAt(0);
  return first >= 0xdc00 && first <= 0xdfff ? tail.slice(1) : tail;
}

/** Lines that say nothing by themselves: blank or indented ones, as those of stacks are, closing brackets, the version of Node. */
const SAYS_NOTHING = /^(?:\s|$|[)\]}^]|Node\.js v\d)/;
/** Characters that are looked at, and those that are told. */
const LAST_WORDS = { read: 16_384, told: 199 } as const;

/** Finds the last line that says something, in at most 200 characters; empty where nothing was said. */
export function lastWordsIn(text: string): string {
  const lines = text.slice(-LAST_WORDS.read).split("\n");
  const line = lines.findLast((one) => !SAYS_NOTHING.test(one)) ?? lines.findLast((one) => one.trim() !== "");
  return toPlainLine(line, LAST_WORDS.told);
}
