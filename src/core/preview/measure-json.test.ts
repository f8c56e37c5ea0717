import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.ts";
import { measureJson } from "./measure-json.ts";

class Point {
  readonly x = 1;
}

const cyclic: Record<string, unknown> = { list: [] };
(cyclic["list"] as unknown[]).push({ "a/b": cyclic });

/** A cycle of many objects, deeper than any stack. */
function longCycle(length: number): object {
  const first: Record<string, unknown> = {};
  let last = first;
  for (let i = 1; i < length; i++) {
    const next = {};
    last["n"] = next;
    last = next;
  }
  last["n"] = first;
  return first;
}

describe("measuring JSON", () => {
  it("TR-6 counts exactly what JSON.stringify writes", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "binary" }), (value) => {
        expect(measureJson(value).characters).toBe(JSON.stringify(value).length);
      }),
      runs(500),
    );
  });

  it("TR-6 takes undefined properties for absent and counts shared parts each time", () => {
    const shared = { a: [1, 2] };
    const value = { x: shared, y: undefined, z: [shared, shared] };
    expect(measureJson(value).characters).toBe(JSON.stringify(value).length);
  });

  it("TR-6 counts levels", () => {
    expect(measureJson(1).depth).toBe(0);
    expect(measureJson([]).depth).toBe(1);
    expect(measureJson({ a: [1, { b: [] }], c: {} }).depth).toBe(4);
  });

  it.each([
    ["a cycle", cyclic, '"/list/0/a~1b"'],
    ["a bigint", { a: [1, 7n] }, '"/a/1"'],
    ["a function", { f: () => 1 }, '"/f"'],
    ["a symbol", [Symbol.iterator], '"/0"'],
    ["undefined in an array", [1, undefined], '"/1"'],
    ["undefined itself", undefined, '""'],
    ["not a number", { n: Number.NaN }, '"/n"'],
    ["infinity", { n: -1 / 0 }, '"/n"'],
    ["a date", { d: new Date(0) }, '"/d"'],
    ["a map", new Map(), '""'],
    ["an instance", { p: new Point() }, '"/p"'],
    ["an object with its own toJSON", { o: { toJSON: () => 1 } }, '"/o/toJSON"'],
  ])("TR-6 refuses %s and names its pointer", (_, value, pointer) => {
    expect(() => measureJson(value)).toThrow(TypeError);
    expect(() => measureJson(value)).toThrow(pointer);
  });

  it("TR-6 refuses a cycle through more objects than a stack holds", () => {
    expect(() => measureJson(longCycle(50_000))).toThrow("/n/n");
  });

  it("TR-6 measures any depth, and sharing that stands for more text than there is memory", () => {
    let deep: unknown = [];
    for (let i = 0; i < 100_000; i++) deep = [deep];
    expect(measureJson(deep)).toEqual({ characters: 200_002, depth: 100_001 });
    let wide: unknown = "x";
    for (let i = 0; i < 60; i++) wide = { a: wide, b: wide };
    expect(measureJson(wide).characters).toBeGreaterThan(2 ** 60);
  });
});
