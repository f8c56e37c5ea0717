/** Orders two semantic versions by precedence: below 0 when the first is older, 0 when only their build differs. */
export function compareVersions(a: string, b: string): number {
  const [first, second] = [parse(a), parse(b)];
  const release = compareLists(first.release, second.release);
  if (release !== 0) return release;
  // A version without a pre-release comes after all of its pre-releases.
  if (first.pre.length === 0 || second.pre.length === 0) return second.pre.length - first.pre.length;
  return compareLists(first.pre, second.pre);
}

interface Version {
  readonly release: readonly string[];
  readonly pre: readonly string[];
}

function parse(version: string): Version {
  const [precedence = ""] = version.split("+", 1);
  const dash = precedence.indexOf("-");
  if (dash < 0) return { release: precedence.split("."), pre: [] };
  return { release: precedence.slice(0, dash).split("."), pre: precedence.slice(dash + 1).split(".") };
}

function compareLists(a: readonly string[], b: readonly string[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const order = comparePart(a[i] ?? "", b[i] ?? "");
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** Numbers by value and before words, words by their characters. */
function comparePart(a: string, b: string): number {
  if (a === b) return 0;
  const [isNumberA, isNumberB] = [isNumber(a), isNumber(b)];
  if (isNumberA !== isNumberB) return isNumberA ? -1 : 1;
  // No leading zeros: the longer number is the larger one, however large it is.
  if (isNumberA && a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
}

function isNumber(part: string): boolean {
  return /^\d+$/.test(part);
}
