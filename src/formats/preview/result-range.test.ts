import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseResultUri, placeRange, toResultUri } from "./memory-store.ts";

const ID = "0123456789abcdef0123456789abcdef";
const URI = toResultUri(ID);

describe("URIs of results", () => {
  it.each([
    ["", { id: ID }],
    ["?offset=0", { id: ID, offset: 0 }],
    ["?length=2000", { id: ID, length: 2_000 }],
    ["?offset=10&length=20", { id: ID, offset: 10, length: 20 }],
    ["?length=20&offset=10", { id: ID, offset: 10, length: 20 }],
  ])("TR-6 reads the range %j", (query, expected) => {
    expect(parseResultUri(URI + query)).toEqual(expected);
  });

  it.each([
    ["?", "offset"],
    ["?offset=", "offset"],
    ["?offset=-1", "offset"],
    ["?offset=01", "offset"],
    ["?offset=1e3", "offset"],
    ["?offset=1.5", "offset"],
    ["?length=%31", "length"],
    ["?length=1&length=2", "length"],
    ["?offset=1&offset=1", "offset"],
    ["?offset=1&length=2&x=3", "x=3"],
    ["?from=1", "from=1"],
    ["?offset=1&", "offset"],
    ["?offset=1\n", "offset"],
  ])("TR-6 refuses the range %j", (query, named) => {
    expect(() => parseResultUri(URI + query)).toThrow(RangeError);
    expect(() => parseResultUri(URI + query)).toThrow(named);
  });

  it.each([
    "",
    "waybill://results/",
    "waybill://results/ABCDEF0123456789abcdef0123456789",
    `${URI}0`,
    `${URI}/`,
    `${URI}#x`,
    ` ${URI}`,
    `https://results/${ID}`,
  ])("TR-6 does not know %j", (uri) => {
    expect(parseResultUri(uri)).toBeUndefined();
  });
});

describe("ranges", () => {
  it.each([
    [{}, 0, 4],
    [{ offset: 4 }, 4, 4],
    [{ length: 1 }, 0, 1],
    [{ length: 2 }, 0, 1],
    [{ offset: 1, length: 1 }, 1, 3],
    [{ offset: 2, length: 1 }, 1, 3],
    [{ offset: 2 }, 1, 4],
    [{ length: 99 }, 0, 4],
  ])("TR-6 places %o in a text with a surrogate pair", (range, start, end) => {
    expect(placeRange("a😀b", range)).toEqual({ start, end });
  });

  it.each([
    [{ offset: -1 }, "offset"],
    [{ offset: 5 }, "offset"],
    [{ offset: 0.5 }, "offset"],
    [{ offset: Number.NaN }, "offset"],
    [{ offset: Number.POSITIVE_INFINITY }, "offset"],
    [{ length: 0 }, "length"],
    [{ length: -1 }, "length"],
    [{ length: 1.5 }, "length"],
    [{ length: Number.NaN }, "length"],
    [{ length: Number.POSITIVE_INFINITY }, "length"],
  ])("TR-6 refuses %o by its field", (range, field) => {
    expect(() => placeRange("abcd", range)).toThrow(RangeError);
    expect(() => placeRange("abcd", range)).toThrow(new RegExp(`^${field} must be`));
  });

  it("TR-6 never splits a surrogate pair and always gets on", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "😀", "\ud83d", "\ude00"), minLength: 1 });
    fc.assert(
      fc.property(text, fc.nat(), fc.integer({ min: 1, max: 5 }), (whole, seed, length) => {
        const { start, end } = placeRange(whole, { offset: seed % whole.length, length });
        expect(end).toBeGreaterThan(start);
        for (const place of [start, end]) {
          const pair = whole.slice(place - 1, place + 1);
          expect(place > 0 && /^[\ud800-\udbff][\udc00-\udfff]$/.test(pair)).toBe(false);
        }
      }),
    );
  });
});
