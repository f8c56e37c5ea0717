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
