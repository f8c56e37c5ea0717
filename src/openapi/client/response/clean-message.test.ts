import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cleanMessage } from "./clean-message.ts";

describe("text of a server", () => {
  it.each([
    ["a terminal's orders", "a\u001B[31mb\u001B]0;title\u0007c\u009B1md", "abcd"],
    ["what turns text around", "a\u202Eb\u2066c", "abc"],
    ["what nobody sees", "a\u200Bb\u{E0041}c\uE000d\u2800", "abcd"],
    ["line ends", "a\r\nb\u2028c", "a\nb\nc"],
    ["half a character", "a\uD800b", "a\uFFFDb"],
    ["joiners between nothing", "a \u200D b\uFE0F", "a  b"],
  ])("RE-25 loses %s", (_, text, cleaned) => {
    expect(cleanMessage(text, 500)).toBe(cleaned);
  });

  it.each(["plain", "Grüße, 世界", "👩‍🚀 ❤️", "می‌خواهم", "a\tb\nc"])("RE-25 keeps %s", (text) => {
    expect(cleanMessage(text, 500)).toBe(text);
  });

  it("RE-25 has no escape left and is no longer than allowed, whatever comes", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.nat(30), (text, length) => {
        const cleaned = cleanMessage(text, length);
        expect(cleaned.length).toBeLessThanOrEqual(length);
        expect(cleaned.replace(/[\t\n]/g, "")).not.toMatch(/[\p{Cc}\p{Cs}\u202E]/u);
      }),
    );
  });
});
