import { describe, expect, it } from "vitest";
import { percentile, weightedPercentile } from "./percentiles.ts";

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

describe("percentile", () => {
  it("is the smallest value that enough others are not above", () => {
    expect(percentile(upTo(100), 50)).toBe(50);
    expect(percentile(upTo(100), 95)).toBe(95);
    expect(percentile(upTo(100), 99)).toBe(99);
    expect(percentile([1, 2, 3], 50)).toBe(2);
    expect(percentile([7], 99)).toBe(7);
  });

  it("is exact for every count, where fractions would be off by one", () => {
    const wrong: number[][] = [];
    for (let count = 1; count <= 1_000; count += 1) {
      for (const percent of [50, 90, 95, 99]) {
        const found = percentile(upTo(count), percent) ?? 0;
        // So many values are not above it, and one less would not be enough.
        const isRight = found * 100 >= count * percent && (found - 1) * 100 < count * percent;
        if (!isRight) wrong.push([count, percent, found]);
      }
    }
    expect(wrong).toEqual([]);
  });

  it("is nothing of nothing", () => {
    expect(percentile([], 50)).toBeUndefined();
    expect(weightedPercentile([], 50)).toBeUndefined();
  });
});

describe("weightedPercentile", () => {
  it("is the same as the plain one when each value stands for itself", () => {
    for (const count of [1, 2, 3, 10, 99, 100, 101, 1_000]) {
      const weighted = upTo(count).map((value) => ({ value, weight: 1 }));
      for (const percent of [50, 90, 95, 99]) {
        expect(weightedPercentile(weighted, percent)).toBe(percentile(upTo(count), percent));
      }
    }
  });

  it("counts a value as often as it stands for others", () => {
    const few = [
      { value: 1, weight: 9 },
      { value: 100, weight: 1 },
    ];
    expect(weightedPercentile(few, 90)).toBe(1);
    expect(weightedPercentile(few, 95)).toBe(100);
    expect(
      weightedPercentile(
        [
          { value: 1, weight: 10 / 3 },
          { value: 2, weight: 20 / 3 },
        ],
        50,
      ),
    ).toBe(2);
  });
});
