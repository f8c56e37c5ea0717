import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { unambiguousText, visibleJson } from "./readable-diff.ts";

describe("visible text", () => {
  it.each([
    ["Reads.\u200b", "Reads.\\u{200b}"],
    ["a\u{e0041}b", "a\\u{e0041}b"],
    ["a\u202eb", "a\\u{202e}b"],
    ["a\u00a0b", "a\\u{a0}b"],
    ["a  b ", "a··b·"],
    ["a\n\tb", "a\\n\\tb"],
    ["a\\nb", "a\\\\nb"],
    ["a·b", "a\\u{b7}b"],
    ["p\u0430ypal", "p\\u{430}ypal"],
    ["\u0441\u043e\u0440", "\\u{441}\\u{43e}\\u{440}"],
    ["\uff41dmin", "\\u{ff41}dmin"],
    ["\u{1d41a}dmin", "\\u{1d41a}dmin"],
    ["e\u0301", "e\\u{301}"],
    ["l\u0251st", "l\\u{251}st"],
    ["a\ufe0fb", "a\\u{fe0f}b"],
  ])("shows %j as %j", (text, shown) => {
    expect(unambiguousText(text)).toBe(shown);
  });

  it("leaves alone what people read", () => {
    const texts = ["Trägt Pakete aus, 3 km.", "Получает посылки", "荷物を追跡する", "Größe 😀 – ½"];
    expect(texts.map(unambiguousText)).toEqual(texts);
    expect(visibleJson('{"a":"b\\nc"}')).toBe('{"a":"b\\nc"}');
  });

  it("never shows two texts the same", () => {
    const text = fc.string({
      unit: fc.constantFrom(" ", "·", "\\", "n", "\n", "\t", "u", "{", "}", "b7", "\u200b"),
    });
    fc.assert(
      fc.property(text, text, (one, other) => {
        expect(unambiguousText(one) === unambiguousText(other)).toBe(one === other);
      }),
    );
  });
});
