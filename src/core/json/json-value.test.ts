import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { isPlainObject, setOwn } from "./json-value.ts";

class Instance {
  readonly field = 1;
}

describe("plain objects", () => {
  it.each([
    ["a literal", {}],
    ["an object without a prototype", Object.create(null)],
    ["parsed JSON", JSON.parse('{"__proto__": 1}')],
    ["a literal of another realm", runInNewContext("({ a: 1 })")],
  ])("RE-7 counts %s as plain", (_, value) => {
    expect(isPlainObject(value)).toBe(true);
  });

  it.each([
    ["null", null],
    ["undefined", undefined],
    ["a string", "text"],
    ["a function", () => undefined],
    ["an array", []],
    ["an array of another realm", runInNewContext("[]")],
    ["an instance", new Instance()],
    ["a map", new Map()],
    ["a date", new Date()],
    ["an object that inherits from a literal's heir", Object.create(Object.create({}))],
  ])("RE-7 does not count %s as plain", (_, value) => {
    expect(isPlainObject(value)).toBe(false);
  });
});

describe("setting a property of any name", () => {
  it("RE-7 keeps __proto__ as an ordinary own property and leaves the prototype alone", () => {
    const target: Record<string, unknown> = {};
    setOwn(target, "__proto__", { polluted: true });
    setOwn(target, "plain", 1);
    expect(JSON.stringify(target)).toBe('{"__proto__":{"polluted":true},"plain":1}');
    expect(Object.getPrototypeOf(target)).toBe(Object.prototype);
    expect(target["polluted"]).toBeUndefined();
  });

  it("RE-7 lets __proto__ be overwritten and deleted like any other property", () => {
    const target: Record<string, unknown> = {};
    setOwn(target, "__proto__", 1);
    expect(Object.getOwnPropertyDescriptor(target, "__proto__")).toEqual({
      value: 1,
      writable: true,
      enumerable: true,
      configurable: true,
    });
  });
});
