import { RE2JS } from "re2js";
import { isSafePattern } from "redos-detector";
import { LimitReached } from "./evaluation.ts";
import { MAX_PATTERN_WORK, type SchemaLimits } from "./limits.ts";
import { splitLeadingLookAheads } from "./look-aheads.ts";
import { withoutNeedlessEscapes } from "./needless-escapes.ts";
import { isPlainPattern } from "./plain-pattern.ts";
import { toRe2Syntax } from "./re2-syntax.ts";
import { SchemaError } from "./schema-error.ts";

/** A compiled pattern whose time is bounded by the text's length. */
export interface Matcher {
  readonly source: string;
  /** Throws `LimitReached` for a text that is too long for the pattern's size. */
  test(text: string): boolean;
}

/** Patterns remembered, those refused too. */
const CACHE_SIZE = 2_000;
const cache = new Map<string, Matcher | string>();

/** RE2 writes counted repetitions out, which takes time when there are many. */
const MAX_COUNTED_REPEATS = 10_000;

/** The detector's own cost grows with length and nesting; beyond these it is not asked. */
const DETECTOR = { length: 200, nesting: 5, maxSteps: 200, maxScore: 20 } as const;

/** Compiles a pattern so that no text can make it run away, or refuses it. */
export function compilePattern(source: string, pointer: string, limits: SchemaLimits): Matcher {
  if (source.length > limits.patternLength) {
    throw new SchemaError(`The pattern is longer than ${limits.patternLength} characters.`, pointer);
  }
  let known = cache.get(source);
  if (known === undefined) {
    known = choose(source);
    if (cache.size >= CACHE_SIZE) cache.delete(cache.keys().next().value ?? "");
    cache.set(source, known);
  }
  if (typeof known === "string") throw new SchemaError(known, pointer);
  return known;
}

/** The native engine where its time is plainly bounded, else RE2, else the native engine if the detector vouches for it. */
function choose(source: string): Matcher | string {
  const modern = isUnicodePattern(source) ? source : withoutNeedlessEscapes(source);
  const unicode = isUnicodePattern(modern);
  const native = toNative(source, unicode ? modern : source, unicode);
  if (native === undefined) return `"${source}" is not a regular expression.`;
  if (isPlainPattern(modern)) return native;
  const linear = unicode ? toLinear(source, modern) : undefined;
  if (linear !== undefined) return linear;
  if (isVouchedFor(modern, unicode)) return native;
  return `The pattern "${source}" can take exponential time and cannot be run by a linear engine; write it without look-around, back-references or nested repetition.`;
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

function toLinear(source: string, pattern: string): Matcher | undefined {
  const syntax = countedRepeats(pattern) > MAX_COUNTED_REPEATS ? undefined : toRe2Syntax(pattern);
  if (syntax === undefined) return undefined;
  try {
    const expression = RE2JS.compile(syntax);
    const maxLength = MAX_PATTERN_WORK / expression.programSize();
    const test = (text: string) => {
      if (text.length > maxLength) throw new LimitReached("pattern");
      return expression.matcher(text).find();
    };
    return { source, test };
  } catch {
    return undefined;
  }
}

/**
 * The detector takes a look-around at the end for one that always holds, and knows no cost for one that is tried at many
 * places. So only those right at an anchored start are let through, and each part has to stand by itself.
 */
function isVouchedFor(source: string, unicode: boolean): boolean {
  if (source.length > DETECTOR.length || nesting(source) > DETECTOR.nesting) return false;
  const parts = splitLeadingLookAheads(source);
  if (parts === undefined) return false;
  return parts.every((part) => isPlainPattern(part) || isSafe(part, unicode));
}

function isSafe(source: string, unicode: boolean): boolean {
  try {
    const { maxSteps, maxScore } = DETECTOR;
    return isSafePattern(source, { unicode, maxSteps, maxScore, timeout: Number.POSITIVE_INFINITY }).safe;
  } catch {
    return false;
  }
}

function countedRepeats(source: string): number {
  let total = 0;
  for (const [, least, most] of source.matchAll(/\{(\d+)(?:,(\d*))?\}/g)) total += Number(most || least);
  return total;
}

function nesting(source: string): number {
  let depth = 0;
  let deepest = 0;
  for (const character of source) {
    if (character === "(") deepest = Math.max(deepest, ++depth);
    else if (character === ")") depth--;
  }
  return deepest;
}
