import { describe, expect, it } from "vitest";
import type { CallRow } from "../../protocol.ts";
import { BUCKETS, CallBuckets, MOST_SAMPLES, STEP_MS, summarize } from "./call-buckets.ts";

const row = (part: Partial<CallRow>): CallRow => ({
  seq: 1,
  requestId: "r",
  operation: "a.b",
  startedAt: 1_000_000,
  outcome: "ok",
  durationMs: 5,
  ...part,
});

/** The buckets that hold something, at a moment. */
const filled = (buckets: CallBuckets, now = 1_000_000) =>
  buckets.until(now).filter(({ counts }) => counts.ok + counts.tool_error + counts.call_error > 0);

describe("CallBuckets", () => {
  it("counts calls in the stretch of time they ended in", () => {
    const buckets = new CallBuckets();
    buckets.add(row({ startedAt: 9_900, durationMs: 200 }));
    buckets.add(row({ startedAt: 11_000, durationMs: 1, outcome: "tool_error" }));
    buckets.add(row({ startedAt: 14_500, durationMs: 1, outcome: "call_error" }));
    expect(filled(buckets, 15_000)).toMatchObject([
      { slot: 2, counts: { ok: 1, tool_error: 1, call_error: 1, cancelled: 0 } },
    ]);
  });

  it("has a bucket for every step of the window, and ends with the present", () => {
    const buckets = new CallBuckets();
    buckets.add(row({ startedAt: 699_000 }));
    const all = buckets.until(699_900);
    expect(all.map(({ slot }) => slot)).toEqual(Array.from({ length: BUCKETS }, (_, index) => 80 + index));
    expect(all.at(-1)?.counts.ok).toBe(1);
    expect(filled(buckets, 10_000_000)).toEqual([]);
  });

  it("leaves out calls that run and times that are none", () => {
    const buckets = new CallBuckets();
    const { outcome: _outcome, ...running } = row({});
    buckets.add(running);
    for (const startedAt of [Number.NaN, Number.POSITIVE_INFINITY, -5_000, 1e300])
      buckets.add(row({ startedAt }));
    expect(filled(buckets)).toEqual([]);
  });

  it("does not let a call of long ago take the place of a later one", () => {
    const buckets = new CallBuckets();
    buckets.add(row({ startedAt: BUCKETS * STEP_MS }));
    buckets.add(row({ startedAt: 0 }));
    expect(filled(buckets, BUCKETS * STEP_MS)).toMatchObject([{ slot: BUCKETS, timed: 1 }]);
  });

  it("holds few durations of a busy time, which stand for all", () => {
    const buckets = new CallBuckets();
    for (let index = 0; index < 10_000; index += 1) buckets.add(row({ durationMs: index / 10_000 }));
    const held = filled(buckets);
    expect(held[0]?.durations).toHaveLength(MOST_SAMPLES);
    const { calls, p50, p95 } = summarize(held);
    expect(calls).toBe(10_000);
    expect(p50).toBeGreaterThan(0.2);
    expect(p50).toBeLessThan(0.8);
    expect(p95).toBeGreaterThan(p50 as number);
  });
});

describe("summarize", () => {
  it("says how calls went over some time, with exact percentiles while few come", () => {
    const buckets = new CallBuckets();
    for (let ms = 1; ms <= 100; ms += 1) buckets.add(row({ startedAt: ms * 1_000, durationMs: ms }));
    buckets.add(row({ startedAt: 5_000, outcome: "call_error", durationMs: 1_000 }));
    expect(summarize(buckets.until(200_000))).toEqual({
      calls: 101,
      counts: { ok: 100, tool_error: 0, call_error: 1, cancelled: 0 },
      p50: 51,
      p95: 96,
    });
  });

  it("lets a busy time weigh more than a quiet one", () => {
    const buckets = new CallBuckets();
    for (let index = 0; index < MOST_SAMPLES * 9; index += 1) buckets.add(row({ startedAt: 1_000 }));
    for (let index = 0; index < MOST_SAMPLES; index += 1)
      buckets.add(row({ startedAt: 6_000, durationMs: 500 }));
    expect(summarize(buckets.until(10_000))).toMatchObject({ calls: MOST_SAMPLES * 10, p50: 5, p95: 500 });
  });

  it("takes no durations from subscriptions", () => {
    const buckets = new CallBuckets();
    buckets.add(row({ type: "subscription", durationMs: 9_000 }));
    expect(summarize(buckets.until(1_010_000))).toMatchObject({ calls: 1, p50: undefined, p95: undefined });
  });

  it("has nothing to say of nothing", () => {
    expect(summarize([])).toMatchObject({ calls: 0, p50: undefined, p95: undefined });
  });
});
