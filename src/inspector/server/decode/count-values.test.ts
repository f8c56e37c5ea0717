import { describe, expect, it } from "vitest";
import { countValues } from "./decode-results.ts";

describe("counting values", () => {
  it("counts members and items, and those around them", () => {
    expect(countValues(1, 10)).toBe(1);
    expect(countValues({ a: [1, null], ["__proto__"]: "x" }, 10)).toBe(5);
  });

  it("stops beyond what is allowed", () => {
    const list = Array.from({ length: 9 }, () => 0);
    expect(countValues(list, 10)).toBe(10);
    expect(countValues([...list, 0], 10)).toBe(11);
    expect(countValues([list, list, list], 10)).toBe(11);
  });

  it("counts what a text may hold that is read in turn", () => {
    const json = JSON.stringify({ a: [1, 2, 3], b: {} });
    expect(countValues(` ${json}`, 100)).toBeGreaterThanOrEqual(7);
    expect(countValues(`__ENVELOPE_V1__:${btoa(json)}`, 100)).toBeGreaterThanOrEqual(7);
    expect(countValues("one, two, three", 100)).toBe(1);
  });
});
