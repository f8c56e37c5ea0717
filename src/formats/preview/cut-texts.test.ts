import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cutTexts } from "./cut-texts.ts";
import { estimateTokens } from "./estimate-tokens.ts";

describe("cutting several texts", () => {
  it("TR-6 spends one limit on all of them, in order", () => {
    const texts = ["a".repeat(60), "b".repeat(60), "c"];
    expect(cutTexts(texts, { maxCharacters: 121 })).toEqual({ texts, truncated: false });
    const cut = cutTexts(texts, { maxCharacters: 119 });
    expect(cut.truncated).toBe(true);
    expect(cut.texts).toEqual([texts[0], expect.stringMatching(/^b+\n…/)]);
    expect(cutTexts(texts, { maxCharacters: 60 })).toEqual({ texts: [texts[0]], truncated: true });
  });

  it("TR-6 leaves blank texts out, and does not count them as cut", () => {
    expect(cutTexts(["  \n", "a", ""], { maxCharacters: 1 })).toEqual({ texts: ["a"], truncated: false });
  });

  it("TR-6 stays within both limits together", () => {
    fc.assert(
      fc.property(
        fc.array(fc.lorem()),
        fc.nat({ max: 200 }),
        fc.nat({ max: 40 }),
        (texts, maxCharacters, maxTokens) => {
          const cut = cutTexts(texts, { maxCharacters, maxTokens });
          expect(cut.texts.join("").length).toBeLessThanOrEqual(maxCharacters);
          expect(cut.texts.reduce((sum, text) => sum + estimateTokens(text), 0)).toBeLessThanOrEqual(
            maxTokens,
          );
          if (!cut.truncated) expect(cut.texts).toEqual(texts);
        },
      ),
    );
  });
});
