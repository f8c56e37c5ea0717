import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.ts";
import { decodeBase64, encodeBase64 } from "./base64.ts";

/** The vectors of RFC 4648, section 10. */
const VECTORS = [
  ["", ""],
  ["f", "Zg=="],
  ["fo", "Zm8="],
  ["foo", "Zm9v"],
  ["foob", "Zm9vYg=="],
  ["fooba", "Zm9vYmE="],
  ["foobar", "Zm9vYmFy"],
] as const;

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

describe("base64", () => {
  it.each(VECTORS)("What JSON cannot hold: writes and reads the vector %j", (text, encoded) => {
    expect(encodeBase64(bytesOf(text))).toBe(encoded);
    expect(decodeBase64(encoded)).toEqual(bytesOf(text));
  });

  it("What JSON cannot hold: knows every letter of the alphabet", () => {
    const all = Uint8Array.from({ length: 256 }, (_, i) => i);
    expect(encodeBase64(all)).toBe(btoa(String.fromCharCode(...all)));
    expect(encodeBase64(Uint8Array.of(251, 239, 255))).toBe("++//");
    expect(decodeBase64("++//")).toEqual(Uint8Array.of(251, 239, 255));
  });

  it("What JSON cannot hold: any bytes come back, in a buffer of their own size", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const text = encodeBase64(bytes);
        expect(text).toBe(btoa(String.fromCharCode(...bytes)));
        const back = decodeBase64(text) as Uint8Array;
        expect(back).toEqual(bytes);
        expect(back.buffer.byteLength).toBe(bytes.length);
      }),
    );
  });

  it("What JSON cannot hold: a view is written, not the buffer under it", () => {
    const view = bytesOf("xxfooxx").subarray(2, 5);
    expect(encodeBase64(view)).toBe("Zm9v");
  });

  it.each([
    ["too short", "Zm9"],
    ["a letter left over", "Zm9vY"],
    ["no padding", "Zg"],
    ["half the padding", "Zg="],
    ["three pads", "Z==="],
    ["nothing but padding", "===="],
    ["padding in the middle", "Zg==Zm9v"],
    ["padding before the end", "Z=g="],
    ["stray bits behind one byte", "Zh=="],
    ["stray bits behind two bytes", "Zm9="],
    ["a space", "Zm9v Zm9v   "],
    ["a line break", "Zm9\n"],
    ["the alphabet for URLs", "--__"],
    ["a letter beyond ASCII", "Zm9é"],
    ["two letters beyond ASCII, four bytes as UTF-8", "éé"],
    ["half a surrogate pair", "Z\ud800"],
    ["a zero", "Zm9\u0000"],
  ])("What JSON cannot hold: refuses %s", (_, text) => {
    expect(decodeBase64(text)).toBeUndefined();
  });

  it("What JSON cannot hold: reads only what it would write", () => {
    const alphabetish = fc.string({ unit: fc.constantFrom(..."AQgwZ9+/=-_ "), maxLength: 12 });
    fc.assert(
      fc.property(alphabetish, (text) => {
        const bytes = decodeBase64(text);
        if (bytes !== undefined) expect(encodeBase64(bytes)).toBe(text);
      }),
      runs(1_000),
    );
  });

  it("What JSON cannot hold: megabytes pass", () => {
    const bytes = Uint8Array.from({ length: 1_000_001 }, (_, i) => i * 7);
    const back = decodeBase64(encodeBase64(bytes)) as Uint8Array;
    expect(back.length).toBe(bytes.length);
    expect(back.every((byte, i) => byte === bytes[i])).toBe(true);
  });
});
