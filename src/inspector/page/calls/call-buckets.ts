import type { CallRow } from "../../protocol.ts";
import { type RowOutcome, standingOf } from "./call-words.ts";

/** The outcomes, in the order they are stacked. */
export const ENDED: readonly RowOutcome[] = ["ok", "tool_error", "call_error", "cancelled"];

/** Milliseconds of one bucket. */
export const STEP_MS = 5_000;

/** Buckets that are held: the last five minutes. */
export const BUCKETS = 60;

/** Durations that are held of one bucket; when there are more, each stands for several. */
export const MOST_SAMPLES = 200;

/** The calls that ended within one stretch of time. */
export interface Bucket {
  /** Steps since the Unix epoch. */
  readonly slot: number;
  readonly counts: Record<RowOutcome, number>;
  /** Calls whose duration counts. */
  timed: number;
  /** Milliseconds, of some of them. */
  readonly durations: number[];
}

/** How some calls went; milliseconds. */
export interface Summary {
  readonly calls: number;
  readonly counts: Readonly<Record<RowOutcome, number>>;
  readonly p50: number | undefined;
  readonly p95: number | undefined;
}

const noCounts = (): Record<RowOutcome, number> => ({
  ok: 0,
  tool_error: 0,
  call_error: 0,
  cancelled: 0,
});
const emptyBucket = (slot: number): Bucket => ({ slot, counts: noCounts(), timed: 0, durations: [] });

/** Counts what ended in the last minutes, in a memory that does not grow. */
export class CallBuckets {
  /** Each in the place of its remainder: a new one takes the place of the one a window ago. */
  readonly #ring: Bucket[] = [];

  add(row: CallRow): void {
    const { durationMs = 0, startedAt, type } = row;
    const outcome = standingOf(row);
    const slot = Math.floor((startedAt + durationMs) / STEP_MS);
    if (outcome === "running" || !(slot >= 0)) return;
    const place = slot % BUCKETS;
    let bucket = this.#ring[place];
    if (bucket === undefined || bucket.slot < slot) {
      bucket = emptyBucket(slot);
      this.#ring[place] = bucket;
    }
    if (bucket.slot !== slot) return;
    bucket.counts[outcome] += 1;
    // How long somebody listened says nothing about latency.
    if (type !== "subscription") keepDuration(bucket, durationMs);
  }

  /** The buckets of the window that ends with the present, oldest first, without gaps. */
  until(now: number): readonly Bucket[] {
    const first = Math.floor(now / STEP_MS) - BUCKETS + 1;
    return Array.from({ length: BUCKETS }, (_, index) => {
      const slot = first + index;
      const bucket = this.#ring[slot % BUCKETS];
      return bucket?.slot === slot ? bucket : emptyBucket(slot);
    });
  }
}

/** Keeps a duration; of many, each has the same chance to be among those that are held. */
function keepDuration(bucket: Bucket, durationMs: number): void {
  const { durations } = bucket;
  bucket.timed += 1;
  const isRoom = durations.length < MOST_SAMPLES;
  const place = isRoom ? durations.length : Math.floor(Math.random() * bucket.timed);
  if (place < MOST_SAMPLES) durations[place] = durationMs;
}

/** Says how the calls of some buckets went. */
export function summarize(buckets: readonly Bucket[]): Summary {
  const counts = noCounts();
  const samples: Weighted[] = [];
  for (const bucket of buckets) {
    for (const outcome of ENDED) counts[outcome] += bucket.counts[outcome];
    const weight = bucket.timed / bucket.durations.length;
    for (const value of bucket.durations) samples.push({ value, weight });
  }
  samples.sort((left, right) => left.value - right.value);
  return {
    calls: ENDED.reduce((sum, outcome) => sum + counts[outcome], 0),
    counts,
    p50: weightedPercentile(samples, 50),
    p95: weightedPercentile(samples, 95),
  };
}

/** The smallest of some sorted values that at least so many in a hundred are not above; nothing of nothing. */
export function percentile(sorted: ArrayLike<number>, percent: number): number | undefined {
  // Whole numbers are multiplied before they are divided: a share such as 0.95 would be off by one here and there.
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)];
}

/** A value that stands for several. */
interface Weighted {
  readonly value: number;
  readonly weight: number;
}

/** The same for values that stand for several each, sorted by value. */
export function weightedPercentile(sorted: readonly Weighted[], percent: number): number | undefined {
  let all = 0;
  for (const { weight } of sorted) all += weight;
  const wanted = (all * percent) / 100;
  let passed = 0;
  for (const { value, weight } of sorted) {
    passed += weight;
    // Weights are fractions, whose sums miss by a hair.
    if (passed >= wanted - 1e-9 * all) return value;
  }
  return undefined;
}

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
