/** Follows a body, so that a part which would match by its beginning alone is judged by how it fails. */
const NEVER = "\\u{f8ff}";
const BACK_REFERENCE = /\\(?:[1-9]|k)/;

/**
 * Takes a pattern of the form `^(?=a)(?!b)c` apart into patterns without look-ahead, whose times add up to its own;
 * undefined for any other use of look-around or back-references.
 */
export function splitLeadingLookAheads(source: string): string[] | undefined {
  if (!source.startsWith("^") || BACK_REFERENCE.test(source)) return undefined;
  const parts: string[] = [];
  let at = 1;
  while (source.startsWith("(?=", at) || source.startsWith("(?!", at)) {
    const end = closingParenthesis(source, at);
    if (end === undefined) return undefined;
    parts.push(`^(?:${source.slice(at + 3, end)})${NEVER}`);
    at = end + 1;
  }
  parts.push(`^${source.slice(at)}`);
  return parts.some((part) => /\((?!\?:)\?/.test(part)) ? undefined : parts;
}

/** Finds where the group that opens at `start` ends, and refuses one that is repeated. */
function closingParenthesis(source: string, start: number): number | undefined {
  let depth = 0;
  let inClass = false;
  for (let at = start; at < source.length; at++) {
    const character = source[at];
    if (character === "\\") at++;
    else if (inClass) inClass = character !== "]";
    else if (character === "[") inClass = true;
    else if (character === "(") depth++;
    else if (character === ")" && --depth === 0) return /[*+?{]/.test(source[at + 1] ?? "") ? undefined : at;
  }
  return undefined;
}
