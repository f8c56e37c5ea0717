/** Ways the bounded parts may be retried, once over or at every character of the text. */
const MAX_WAYS = 10_000;
const MAX_WAYS_PER_CHARACTER = 100;

const ATOM =
  /\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[A-Za-z]|[^0-9kpPu])|\[(?:\\[\s\S]|[^\]\\])*\]|[^\\[\](){}*+?|^$]/y;
const QUANTIFIER = /(?:[*+?]|\{(\d+)(,(\d*))?\})\??/y;

/**
 * Tells whether a pattern is so simple that the native engine's time is bounded: groups are never
 * repeated, there is at most one unbounded repetition, anchored, and there are few ways to retry the bounded ones.
 */
export function isPlainPattern(source: string): boolean {
  let at = 0;
  let ways = 1;
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
      if (source.startsWith("(?", at) && !source.startsWith("(?:", at)) return false;
      at += source.startsWith("(?:", at) ? 3 : 1;
    } else if (character === ")") {
      at++;
      if (take(QUANTIFIER) !== null) return false;
    } else {
      if (take(ATOM) === null) return false;
      const repeats = take(QUANTIFIER);
      if (repeats === null) continue;
      const most = upperBound(repeats);
      if (most === Number.POSITIVE_INFINITY) unbounded++;
      else ways *= most - lowerBound(repeats) + 1;
    }
    if (ways > MAX_WAYS || unbounded > 1) return false;
  }
  if (isAnchored(source)) return unbounded === 0 || ways <= MAX_WAYS_PER_CHARACTER;
  return unbounded === 0 && ways <= MAX_WAYS_PER_CHARACTER;
}

function upperBound(repeats: RegExpExecArray): number {
  const [text, low, range, high] = repeats;
  if (low === undefined) return text.startsWith("?") ? 1 : Number.POSITIVE_INFINITY;
  if (range === undefined) return Number(low);
  return high === "" ? Number.POSITIVE_INFINITY : Number(high);
}

function lowerBound(repeats: RegExpExecArray): number {
  const [, low] = repeats;
  return low === undefined ? 0 : Number(low);
}

/** Anchored means every alternative starts at the beginning; a bar anywhere makes that uncertain. */
function isAnchored(source: string): boolean {
  return source.startsWith("^") && !source.includes("|");
}
