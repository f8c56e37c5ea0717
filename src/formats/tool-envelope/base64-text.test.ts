import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.ts";
import { fromBase64Text, fromUtf8, hasStrayBits, paddingOf } from "./base64-text.ts";

const LENGTHS = [0, 1, 2, 3, 4, 49_150, 49_151, 49_152, 49_153, 49_154, 60_000];

describe("base64", () => {
  it.each(LENGTHS)("TE-3 of %s bytes is read as it was written", (length) => {
    const bytes = Buffer.from(Array.from({ length }, (_, i) => (i * 7) % 256));
    expect(Buffer.from(fromBase64Text(bytes.toString("base64")) ?? []).equals(bytes)).toBe(true);
  });

  it("TE-4 any other spelling is refused", () => {
    const text = fc.string({
      unit: fc.constantFrom("A", "Q", "/", "+", "=", "-", "_", " ", "\n", "é", "䅁"),
      maxLength: 12,
    });
    fc.assert(
      fc.property(text, (spelling) => {
        const strict =
          Buffer.from(spelling, "base64").toString("base64") === spelling &&
          /^[A-Za-z0-9+/=]*$/.test(spelling);
        expect(fromBase64Text(spelling) !== undefined).toBe(strict);
      }),
      runs(2_000),
    );
  });

  it.each([
    ["AAAA", 0, false],
    ["AAA=", 1, false],
    ["AAE=", 1, false],
    ["AAB=", 1, true],
    ["AA==", 2, false],
    ["AQ==", 2, false],
    ["AB==", 2, true],
    ["AI==", 2, true],
    ["", 0, false],
  ])("TE-4 %s has %s padding, and stray bits: %s", (text, padding, stray) => {
    expect([paddingOf(text), hasStrayBits(text)]).toEqual([padding, stray]);
  });
});

describe("UTF-8", () => {
  const texts = [
    "",
    "ascii",
    "é",
    "漢字",
    "😀",
    "\uFEFFx",
    "a".repeat(9_000),
    "é".repeat(5_000),
    "漢".repeat(400_000),
  ];

  it.each(texts)("TE-3 is read the same from Node's bytes and from others: %#", (text) => {
    const bytes = new TextEncoder().encode(text);
    expect(fromUtf8(Buffer.from(bytes)) === text).toBe(true);
    expect(fromUtf8(bytes) === text).toBe(true);
  });

  it.each([[0xff], [0xc3], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80]])(
    "TE-4 is refused when it is broken: %s %s",
    (...bytes) => {
      for (const around of [0, 9_000]) {
        const broken = [...Array(around).fill(97), ...bytes];
        expect(fromUtf8(Buffer.from(broken))).toBeUndefined();
        expect(fromUtf8(Uint8Array.from(broken))).toBeUndefined();
      }
    },
  );
});
