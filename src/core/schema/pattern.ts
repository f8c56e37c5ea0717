import { RE2JS } from "re2js";
import { LimitReached } from "./evaluation.ts";
import { MAX_PATTERN_WORK, type SchemaLimits } from "./limits.ts";
import { SchemaError } from "./schema-issue.ts";

/** A compiled pattern whose time is bounded by the text's length. */
export interface Matcher {
  readonly source: string;
  /** True when no text costs a step of work worth counting. */
  readonly isLight: boolean;
  /** Steps of work that trying it on a text counts as. */
  cost(text: string): number;
  /** Throws `LimitReached` for a text that is too long for the pattern's size. */
  test(text: string): boolean;
}

/** Patterns remembered, those refused too, and how large all of them may be: a large one takes megabytes. */
const CACHED_PATTERNS = 2_000;
const CACHED_SIZE = 200_000;
const cache = new Map<string, Matcher | string>();
let cachedSize = 0;

/** What the engines do in about the time of one step of work: comparisons of one, instructions at a character of the other. */
const NATIVE_PER_STEP = 64;
const LINEAR_PER_STEP = 32;
/** Steps of work that starting the linear engine counts as. */
const LINEAR_STEPS = 16;

/** RE2 writes counted repetitions out, which takes time when there are many. */
const MAX_COUNTED_REPEATS = 10_000;

/** Compiles a pattern so that no text can make it run away, or refuses it. */
export function compilePattern(source: string, pointer: string, limits: SchemaLimits): Matcher {
  if (source.length > limits.patternLength) {
    throw new SchemaError(`The pattern is longer than ${limits.patternLength} characters.`, pointer);
  }
  let known = cache.get(source);
  if (known === undefined) {
    known = choose(source);
    remember(source, known);
  }
  if (typeof known === "string") throw new SchemaError(known, pointer);
  return known;
}

function remember(source: string, known: Matcher | string): void {
  cache.set(source, known);
  cachedSize += patternSize(source);
  for (const oldest of cache.keys()) {
    if (cache.size <= CACHED_PATTERNS && cachedSize <= CACHED_SIZE) return;
    cache.delete(oldest);
    cachedSize -= patternSize(oldest);
  }
}

/** The native engine where its time is plainly bounded, else RE2, whose time always is. */
function choose(source: string): Matcher | string {
  const modern = isUnicodePattern(source) ? source : withoutNeedlessEscapes(source);
  const unicode = isUnicodePattern(modern);
  const native = toNative(unicode ? modern : source, unicode);
  if (native === undefined) return `"${source}" is not a regular expression.`;
  const plain = plainPattern(modern);
  if (plain !== undefined) return { source, ...nativeCost(plain), test: (text) => native.test(text) };
  const linear = unicode ? toLinear(source, modern) : undefined;
  if (linear !== undefined) return linear;
  return `The pattern "${source}" can take exponential time, and no linear engine can run it; write it without back-references, counts above 1,000, and look-around other than look-aheads right behind "^".`;
}

function isUnicodePattern(source: string): boolean {
  return toNative(source, true) !== undefined;
}

function toNative(pattern: string, unicode: boolean): RegExp | undefined {
  try {
    return new RegExp(pattern, unicode ? "u" : "");
  } catch {
    return undefined;
  }
}

function nativeCost({ ways, length, everywhere }: PlainPattern): Pick<Matcher, "cost" | "isLight"> {
  const each = Math.max(ways * length, 1);
  if (everywhere)
    return { isLight: false, cost: (text) => Math.floor((text.length * each) / NATIVE_PER_STEP) };
  if (each < NATIVE_PER_STEP) return { isLight: true, cost: () => 0 };
  const cost = (text: string) => Math.floor((ways * Math.min(length, text.length + 1)) / NATIVE_PER_STEP);
  return { isLight: false, cost };
}

/** Look-aheads at the start are tried as patterns of their own, for RE2 knows none. */
function toLinear(source: string, pattern: string): Matcher | undefined {
  const parts = splitLeadingLookAheads(pattern) ?? [{ source: pattern, negated: false }];
  const tests: ((text: string) => boolean)[] = [];
  let size = 0;
  for (const part of parts) {
    const linear = toLinearTest(part.source);
    if (linear === undefined) return undefined;
    const { test } = linear;
    tests.push(part.negated ? (text) => !test(text) : test);
    size += linear.size;
  }
  // A text beyond the limit of the pattern is not tried: the test says so.
  const cost = (text: string) =>
    LINEAR_STEPS * tests.length +
    Math.floor(Math.min(text.length * size, MAX_PATTERN_WORK) / LINEAR_PER_STEP);
  return { source, isLight: false, cost, test: (text) => tests.every((test) => test(text)) };
}

interface LinearTest {
  readonly size: number;
  readonly test: (text: string) => boolean;
}

function toLinearTest(pattern: string): LinearTest | undefined {
  const syntax = countedRepeats(pattern) > MAX_COUNTED_REPEATS ? undefined : toRe2Syntax(pattern);
  if (syntax === undefined) return undefined;
  try {
    const expression = RE2JS.compile(syntax);
    const size = expression.programSize();
    const maxLength = MAX_PATTERN_WORK / size;
    const test = (text: string) => {
      if (text.length > maxLength) throw new LimitReached("pattern");
      return expression.matcher(text).find();
    };
    return { size, test };
  } catch {
    return undefined;
  }
}

function countedRepeats(source: string): number {
  let total = 0;
  for (const [, least, most] of source.matchAll(/\{(\d+)(?:,(\d*))?\}/g)) total += Number(most || least);
  return total;
}

const BACK_REFERENCE = /\\(?:[1-9]|k)/;
const OTHER_GROUP = /\((?!\?:)\?/;

/** A pattern taken apart: it matches where every part does, or does not where the part is negated. */
export interface PatternPart {
  readonly source: string;
  readonly negated: boolean;
}

/**
 * Takes a pattern of the form `^(?=a)(?!b)c` apart into patterns without look-ahead, each tried once; undefined for any
 * other use of look-around or back-references.
 */
export function splitLeadingLookAheads(source: string): PatternPart[] | undefined {
  if (!source.startsWith("^") || BACK_REFERENCE.test(source)) return undefined;
  const parts: PatternPart[] = [];
  let at = 1;
  while (source.startsWith("(?=", at) || source.startsWith("(?!", at)) {
    const end = closingParenthesis(source, at);
    if (end === undefined) return undefined;
    parts.push({ source: `^(?:${source.slice(at + 3, end)})`, negated: source[at + 2] === "!" });
    at = end + 1;
  }
  if (hasTopLevelBar(source.slice(at))) return undefined;
  parts.push({ source: `^${source.slice(at)}`, negated: false });
  return parts.some((part) => OTHER_GROUP.test(part.source)) ? undefined : parts;
}

/** Finds where the group that opens at `start` ends, and refuses one that is repeated. */
function closingParenthesis(source: string, start: number): number | undefined {
  for (const [at, depth] of parentheses(source.slice(start))) {
    if (depth !== 0 || source[start + at] !== ")") continue;
    const end = start + at;
    return /[*+?{]/.test(source[end + 1] ?? "") ? undefined : end;
  }
  return undefined;
}

/** An alternative of its own would not be behind the look-aheads, nor anchored. */
function hasTopLevelBar(source: string): boolean {
  for (const [at, depth] of parentheses(source)) if (depth === 0 && source[at] === "|") return true;
  return false;
}

/** Walks the parentheses and bars that count, with the depth behind each. */
function* parentheses(source: string): Generator<[at: number, depth: number]> {
  let depth = 0;
  let inClass = false;
  for (let at = 0; at < source.length; at++) {
    const character = source[at];
    if (character === "\\") at++;
    else if (inClass) inClass = character !== "]";
    else if (character === "[") inClass = true;
    else if (character === "(") yield [at, ++depth];
    else if (character === ")") yield [at, --depth];
    else if (character === "|") yield [at, depth];
  }
}

const ESCAPE =
  /\\(?:([pP])\{([^}]*)\}|u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|c([A-Za-z])|([\s\S]))/y;

const NAMED_GROUP = /^\(\?<[^=!>][^>]*>/;
const MAX_GROUP_NAME = 100;

/** What ECMAScript means by `\s`, which RE2 reads as ASCII only. */
const SPACE =
  "\\t\\n\\x{b}\\f\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}";
const NOT_SPACE =
  "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}";
const LINE_END = "\\n\\r\\x{2028}\\x{2029}";
const CONTROL: Readonly<Record<string, string>> = {
  t: "\\t",
  n: "\\n",
  r: "\\r",
  f: "\\f",
  v: "\\x{b}",
  0: "\\x{0}",
};

/** Rewrites an ECMAScript pattern for RE2 with the same meaning; undefined when RE2 has no way to say it. */
export function toRe2Syntax(source: string): string | undefined {
  let result = "";
  let inClass = false;
  for (let at = 0; at < source.length; ) {
    const character = source[at] as string;
    if (character === "\\") {
      ESCAPE.lastIndex = at;
      const match = ESCAPE.exec(source);
      const escaped = match === null ? undefined : rewriteEscape(match, inClass);
      if (escaped === undefined) return undefined;
      result += escaped;
      at = ESCAPE.lastIndex;
      continue;
    }
    if (!inClass && character === "(") {
      const name = NAMED_GROUP.exec(source.slice(at, at + MAX_GROUP_NAME));
      if (name === null && !isPlainGroup(source, at)) return undefined;
      // Nothing refers back to the name, so the group can go without.
      at += name === null ? 0 : name[0].length - 1;
    }
    result += inClass ? rewriteInClass(character) : rewriteOutside(character);
    if (!inClass && character === "[") {
      const rest = source.slice(at + 1);
      // `[]` never matches and `[^]` always does; RE2 has neither.
      if (rest.startsWith("]") || rest.startsWith("^]")) return undefined;
      inClass = true;
      if (rest.startsWith("^")) {
        result += "^";
        at++;
      }
    } else if (character === "]") inClass = false;
    at++;
  }
  return result;
}

function isPlainGroup(source: string, at: number): boolean {
  return source[at + 1] !== "?" || source[at + 2] === ":";
}

function rewriteOutside(character: string): string {
  return character === "." ? `[^${LINE_END}]` : character;
}

/** RE2 reads `[:` inside a class as the start of a named class. */
function rewriteInClass(character: string): string {
  return character === "[" ? "\\[" : character;
}

function rewriteEscape(match: RegExpExecArray, inClass: boolean): string | undefined {
  const [text, property, name, long, short, byte, control, single] = match;
  if (property !== undefined) return text;
  const hex = long ?? short ?? byte;
  if (hex !== undefined) return isSurrogate(hex) ? undefined : `\\x{${hex}}`;
  if (control !== undefined) return `\\x{${(control.charCodeAt(0) % 32).toString(16)}}`;
  if (single === undefined || name !== undefined) return undefined;
  if (single === "s") return inClass ? SPACE : `[${SPACE}]`;
  if (single === "S") return inClass ? NOT_SPACE : `[^${SPACE}]`;
  if ("dDwW".includes(single)) return text;
  if (single === "b" || single === "B") return inClass ? (single === "b" ? "\\x{8}" : undefined) : text;
  if (Object.hasOwn(CONTROL, single)) return CONTROL[single];
  if (/[A-Za-z0-9]/.test(single)) return undefined;
  return single.charCodeAt(0) < 128 ? text : single;
}

function isSurrogate(hex: string): boolean {
  const code = Number.parseInt(hex, 16);
  return code >= 0xd800 && code <= 0xdfff;
}

/**
 * Drops the backslash before punctuation that means itself, such as `\@` or `\-`. Unicode mode refuses these, and older
 * patterns are full of them; without it they would be read by other rules for everything else as well.
 */
export function withoutNeedlessEscapes(source: string): string {
  let result = "";
  let inClass = false;
  for (let at = 0; at < source.length; at++) {
    const character = source[at] as string;
    if (character === "\\") {
      const escaped = source[++at] ?? "";
      result += isNeedless(escaped, inClass) ? escaped : `\\${escaped}`;
      continue;
    }
    if (character === "[") inClass = true;
    else if (character === "]") inClass = false;
    result += character;
  }
  return result;
}

function isNeedless(escaped: string, inClass: boolean): boolean {
  if (escaped === "-") return !inClass;
  return !/[\w\s^$\\.*+?()[\]{}|/,:=!<]|^$/.test(escaped);
}

/** Steps the native engine may take: once over, or at every character of the text. */
const MAX_STEPS = 100_000;
const MAX_STEPS_PER_CHARACTER = 500;

const ATOM =
  /\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[A-Za-z]|[^0-9kpPu])|\[(?:\\[\s\S]|[^\]\\])*\]|[^\\[\](){}*+?|^$]/y;
const QUANTIFIER = /(?:[*+?]|\{(\d+)(,(\d*))?\})\??/y;

/** What the native engine takes for a plain pattern, at most. */
export interface PlainPattern {
  /** Ways to try it at one place of the text. */
  readonly ways: number;
  /** Characters it looks at in one of them, apart from what a repetition without bounds takes. */
  readonly length: number;
  /** True when it is tried at every place of the text, or takes all of it. */
  readonly everywhere: boolean;
}

/**
 * Reads a pattern that is so simple that the native engine's time is bounded: groups are never repeated, there is at most
 * one unbounded repetition, anchored, and the rest is short, with few ways to retry it. Undefined for any other.
 */
export function plainPattern(source: string): PlainPattern | undefined {
  let at = 0;
  let ways = 1;
  let length = 0;
  let unbounded = 0;
  const take = (sticky: RegExp): RegExpExecArray | null => {
    sticky.lastIndex = at;
    const match = sticky.exec(source);
    if (match !== null) at = sticky.lastIndex;
    return match;
  };
  while (at < source.length) {
    const character = source[at];
    if (character === "^" || character === "$") at++;
    else if (character === "|") {
      ways *= 2;
      at++;
    } else if (character === "(") {
      if (source.startsWith("(?", at) && !source.startsWith("(?:", at)) return undefined;
      at += source.startsWith("(?:", at) ? 3 : 1;
    } else if (character === ")") {
      at++;
      if (take(QUANTIFIER) !== null) return undefined;
    } else {
      if (take(ATOM) === null) return undefined;
      const repeats = take(QUANTIFIER);
      const [least, most] = repeats === null ? [1, 1] : bounds(repeats);
      if (most === Number.POSITIVE_INFINITY) unbounded++;
      else ways *= most - least + 1;
      length += most === Number.POSITIVE_INFINITY ? least : most;
    }
    if (ways * length > MAX_STEPS || unbounded > 1) return undefined;
  }
  if (isAnchored(source) && unbounded === 0) return { ways, length, everywhere: false };
  if (!isAnchored(source) && unbounded > 0) return undefined;
  return ways * length <= MAX_STEPS_PER_CHARACTER ? { ways, length, everywhere: true } : undefined;
}

function bounds([text, low, range, high]: RegExpExecArray): [least: number, most: number] {
  if (low === undefined) return text.startsWith("?") ? [0, 1] : [0, Number.POSITIVE_INFINITY];
  if (range === undefined) return [Number(low), Number(low)];
  return [Number(low), high === "" ? Number.POSITIVE_INFINITY : Number(high)];
}

/** Anchored means every alternative starts at the beginning; a bar anywhere makes that uncertain. */
function isAnchored(source: string): boolean {
  return source.startsWith("^") && !source.includes("|");
}

/** What a pattern takes at least, and each look-ahead, which is tried as a pattern of its own; a plain one takes less. */
const EACH = 10;
const EACH_PLAIN = 4;
/** A Unicode property is a table of hundreds of ranges, read each time it is written. */
const PROPERTY = 100;
/** White space is twenty ranges, and a dot all but four characters. */
const SPACE_SIZE = 8;
const DOT_SIZE = 3;
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
      fixed += token === "." ? DOT_SIZE : tableSize(token);
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
  for (const [, property] of source.matchAll(TABLES)) size += property === undefined ? SPACE_SIZE : PROPERTY;
  return size;
}
