import type { CallRow } from "../../protocol.ts";
import { type Outcome, standingOf } from "./call-words.ts";
import { type Weighted, weightedPercentile } from "./percentiles.ts";

/** The outcomes, in the order they are stacked. */
export const ENDED: readonly Outcome[] = ["ok", "tool_error", "call_error", "cancelled"];

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
  readonly counts: Record<Outcome, number>;
  /** Calls whose duration counts. */
  timed: number;
  /** Milliseconds, of some of them. */
  readonly durations: number[];
}

/** How some calls went; milliseconds. */
export interface Summary {
  readonly calls: number;
  readonly counts: Readonly<Record<Outcome, number>>;
  readonly p50: number | undefined;
  readonly p95: number | undefined;
}

const noCounts = (): Record<Outcome, number> => ({
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
