import { RE2JS } from "re2js";
import { LimitReached } from "./evaluation.ts";
import { MAX_PATTERN_WORK, type SchemaLimits } from "./limits.ts";
import { splitLeadingLookAheads } from "./look-aheads.ts";
import { withoutNeedlessEscapes } from "./needless-escapes.ts";
import { patternSize } from "./pattern-size.ts";
import { isPlainPattern } from "./plain-pattern.ts";
import { toRe2Syntax } from "./re2-syntax.ts";
import { SchemaError } from "./schema-error.ts";

/** A compiled pattern whose time is bounded by the text's length. */
export interface Matcher {
  readonly source: string;
  /** Throws `LimitReached` for a text that is too long for the pattern's size. */
  test(text: string): boolean;
}

/** Patterns remembered, those refused too, and how large all of them may be: a large one takes megabytes. */
const CACHED_PATTERNS = 2_000;
const CACHED_SIZE = 200_000;
const cache = new Map<string, Matcher | string>();
let cachedSize = 0;

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
  const native = toNative(source, unicode ? modern : source, unicode);
  if (native === undefined) return `"${source}" is not a regular expression.`;
  if (isPlainPattern(modern)) return native;
  const linear = unicode ? toLinear(source, modern) : undefined;
  if (linear !== undefined) return linear;
  return `The pattern "${source}" can take exponential time, and no linear engine can run it; write it without back-references, counts above 1,000, and look-around other than look-aheads right behind "^".`;
}

function isUnicodePattern(source: string): boolean {
  return toNative(source, source, true) !== undefined;
}

function toNative(source: string, pattern: string, unicode: boolean): Matcher | undefined {
  try {
    const expression = new RegExp(pattern, unicode ? "u" : "");
    return { source, test: (text) => expression.test(text) };
  } catch {
    return undefined;
  }
}

/** Look-aheads at the start are tried as patterns of their own, for RE2 knows none. */
function toLinear(source: string, pattern: string): Matcher | undefined {
  const parts = splitLeadingLookAheads(pattern) ?? [{ source: pattern, negated: false }];
  const tests: ((text: string) => boolean)[] = [];
  for (const part of parts) {
    const test = toLinearTest(part.source);
    if (test === undefined) return undefined;
    tests.push(part.negated ? (text) => !test(text) : test);
  }
  return { source, test: (text) => tests.every((test) => test(text)) };
}

function toLinearTest(pattern: string): ((text: string) => boolean) | undefined {
  const syntax = countedRepeats(pattern) > MAX_COUNTED_REPEATS ? undefined : toRe2Syntax(pattern);
  if (syntax === undefined) return undefined;
  try {
    const expression = RE2JS.compile(syntax);
    const maxLength = MAX_PATTERN_WORK / expression.programSize();
    return (text) => {
      if (text.length > maxLength) throw new LimitReached("pattern");
      return expression.matcher(text).find();
    };
  } catch {
    return undefined;
  }
}

function countedRepeats(source: string): number {
  let total = 0;
  for (const [, least, most] of source.matchAll(/\{(\d+)(?:,(\d*))?\}/g)) total += Number(most || least);
  return total;
}
