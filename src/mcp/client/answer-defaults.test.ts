import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { withDefaults } from "./answer-defaults.ts";

const schema = (properties: unknown) => ({ type: "object", properties });

describe("the defaults of an accepted answer", () => {
  it("Mcp: fill the fields that are missing, and no others", () => {
    const asked = schema({
      name: { type: "string", default: "Ada" },
      age: { type: "integer", default: 36 },
      score: { type: "number", default: 9.5 },
      sure: { type: "boolean", default: false },
      tags: { type: "array", items: { enum: ["a", "b"] }, default: ["a"] },
      open: { type: "string" },
    });
    expect(withDefaults({ name: "", age: undefined, more: 1 }, asked)).toEqual({
      name: "",
      age: 36,
      score: 9.5,
      sure: false,
      tags: ["a"],
      more: 1,
    });
    expect(withDefaults(undefined, asked)).toMatchObject({ name: "Ada" });
  });

  it.each([
    { type: "string", default: 1 },
    { type: "integer", default: 1.5 },
    { type: "number", default: "1" },
    { type: "boolean", default: null },
    { type: "array", default: [{}] },
    { type: "object", default: {} },
    { default: "untyped" },
    ["default"],
    null,
  ])("Mcp: are left alone where the field is %j", (field) => {
    expect(withDefaults({}, schema({ field }))).toEqual({});
    expect(withDefaults(undefined, schema({ field }))).toBeUndefined();
  });

  it("Mcp: never reach a prototype, and come from the question's own members alone", () => {
    const hostile = JSON.parse(
      '{"__proto__": {"type": "string", "default": "x"}, "constructor": {"type": "string", "default": "y"}}',
    );
    const filled = withDefaults({}, schema(hostile));
    expect(Object.keys(filled ?? {})).toEqual(["constructor"]);
    const inherited = Object.create({ default: "x" }, { type: { value: "string", enumerable: true } });
    expect(withDefaults({}, schema({ inherited }))).toEqual({});
  });

  it("Mcp: change nothing that was answered, whatever the question", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), (content, properties) => {
        const before = JSON.stringify(content);
        expect(withDefaults(content, schema(properties))).toMatchObject(content);
        expect(JSON.stringify(content)).toBe(before);
      }),
    );
  });
});
