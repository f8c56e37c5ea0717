import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countOpenings, isTooDeep, isValueTooDeep, MAX_JSON_DEPTH } from "./json-value.ts";

const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
const padded = (json: string) => json.padEnd(2_000, " ");
const containers = (json: string) => json.replace(/[^[{]/g, "").length;

describe("counting what opens", () => {
  const naive = (bytes: Uint8Array) => bytes.filter((byte) => byte === 0x5b || byte === 0x7b).length;

  it("TE-4 finds every bracket, and nothing that only looks like one", () => {
    const near = fc.constantFrom(
      0x5b,
      0x7b,
      0x5a,
      0x5c,
      0x5d,
      0x7a,
      0x7c,
      0x7d,
      0xdb,
      0xfb,
      0x1b,
      0x3b,
      0x00,
      0xff,
      0x80,
    );
    const bytes = fc.array(fc.oneof(near, fc.nat(255)), { minLength: 1_026, maxLength: 1_045 });
    fc.assert(
      fc.property(bytes, (list) => {
        const array = Uint8Array.from(list);
        expect(countOpenings(array)).toBe(naive(array));
      }),
    );
  });

  it("TE-4 does not count where it need not or cannot", () => {
    expect(countOpenings(new Uint8Array(1_025).fill(0x5b))).toBeUndefined();
    expect(countOpenings(new Uint8Array(1_026).fill(0x5b))).toBe(1_026);
    expect(countOpenings(new Uint8Array(2_000).subarray(1))).toBeUndefined();
    expect(countOpenings(new Uint8Array(2_000).subarray(4))).toBe(0);
  });
});

describe("depth", () => {
  it.each([undefined, 0, 1])("TE-4 ends at the limit, whatever is said about openings: %s", (openings) => {
    for (const inside of ["", '"]]]"', '"[[["', '"\\"[["', '"\\\\"', "{}", "1"]) {
      const text = (levels: number) => padded("[".repeat(levels) + inside + "]".repeat(levels));
      const extra = inside === "{}" ? 1 : 0;
      const fits = text(MAX_JSON_DEPTH - extra);
      expect(isTooDeep(fits, JSON.parse(fits), openings)).toBe(false);
      const deep = text(MAX_JSON_DEPTH - extra + 1);
      expect(isTooDeep(deep, JSON.parse(deep), openings)).toBe(true);
    }
  });

  it("TE-4 believes the value where it has as many containers as the text", () => {
    const text = padded(nested(MAX_JSON_DEPTH + 1));
    const values = [[1, [2, {}, null], { a: [], b: { c: null, d: "x" } }], { a: [[], []], b: null }, []];
    for (const value of values) {
      const count = containers(JSON.stringify(value));
      expect(isTooDeep(text, value, count)).toBe(false);
      expect(isTooDeep(text, value, count + 1)).toBe(true);
      expect(isTooDeep(text, value, count - 1)).toBe(true);
      expect(isTooDeep(text, value, undefined)).toBe(true);
    }
  });

  it("TE-4 believes a value that is too deep, whatever the text", () => {
    for (const value of [JSON.parse(nested(MAX_JSON_DEPTH + 1)), deepObject(MAX_JSON_DEPTH + 1)]) {
      expect(isTooDeep(padded("[]"), value, 1)).toBe(true);
      expect(isTooDeep("[]", value, 1)).toBe(false);
    }
    expect(isTooDeep(padded("[]"), deepObject(MAX_JSON_DEPTH), 1)).toBe(false);
  });

  it("TE-3 refuses to write what would not be read", () => {
    expect(isValueTooDeep(deepObject(MAX_JSON_DEPTH), 5_000)).toBe(false);
    expect(isValueTooDeep(deepObject(MAX_JSON_DEPTH + 1), 5_000)).toBe(true);
    expect(isValueTooDeep(deepObject(MAX_JSON_DEPTH + 1), 1_025)).toBe(false);
    expect(isValueTooDeep(null, 5_000)).toBe(false);
    expect(isValueTooDeep("text", 5_000)).toBe(false);
  });

  function deepObject(levels: number): unknown {
    let value: unknown = {};
    for (let level = 1; level < levels; level++) value = { a: 1, inner: value, z: null };
    return value;
  }
});
