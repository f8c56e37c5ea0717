import { describe, expect, it } from "vitest";
import { Oddities } from "./oddities.ts";

describe("Oddities", () => {
  it("X-6 tells of each kind once and counts the rest", () => {
    const warnings: string[] = [];
    const oddities = new Oddities((message) => warnings.push(message));
    for (let i = 0; i < 100; i++) {
      oddities.add(`A line on standard output is no JSON: noise ${i}`);
      oddities.add(
        i % 2 === 0 ? "An answer belongs to no request." : `An answer belongs to no request: e${i}`,
      );
    }
    expect(warnings).toEqual([
      "A line on standard output is no JSON: noise 0",
      "An answer belongs to no request.",
    ]);
    expect(oddities.count).toBe(200);
  });

  it("X-6 tells of 32 kinds, and not of one more", () => {
    const warnings: string[] = [];
    const oddities = new Oddities((message) => warnings.push(message));
    for (let i = 0; i < 32; i++) oddities.add(`Kind ${"x".repeat(i)}`);
    expect(warnings).toHaveLength(32);
    oddities.add("Another kind");
    expect([warnings.length, oddities.count]).toEqual([32, 33]);
  });
});
