import fc from "fast-check";
import { estimateTokenCount } from "tokenx";
import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { countTokens, estimateTokens, isWithinTokens } from "./token-budget.ts";

/** Milliseconds of processor time that one estimate takes. */
function timeOf(text: string): number {
  const start = cpuMs();
  estimateTokens(text);
  return cpuMs() - start;
}

describe("estimating tokens", () => {
  it("TR-6 counts nothing in an empty text and about a token a word in prose", () => {
    expect(estimateTokens("")).toBe(0);
    const prose = "The quick brown fox jumps over the lazy dog. ".repeat(20);
    expect(estimateTokens(prose)).toBeGreaterThan(150);
    expect(estimateTokens(prose)).toBeLessThan(260);
  });

  it("TR-6 estimates a text of one slice as a whole, and a longer one slice by slice", () => {
    const slice = `${"word ".repeat(13_107)}w`;
    expect(slice.length).toBe(65_536);
    expect(estimateTokens(slice)).toBe(estimateTokenCount(slice));
    expect(estimateTokens(`${slice}ord`)).toBe(estimateTokenCount(slice) + estimateTokenCount("ord"));
  });

  it("TR-6 does not split a surrogate pair between slices", () => {
    const text = `${"a".repeat(65_535)}😀`;
    expect(estimateTokens(text)).toBe(estimateTokenCount("a".repeat(65_535)) + estimateTokenCount("😀"));
  });

  it.each([
    ["letters", "a"],
    ["kana", "あ"],
    ["emoji", "😀"],
    ["joined emoji", "👨‍👩‍👧"],
    ["spaces", " "],
    ["line breaks", "\n"],
    ["punctuation", "("],
    ["combining marks", "\u0301"],
    ["halves of pairs", "\ud800"],
  ])("TR-6 takes a megabyte of %s without a space in linear time", (_, unit) => {
    expect(timeOf(unit.repeat(1_000_000 / unit.length))).toBeLessThan(1_000);
  });

  it("TR-6 tells whether a text is within a limit, at the limit and one below", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 200 }), (text) => {
        const tokens = estimateTokens(text);
        expect(isWithinTokens(text, tokens)).toBe(true);
        expect(isWithinTokens(text, tokens - 1)).toBe(false);
        expect(isWithinTokens(text, Number.POSITIVE_INFINITY)).toBe(true);
      }),
    );
  });
});

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
