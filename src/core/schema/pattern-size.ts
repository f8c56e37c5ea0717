import { plainPattern } from "./plain-pattern.ts";
import { SchemaError } from "./schema-error.ts";

/** What a pattern takes at least, and each look-ahead, which is tried as a pattern of its own; a plain one takes less. */
const EACH = 10;
const EACH_PLAIN = 4;
/** A Unicode property is a table of hundreds of ranges, read each time it is written. */
const PROPERTY = 100;
/** White space is twenty ranges, and a dot all but four characters. */
const SPACE = 8;
const DOT = 3;
/** Letters of a plain pattern that count as one: the native engine reads them fast, and writes no repetition out. */
const PLAIN_LETTERS = 16;
/** Counts that the linear engine takes. */
const MAX_TIMES = 1_000;

const TOKEN =
  /\\(?:[pP]\{[^}]{0,100}\}|u\{[^}]{0,100}\}|[\s\S])|(\[)(?:\\[\s\S]|[^\]\\])*\]|\{(\d+)(,(\d*))?\}|\(\?[=!]|\(\?:|[\s\S]/y;
const TABLES = /\\(?:([pP])|[sS])/g;

/**
 * Estimates the work of compiling a pattern, in time that grows with its length only: about its letters, each as often as
 * the counted repetitions around it have it written out.
 */
export function patternSize(source: string): number {
  if (plainPattern(source) === undefined) return EACH + expandedSize(source);
  return EACH_PLAIN + Math.ceil(source.length / PLAIN_LETTERS) + tableSize(source);
}

/** The patterns of one schema document, which together may take only so much to compile. */
export class PatternBudget {
  readonly #limit: number;
  readonly #longest: number;
  readonly #seen = new Set<string>();
  #size = 0;

  constructor({
    patternSize,
    patternLength,
  }: { readonly patternSize: number; readonly patternLength: number }) {
    this.#limit = patternSize;
    this.#longest = patternLength;
  }

  /** Counts a pattern the first time it is met; one that is too long is refused for that, later. */
  add(source: string, pointer: string): void {
    if (this.#limit === Number.POSITIVE_INFINITY || source.length > this.#longest) return;
    if (this.#seen.has(source)) return;
    this.#seen.add(source);
    this.#size += patternSize(source);
    if (this.#size <= this.#limit) return;
    throw new SchemaError(
      `The patterns of the schema, their counted repetitions written out, are larger than ${this.#limit} (patternSize).`,
      pointer,
    );
  }
}

function expandedSize(source: string): number {
  const outer: number[] = [];
  let fixed = 0;
  let size = 0;
  let last = 0;
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(source); match !== null; match = TOKEN.exec(source)) {
    const [token, isClass, low, range, high] = match;
    if (low !== undefined) {
      const times = timesOf(low, range, high);
      // Refused as it is, with nothing written out.
      if (times > MAX_TIMES) return source.length;
      size += last * (times - 1);
      last = 0;
    } else if (token.startsWith("(")) {
      if (token.length === 3 && token !== "(?:") fixed += EACH;
      outer.push(size);
      size = 0;
    } else if (token === ")") {
      last = size + 2;
      size = (outer.pop() ?? 0) + last;
    } else {
      // Unclosed, and no regular expression then: looking for its end again and again would take quadratic time.
      if (token === "[") return fixed + size + source.length;
      if (isClass !== undefined) fixed += token.length;
      fixed += token === "." ? DOT : tableSize(token);
      last = 1;
      size++;
    }
  }
  return fixed + outer.reduce((sum, part) => sum + part, size);
}

function timesOf(low: string, range: string | undefined, high: string | undefined): number {
  if (range === undefined) return Math.max(1, Number(low));
  return Math.max(1, Number(high || low));
}

function tableSize(source: string): number {
  let size = 0;
  for (const [, property] of source.matchAll(TABLES)) size += property === undefined ? SPACE : PROPERTY;
  return size;
}
