import { RE2JS } from "re2js";
import { LimitReached } from "./evaluation.ts";
import { MAX_PATTERN_WORK, type SchemaLimits } from "./limits.ts";
import { splitLeadingLookAheads } from "./look-aheads.ts";
import { withoutNeedlessEscapes } from "./needless-escapes.ts";
import { patternSize } from "./pattern-size.ts";
import { type PlainPattern, plainPattern } from "./plain-pattern.ts";
import { toRe2Syntax } from "./re2-syntax.ts";
import { SchemaError } from "./schema-error.ts";

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
