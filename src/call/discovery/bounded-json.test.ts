import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.ts";
import type { JsonValue } from "../../core/json/json-value.ts";
import { canonicalJson } from "../../core/json/json-value.ts";
import { copyBoundedJson } from "./service-notice.ts";

const BOUNDS = { length: 100_000, depth: 50 };

const nested = (levels: number): unknown => {
  let value: unknown = 1;
  for (let i = 0; i < levels; i++) value = [value];
  return value;
};

const shuffled = (value: JsonValue): JsonValue => {
  if (Array.isArray(value)) return value.map(shuffled);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, member]) => [key, shuffled(member)] as const);
  return Object.fromEntries(entries.reverse());
};

describe("copyJson", () => {
  it("Discovery: copies any JSON as it is, frozen and shared with nobody", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        const plain: unknown = JSON.parse(JSON.stringify(value));
        const copied = copyBoundedJson(plain, BOUNDS);
        expect(copied).toEqual(plain);
        expect(Object.isFrozen(copied)).toBe(true);
        if (typeof plain === "object" && plain !== null) expect(copied).not.toBe(plain);
      }),
      runs(200),
    );
  });

  it("Discovery: takes exactly as many levels and characters as allowed", () => {
    expect(copyBoundedJson(nested(3), { ...BOUNDS, depth: 3 })).toEqual([[[1]]]);
    expect(() => copyBoundedJson(nested(4), { ...BOUNDS, depth: 3 })).toThrow(
      "It is nested deeper than 3 levels.",
    );
    expect(copyBoundedJson("12345678", { ...BOUNDS, length: 10 })).toBe("12345678");
    expect(() => copyBoundedJson("123456789", { ...BOUNDS, length: 10 })).toThrow(
      "It is longer than 10 characters.",
    );
    expect(() => copyBoundedJson({ ["k".repeat(11)]: 1 }, { ...BOUNDS, length: 10 })).toThrow(
      "longer than 10",
    );
  });

  it("Discovery: refuses what contains itself, and what shares its parts so often that it explodes", () => {
    const cyclic: unknown[] = [];
    cyclic.push(cyclic);
    expect(() => copyBoundedJson(cyclic, BOUNDS)).toThrow("nested deeper than 50 levels");
    let bomb: unknown = "lol";
    for (let i = 0; i < 40; i++) bomb = [bomb, bomb];
    expect(() => copyBoundedJson(bomb, BOUNDS)).toThrow("longer than 100000 characters");
  });

  it("Discovery: keeps a name such as __proto__ as a name", () => {
    const copied = copyBoundedJson(JSON.parse('{"__proto__":{"polluted":true}}'), BOUNDS);
    expect(Object.keys(copied as object)).toEqual(["__proto__"]);
    expect((copied as { polluted?: unknown }).polluted).toBeUndefined();
    expect(canonicalJson(copied)).toBe('{"__proto__":{"polluted":true}}');
  });

  it.each([
    ["undefined", undefined],
    ["a function", () => 1],
    ["a bigint", 1n],
    ["a symbol", Symbol("s")],
    ["NaN", Number.NaN],
    ["Infinity", Number.POSITIVE_INFINITY],
    ["a special object", new Map()],
    ["undefined", new Array(4_000_000_000)],
  ])("Discovery: refuses a value that holds %s", (name, value) => {
    expect(() => copyBoundedJson([value], BOUNDS)).toThrow(`It must be plain JSON, and holds ${name}.`);
  });

  it("Discovery: leaves out a member that is undefined, as JSON does", () => {
    expect(Object.keys(copyBoundedJson({ a: undefined, b: 1 }, BOUNDS) as object)).toEqual(["b"]);
  });
});

describe("canonicalJson", () => {
  it("Discovery: is the same whatever order keys come in, and reads back as the value", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        const copied = copyBoundedJson(JSON.parse(JSON.stringify(value)), BOUNDS);
        expect(canonicalJson(shuffled(copied))).toBe(canonicalJson(copied));
        expect(JSON.parse(canonicalJson(copied))).toEqual(copied);
      }),
      runs(200),
    );
  });

  it("Discovery: tells values apart that differ only in type or order", () => {
    const texts = [1, "1", [1], ["1"], [1, 2], [2, 1], { a: 1 }, { b: 1 }, {}, [], null, false].map((value) =>
      canonicalJson(value),
    );
    expect(new Set(texts).size).toBe(texts.length);
    expect(canonicalJson(copyBoundedJson(-0, BOUNDS))).toBe("0");
  });
});
