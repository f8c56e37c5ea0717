import type { CallRow } from "../../protocol.ts";

/** One call of a family, in its place; shares of the whole time, from 0 to 1. */
export interface Hop {
  readonly row: CallRow;
  /** 0 for a call that nobody here made. */
  readonly depth: number;
  readonly left: number;
  readonly width: number;
  /** The part of `width`, at its beginning, in which it waited for its turn. */
  readonly waited: number;
}

/** A family of calls over time. */
export interface FamilyLayout {
  /** Callers before what they called, in the order they began. */
  readonly hops: readonly Hop[];
  readonly spanMs: number;
}

/** Lays out a family given in the order its calls began; whose caller is not known stands at the top. */
export function layOutFamily(family: readonly CallRow[], now: number): FamilyLayout {
  const lengthOf = (row: CallRow): number => Math.max(0, row.durationMs ?? now - row.startedAt);
  const startedAt = family.reduce((least, row) => Math.min(least, row.startedAt), Number.POSITIVE_INFINITY);
  const endedAt = family.reduce((most, row) => Math.max(most, row.startedAt + lengthOf(row)), startedAt);
  const spanMs = Math.max(endedAt - startedAt, 0.001);
  const hops = inOrder(family).map(({ row, depth }): Hop => {
    const width = lengthOf(row) / spanMs;
    const waited = Math.min((row.waitedMs ?? 0) / spanMs, width);
    return { row, depth, left: (row.startedAt - startedAt) / spanMs, width, waited };
  });
  return { hops, spanMs };
}

type Placed = Pick<Hop, "row" | "depth">;

/** Without recursion: a family may be thousands of calls deep. */
function inOrder(family: readonly CallRow[]): readonly Placed[] {
  const children = new Map<number | undefined, CallRow[]>(family.map(({ seq }) => [seq, []]));
  const roots: CallRow[] = [];
  for (const row of family) (children.get(row.parent) ?? roots).push(row);
  const placed: Placed[] = [];
  const waiting = roots.toReversed().map((row): Placed => ({ row, depth: 0 }));
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    placed.push(next);
    const { row, depth } = next;
    for (const child of (children.get(row.seq) ?? []).toReversed())
      waiting.push({ row: child, depth: depth + 1 });
  }
  return placed;
}
