import { describe, expect, it } from "vitest";
import type { CallRow } from "../../protocol.ts";
import { byOperation, percentile, sortFigures, weightedPercentile } from "./call-buckets.ts";

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

const call = (operation: string, durationMs: number, part: Partial<CallRow> = {}): CallRow => ({
  seq: 1,
  requestId: "r",
  operation,
  startedAt: 1_000,
  outcome: "ok",
  durationMs,
  ...part,
});

describe("byOperation", () => {
  it("counts calls and errors, and has exact percentiles", () => {
    const rows = Array.from({ length: 100 }, (_, index) =>
      call("a", 100 - index, { startedAt: index, ...(index < 7 && { outcome: "tool_error" }) }),
    );
    expect(byOperation(rows)).toEqual([["a", 100, 7, 50, 90, 95, 99, 100]]);
  });

  it("leaves out calls that run", () => {
    const { outcome: _outcome, ...running } = call("a", 0);
    expect(byOperation([running])).toEqual([]);
  });

  it("counts subscriptions, and leaves out how long somebody listened", () => {
    const none = [undefined, undefined, undefined, undefined, undefined];
    expect(byOperation([call("a", 9_000, { type: "subscription" })])).toEqual([["a", 1, 0, ...none]]);
  });

  it("takes any name for an operation", () => {
    const names = ["__proto__", "constructor", "toString", ""];
    expect(byOperation(names.map((name) => call(name, 1))).map(([operation]) => operation)).toEqual(names);
  });
});

describe("sortFigures", () => {
  const figures = byOperation([
    call("b", 5),
    call("a", 5),
    call("c", 50),
    call("d", 1, { type: "subscription" }),
  ]);
  const names = (column: number): string =>
    sortFigures(figures, column)
      .map(([operation]) => operation)
      .join("");

  it("sorts by a column, equal ones by name, and what has no figure last", () => {
    expect(names(3)).toBe("cabd");
    expect(names(0)).toBe("abcd");
  });
});
