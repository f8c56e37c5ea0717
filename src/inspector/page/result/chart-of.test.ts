import { describe, expect, it } from "vitest";
import {
  type Chart,
  chartOf,
  chartSummary,
  frameOf,
  nearestPoint,
  pathOf,
  roundTicks,
} from "./chart-view.tsx";

function found(data: unknown): Chart {
  const chart = chartOf(data);
  if (chart === undefined) throw new Error("There is nothing to draw.");
  return chart;
}

describe("chartOf", () => {
  it("draws numbers over time as lines, in the order of time", () => {
    const chart = found([
      { day: "2026-02-01", a: 2, b: 1 },
      { day: "2026-01-01", a: 1, b: null },
    ]);
    expect(chart).toMatchObject({ kind: "line", over: "day", series: ["a", "b"] });
    expect(chart.points.map(({ name, values }) => [name, ...values])).toEqual([
      ["2026-01-01", 1, undefined],
      ["2026-02-01", 2, 1],
    ]);
  });

  it("reads epoch seconds and milliseconds where a name says that it is a time", () => {
    const seconds = found([
      { time: 1_790_000_000, v: 1 },
      { time: 1_790_000_060, v: 2 },
    ]);
    const ms = found([
      { createdAt: 1_790_000_000_000, v: 1 },
      { createdAt: 1_790_000_060_000, v: 2 },
    ]);
    expect(seconds.points[0]?.x).toBe(ms.points[0]?.x);
    expect(
      chartOf([
        { total: 1_790_000_000, v: 1 },
        { total: 1_790_000_060, v: 2 },
      ]),
    ).toBeUndefined();
  });

  it("draws a few names as bars, and a plain list of numbers as a line", () => {
    expect(
      found([
        { city: "Basel", n: 1 },
        { city: "Bern", n: 2 },
      ]),
    ).toMatchObject({ kind: "bars" });
    expect(found([3, 1, 2])).toMatchObject({ kind: "line", series: ["value"] });
  });

  it.each([
    [[]],
    [[1]],
    [[{ a: 1 }]],
    [[{ a: "x" }, { a: "y" }]],
    [[{ a: "x", n: 1 }]],
    [Array.from({ length: 50 }, (_, n) => ({ a: `x${n}`, n }))],
    [
      [
        { t: "x", a: 1, b: 1, c: 1, d: 1, e: 1 },
        { t: "y", a: 1, b: 1, c: 1, d: 1, e: 1 },
      ],
    ],
    [[1, "2"]],
    ["text"],
  ])("draws nothing of what would say little: %j", (data) => {
    expect(chartOf(data)).toBeUndefined();
  });

  it("thins long series out and keeps every peak", () => {
    const numbers = Array.from({ length: 100_000 }, (_, at) =>
      at === 54_321 ? 99 : at === 54_322 ? -99 : at % 3,
    );
    const chart = found(numbers);
    expect(chart.points.length).toBeLessThanOrEqual(2_000);
    expect(chart.count).toBe(100_000);
    const values = chart.points.map(({ values: [value] }) => value);
    expect(values).toContain(99);
    expect(values).toContain(-99);
    expect(chartSummary(chart)).toContain("100,000 points");
  });
});

describe("pathOf", () => {
  it("leaves a gap where a number is missing", () => {
    const chart = found([
      { day: "2026-01-01", n: 0 },
      { day: "2026-01-02", n: null },
      { day: "2026-01-03", n: 5 },
      { day: "2026-01-04", n: 10 },
    ]);
    expect(pathOf(chart, frameOf(chart), 0)).toBe("M0 100M66.67 50L100 0");
  });
});

describe("roundTicks", () => {
  it("spans a range by round numbers", () => {
    expect(roundTicks(0, 97)).toEqual([0, 20, 40, 60, 80, 100]);
    expect(roundTicks(-0.31, 0.3)).toEqual([-0.4, -0.2, 0, 0.2, 0.4]);
  });

  it.each([
    [5, 5],
    [-1e308, 1e308],
    [1e308, 1.1e308],
    [1, 1 + 2 ** -52],
    [0, Number.MIN_VALUE],
  ])("stays small and within numbers from %d to %d", (least, most) => {
    const ticks = roundTicks(least, most);
    expect(ticks.length).toBeLessThan(100);
    expect(ticks.every(Number.isFinite)).toBe(true);
  });
});

describe("frameOf", () => {
  it.each([
    [[1, 2, 3]],
    [[5, 5, 5]],
    [[0, 0]],
    [[-1e308, 1e308]],
    [
      [
        { city: "a", n: -4 },
        { city: "b", n: 10 },
      ],
    ],
    [
      [
        { day: "2026-01-01", n: 1 },
        { day: "2026-01-01", n: 2 },
      ],
    ],
  ])("puts every point inside the drawing: %j", (data) => {
    const chart = found(data);
    const frame = frameOf(chart);
    for (const { x, values } of chart.points) {
      expect(frame.x(x)).toBeGreaterThanOrEqual(0);
      expect(frame.x(x)).toBeLessThanOrEqual(100);
      for (const value of values) {
        expect(frame.y(value ?? 0)).toBeGreaterThanOrEqual(0);
        expect(frame.y(value ?? 0)).toBeLessThanOrEqual(100);
      }
    }
    expect(pathOf(chart, frame, 0)).not.toMatch(/NaN|Infinity/);
    expect(nearestPoint(chart, frame, -1)).toBe(0);
    const apart = new Set(chart.points.map(({ x }) => x)).size;
    expect(nearestPoint(chart, frame, 101)).toBe(apart - 1);
  });
});
