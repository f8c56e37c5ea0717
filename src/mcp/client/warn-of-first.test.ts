import { describe, expect, it } from "vitest";
import { warnOfFirst } from "./warn-of-first.ts";

function warned(count: number): string[] {
  const told: string[] = [];
  warnOfFirst(
    Array.from({ length: count }, (_, at) => `odd ${at}`),
    (message) => told.push(message),
  );
  return told;
}

describe("warnings about a list", () => {
  it("are told one by one up to twenty", () => {
    expect(warned(0)).toEqual([]);
    expect(warned(20)).toHaveLength(20);
    expect(warned(20).at(-1)).toBe("odd 19");
  });

  it("are counted from the twenty-first on", () => {
    expect(warned(21)).toHaveLength(21);
    expect(warned(21).at(-1)).toMatch(/^One more such warning is left out/);
    expect(warned(10_000)).toHaveLength(21);
    expect(warned(10_000).slice(-2)).toEqual(["odd 19", expect.stringMatching(/^9980 more such warnings/)]);
  });
});
