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
