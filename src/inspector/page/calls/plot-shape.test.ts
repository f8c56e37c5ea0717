import { describe, expect, it } from "vitest";
import { latencyHeight, roundUp, scaleOf } from "./plot-shape.ts";

const bar = (ms: number) => ({
  calls: 3,
  counts: { ok: 3, tool_error: 0, call_error: 0, cancelled: 0 },
  p50: ms,
  p95: ms,
});

describe("the scales of the plot", () => {
  it("end at round numbers", () => {
    expect([1, 2, 3, 6, 11, 20, 21, 501].map(roundUp)).toEqual([1, 2, 5, 10, 20, 20, 50, 1_000]);
    expect(scaleOf([bar(20)])).toEqual({ most: 5, decades: [0, 2] });
    expect(scaleOf([])).toEqual({ most: 1, decades: [0, 2] });
  });

  it("take durations of any size", () => {
    const { decades } = scaleOf([0, 1e-9, 1e12].map(bar));
    expect(decades).toEqual([-1, 7]);
    for (const ms of [0, 1, 1e12]) {
      expect(latencyHeight(ms, decades)).toBeGreaterThanOrEqual(0);
      expect(latencyHeight(ms, decades)).toBeLessThanOrEqual(1);
    }
  });

  it("are logarithmic for latency", () => {
    expect(latencyHeight(10, [0, 2])).toBe(0.5);
  });
});
