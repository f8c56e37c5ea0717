import { describe, expect, it } from "vitest";
import { readLimit, readPositiveLimit } from "./token-budget.ts";

describe("limits", () => {
  it("TR-6 takes whole numbers from the least on, no limit, and the default", () => {
    expect(readLimit("max", undefined, 7)).toBe(7);
    expect(readLimit("max", 0, 7)).toBe(0);
    expect(readPositiveLimit("max", 1, 7)).toBe(1);
    expect(readLimit("max", Number.POSITIVE_INFINITY, 7)).toBe(Number.POSITIVE_INFINITY);
  });

  it.each([-1, 0.5, Number.NaN, Number.NEGATIVE_INFINITY, 2 ** 53])("TR-6 refuses %d by name", (wrong) => {
    expect(() => readLimit("maxThings", wrong, 7)).toThrow(RangeError);
    expect(() => readLimit("maxThings", wrong, 7)).toThrow("maxThings must be a whole number");
    expect(() => readPositiveLimit("maxThings", 0, 7)).toThrow("at least 1");
  });
});
