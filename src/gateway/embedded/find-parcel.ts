import type { Parcel } from "./parcel.ts";

/** How many ids are offered in place of one that is not there. */
const OFFERED = 3;

/** Finds a parcel however its number is written: `p-1001` and `1001` are `P-1001`. */
export function findParcel(parcels: readonly Parcel[], id: string): Parcel | undefined {
  const spelt = spellId(id);
  return parcels.find((parcel) => parcel.id === spelt);
}

function spellId(id: string): string {
  const upper = id.trim().toUpperCase();
  return /^[0-9]/.test(upper) ? `P-${upper}` : upper;
}

/** What is said of a parcel that is not there. */
export function describeMissing(id: string, parcels: readonly Parcel[]) {
  const nearest = nearestIds(
    spellId(id),
    parcels.map((parcel) => parcel.id),
  );
  const hint = nearest.length === 0 ? "" : `; the nearest are ${nearest.join(", ")}`;
  return { message: `There is no parcel ${JSON.stringify(id)}${hint}.`, details: { nearest } };
}

/** The ids that differ least from one that is not there, the likeliest first. */
function nearestIds(wanted: string, ids: readonly string[]): string[] {
  const judged = ids.map((id) => ({ id, difference: differenceOf(wanted, id) }));
  // Of ids that are equally near, the later ones: people ask for what they sent last.
  judged.sort((a, b) => a.difference - b.difference || (a.id < b.id ? 1 : -1));
  return judged.slice(0, OFFERED).map(({ id }) => id);
}

/** Letters that differ, counted from both ends and the smaller taken: a letter left out shifts all that follow. */
function differenceOf(a: string, b: string): number {
  const longer = Math.max(a.length, b.length);
  let fromStart = longer;
  let fromEnd = longer;
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    if (a[i] === b[i]) fromStart -= 1;
    if (a[a.length - 1 - i] === b[b.length - 1 - i]) fromEnd -= 1;
  }
  return Math.min(fromStart, fromEnd);
}
