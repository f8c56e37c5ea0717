import { describe, expect, it } from "vitest";
import { joinPointer } from "../../../core/json/json-pointer.ts";
import { setAt } from "./form-json.ts";

const NAMES = ["__proto__", "constructor", "toString", "", "a/b", "m~n", "~1", "0", "hasOwnProperty"];

describe("setAt", () => {
  it("leaves the old value alone and shares what did not change", () => {
    const old = { a: { b: 1 }, c: { d: 2 } };
    const next = setAt(old, "/a/b", 3);
    expect(next).toEqual({ a: { b: 3 }, c: { d: 2 } });
    expect(old).toEqual({ a: { b: 1 }, c: { d: 2 } });
    expect((next as typeof old).c).toBe(old.c);
  });

  it("takes away members and items with undefined", () => {
    expect(setAt({ a: 1, b: 2 }, "/a", undefined)).toEqual({ b: 2 });
    expect(setAt({ list: [1, 2, 3] }, "/list/1", undefined)).toEqual({ list: [1, 3] });
    expect(setAt({ a: 1 }, "", undefined)).toBeUndefined();
  });

  it("makes objects on the way", () => {
    expect(setAt(undefined, "/a/0/b", 1)).toEqual({ a: { 0: { b: 1 } } });
  });

  it.each(NAMES)("takes %j for a name like any other", (name) => {
    const made = setAt(undefined, joinPointer("", name), { x: 1 }) as object;
    expect(Object.keys(made)).toEqual([name]);
    expect(Object.getPrototypeOf(made)).toBe(Object.prototype);
    expect(Reflect.get({}, "x")).toBeUndefined();
    const deeper = setAt(made, joinPointer(joinPointer("", name), "y"), 2);
    expect(JSON.stringify(deeper)).toBe(
      JSON.stringify(JSON.parse(`{${JSON.stringify(name)}:{"x":1,"y":2}}`)),
    );
    expect(setAt(deeper, joinPointer("", name), undefined)).toEqual({});
  });

  it("survives a pointer that is deeper than the stack", () => {
    expect(setAt({}, "/a".repeat(100_000), 1)).toBeDefined();
  });
});
