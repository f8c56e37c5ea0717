import { describe, expect, it } from "vitest";
import { didYouMean, nearestName } from "./nearest-name.ts";

describe("names that may be meant", () => {
  it.each([
    ["timeout", ["signal", "timeoutMs"], "timeoutMs"],
    ["singal", ["identity", "signal"], "signal"],
    ["SIGNAL", ["identity", "signal"], "signal"],
    ["cat", ["cart", "cat"], "cat"],
    ["xyzzy", ["identity", "signal"], undefined],
    ["x".repeat(100_000), ["identity", "x".repeat(90)], "x".repeat(90)],
  ])("finds what %.20s may be", (name, known, near) => {
    expect(nearestName(name, known)).toBe(near);
  });

  it("ends a sentence with them, each in quotes that nothing gets out of, or otherwise", () => {
    expect(didYouMean("a")).toBe('; did you mean "a"?');
    expect(didYouMean(["a", "b", "c"])).toBe('; did you mean "a", "b" or "c"?');
    expect(didYouMean('"\n')).toBe('; did you mean "\\"\\n"?');
    expect(didYouMean(undefined)).toBe(".");
    expect(didYouMean([], "; there are two.")).toBe("; there are two.");
  });
});
