import type { CallRow } from "../../protocol.ts";
import { standingOf } from "./call-words.ts";
import { percentile } from "./percentiles.ts";

/** What is told of each operation; percentiles in milliseconds, without subscriptions. */
export const COLUMNS = ["Operation", "Calls", "Errors", "p50", "p90", "p95", "p99", "Max"] as const;

/** How the calls of one operation went, column by column. */
export type Figures = readonly [operation: string, ...(number | undefined)[]];

/** Says how the calls that have ended went, operation by operation. */
export function byOperation(rows: readonly CallRow[]): readonly Figures[] {
  const all = new Map<string, { count: number; errors: number; readonly durations: number[] }>();
  for (const row of rows) {
    const { operation, durationMs, type } = row;
    const outcome = standingOf(row);
    if (outcome === "running") continue;
    const known = all.get(operation) ?? { count: 0, errors: 0, durations: [] };
    all.set(operation, known);
    known.count += 1;
    if (/error/.test(outcome)) known.errors += 1;
    if (type !== "subscription" && durationMs !== undefined) known.durations.push(durationMs);
  }
  return Array.from(all, ([operation, { count, errors, durations }]): Figures => {
    const sorted = Float64Array.from(durations).sort();
    return [operation, count, errors, ...[50, 90, 95, 99, 100].map((percent) => percentile(sorted, percent))];
  });
}

/** Sorts by one column: names upwards, the highest figure first, what has none last. */
export function sortFigures(figures: readonly Figures[], column: number): readonly Figures[] {
  const figure = (one: Figures): number => (column === 0 ? 0 : Number(one[column] ?? -1));
  return figures.toSorted((a, b) => figure(b) - figure(a) || (a[0] < b[0] ? -1 : 1));
}
