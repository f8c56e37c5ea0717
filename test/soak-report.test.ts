import { describe, expect, it } from "vitest";
import { findFaults, slopeOf } from "./soak/soak-report.js";

/** A soak in which everything is well but what the heap does: so many samples of it, two minutes apart. */
function faultsOf(heapAt: (minutes: number, index: number) => number, count = 30, resets = 0): string[] {
  const samples = Array.from({ length: count }, (_, index) => ({
    minutes: 2 * (index + 1),
    calls: index,
    fds: 26,
    children: 2,
    rss: 3e8,
    heapUsed: heapAt(2 * (index + 1), index),
    objects: heapAt(2 * (index + 1), index),
    resources: {},
  }));
  const entries = ["http", "mcp"];
  const sources = ["local", "near", "far", "calculator", "depot"];
  const outcomes = entries.flatMap((entry) => sources.map((source) => [`${entry} ${source} ok`, [1, 1]]));
  return findFaults({
    samples,
    kills: 1,
    end: { code: 0, left: 0, stderr: "", counted: 1, inFlight: 0 },
    workload: { faults: [], running: 0, resets, total: 1_000, outcomes: new Map(outcomes as []) } as never,
  });
}

/** Goes up and down by so many bytes, without a trend. */
const noise = (bytes: number, index: number) => bytes * Math.sin(index * 2.4);

describe("what a soak says of memory", () => {
  it("RE-30 calls it flat, whatever it does in the first ten minutes and however it goes up and down", () => {
    expect(faultsOf(() => 38e6)).toEqual([]);
    expect(faultsOf((minutes, i) => 38e6 + noise(5e5, i) - (minutes < 10 ? 6e6 : 0))).toEqual([]);
  });

  it("RE-30 draws the line at 1 MB an hour", () => {
    const growing = (perHour: number) =>
      faultsOf((minutes, i) => 38e6 + noise(1e5, i) + (perHour * minutes) / 60);
    expect(growing(0.8e6)).toEqual([]);
    expect(growing(1.2e6)).toEqual([
      expect.stringMatching(/^objects: they grow by 1\.\d\d MB an hour, give or take 0\./),
    ]);
  });

  it("RE-30 lets one call in a thousand meet a connection that is just being closed", () => {
    expect(faultsOf(() => 38e6, 30, 1)).toEqual([]);
    expect(faultsOf(() => 38e6, 30, 2)).toEqual(["2 of 1000 calls lost their connection"]);
  });

  it("RE-30 says when it cannot tell", () => {
    expect(faultsOf((_, i) => 38e6 + noise(3e6, i))).toEqual([
      expect.stringMatching(/^objects: .* cannot tell/),
    ]);
  });

  it("RE-30 fits no line to a short run, which may grow by 12 MB", () => {
    const short = [10, 12, 14, 16].map((minutes) => ({ minutes, objects: minutes * 1e6 }));
    expect(slopeOf(short)).toBeUndefined();
    expect(faultsOf((minutes) => 38e6 + minutes * 1e6, 4)).toEqual([]);
    expect(faultsOf((minutes) => 38e6 + minutes * 2e6, 4)).toEqual([expect.stringContaining("before")]);
  });
});
