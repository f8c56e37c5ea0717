import { describe, expect, it } from "vitest";
import { estimateTokens } from "./estimate-tokens.ts";
import { countTokens } from "./token-usage.ts";

const MEBI = 1_048_576;

describe("counting tokens of a reply", () => {
  it("TR-6 adds up the estimates of all texts", () => {
    expect(countTokens([])).toBe(0);
    expect(countTokens(["Some words", "more words here"])).toBe(
      estimateTokens("Some words") + estimateTokens("more words here"),
    );
  });

  it("TR-6 estimates a text of 1 Mi characters as it is, and a longer one by its beginning", () => {
    const text = "word ".repeat(MEBI / 4).slice(0, MEBI - 4);
    expect(countTokens([`${text}，，，，`])).toBe(estimateTokens(`${text}，，，，`));
    const longer = `${text}word${"，".repeat(MEBI - 4)}`;
    expect(countTokens([longer])).toBe(Math.round((estimateTokens(`${text}word`) / MEBI) * longer.length));
    expect(longer.length).toBeGreaterThan(MEBI);
  });
});
