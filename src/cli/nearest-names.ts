import { countSlips, didYouMean } from "../core/text/nearest-name.ts";

/** How many names are suggested. */
const MOST_NAMES = 3;
/** Longer names are not compared. */
const MOST_CHARACTERS = 200;

/**
 * The names that may be meant by one that is not known, the nearest first, at most three: at most a third of the letters differ, or a
 * part between dots is the same.
 */
export function nearestNames(name: string, known: Iterable<string>): readonly string[] {
  const wanted = name.toLowerCase().slice(0, MOST_CHARACTERS);
  const scored: { readonly other: string; readonly score: number }[] = [];
  for (const other of known) {
    if (other.length > MOST_CHARACTERS) continue;
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
  const whole = countSlips(wanted, other, allowed);
  if (whole <= allowed && whole < wanted.length) return isSameSpace ? whole - 0.5 : whole;
  // A name without its namespace, as it is where there was one source alone.
  const [last, below] = [lastPart(wanted), afterSpace(other)];
  const tail = countSlips(wanted, below, allowed);
  if (tail <= allowed && tail < wanted.length) return tail;
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

/** The sentence for an operation that is not there; `list` is the command that shows what is. */
export function describeMissing(id: string, near: readonly string[], list = "waybill list"): string {
  return `There is no operation "${id}"${didYouMean(near, `; "${list}" shows what there is.`)}`;
}
