/** How many letters may be wrong in a name that is still recognised. */
const MOST_SLIPS = 2;
/** Characters of a name that are compared. */
const MOST_CHARACTERS = 80;

/** Finds the name that may be meant by one that is not known. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const lower = name.slice(0, MOST_CHARACTERS).toLowerCase();
  const begun = known.find((other) => other.toLowerCase().startsWith(lower) && lower.length > 3);
  if (begun !== undefined) return begun;
  let nearest: string | undefined;
  let most = MOST_SLIPS;
  for (const other of known) {
    const slips = countSlips(lower, other.toLowerCase(), most);
    if (slips > most) continue;
    nearest = other;
    most = slips - 1;
  }
  return nearest;
}

/** How many names are suggested. */
const MOST_NAMES = 3;
/** Longer names are not compared. */
const LONGEST_NAME = 200;

/**
 * The names that may be meant by one that is not known, the nearest first, at most three: at most a third of the letters differ, or a
 * part between dots is the same.
 */
export function nearestNames(name: string, known: Iterable<string>): readonly string[] {
  const wanted = name.toLowerCase().slice(0, LONGEST_NAME);
  const scored: { readonly other: string; readonly score: number }[] = [];
  for (const other of known) {
    if (other.length > LONGEST_NAME) continue;
    const score = scoreOf(wanted, other.toLowerCase());
    if (score !== undefined) scored.push({ other, score });
  }
  scored.sort((a, b) => a.score - b.score || (a.other < b.other ? -1 : 1));
  return scored.slice(0, MOST_NAMES).map(({ other }) => other);
}

/** Less is nearer; nothing for a name that is not near. */
function scoreOf(wanted: string, other: string): number | undefined {
  const allowed = Math.max(1, Math.floor(wanted.length / 3));
  const isSameSpace = wanted.includes(".") && spaceOf(wanted) === spaceOf(other);
  const [last, below] = [lastPart(wanted), afterSpace(other)];
  const whole = countSlips(wanted, other, allowed) - (isSameSpace ? 0.5 : 0);
  // A name without its namespace, as it is where there was one source alone.
  const slips = Math.min(whole, countSlips(wanted, below, allowed));
  if (slips <= allowed && slips < wanted.length) return slips;
  if (last.length > 2 && last === lastPart(other)) return allowed + 1;
  return isSameSpace && last.length > 3 && below.includes(last) ? allowed + 1.5 : undefined;
}

function spaceOf(id: string): string {
  return id.slice(0, Math.max(0, id.indexOf(".")));
}

function afterSpace(id: string): string {
  return id.slice(id.indexOf(".") + 1);
}

function lastPart(id: string): string {
  return id.slice(id.lastIndexOf(".") + 1);
}

/** Counts things in words: `1 item`, `2 items`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** Ends a sentence about a name that is not known: with the names that may be meant, or with `otherwise` where there are none. */
export function didYouMean(near: readonly string[] | string | undefined, otherwise = "."): string {
  const quoted = [near ?? []].flat().map((name) => JSON.stringify(name));
  const last = quoted.pop();
  if (last === undefined) return otherwise;
  return `; did you mean ${quoted.length > 0 ? `${quoted.join(", ")} or ` : ""}${last}?`;
}

/** Counts the letters to add, leave out, exchange or swap; more than `most` are not counted to the end. */
function countSlips(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) > most) return most + 1;
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      let cost = Math.min(
        (above[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1),
        (above[j] as number) + 1,
        (row[j - 1] as number) + 1,
      );
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwapped) cost = Math.min(cost, (before[j - 2] as number) + 1);
      row.push(cost);
    }
    if (Math.min(...row) > most) return most + 1;
    before = above;
    above = row;
  }
  return above[b.length] as number;
}
