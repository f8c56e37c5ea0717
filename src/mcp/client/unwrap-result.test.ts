import { describe, expect, it } from "vitest";
import { compileSchema } from "../../core/schema/compile-schema.ts";
import { schemaInside, valueInside } from "./unwrap-result.ts";

const wrapper = (inner: unknown, more: object = {}) => ({
  type: "object",
  properties: { result: inner },
  required: ["result"],
  ...more,
});

describe("schemaInside", () => {
  it.each([
    ["a plain schema", wrapper({ type: "integer" }), { type: "integer" }],
    ["anything", wrapper(true), true],
    ["a closed wrapper", wrapper({ type: "string" }, { additionalProperties: false }), { type: "string" }],
    [
      "a marked and titled one",
      wrapper({ type: "array" }, { title: "fooOutput", "x-fastmcp-wrap-result": true }),
      { type: "array" },
    ],
    [
      "a dialect and definitions",
      wrapper(
        { type: "array", items: { $ref: "#/$defs/Row" } },
        { $schema: "x:y", $defs: { Row: { type: "null" } } },
      ),
      { $schema: "x:y", type: "array", items: { $ref: "#/$defs/Row" }, $defs: { Row: { type: "null" } } },
    ],
    [
      "references into the wrapped schema itself",
      wrapper({ anyOf: [{ type: "null" }, { type: "array", items: { $ref: "#/properties/result" } }] }),
      { anyOf: [{ type: "null" }, { type: "array", items: { $ref: "#" } }] },
    ],
    ["a name such as $ref that is data", wrapper({ const: { $ref: "#" } }), { const: { $ref: "#" } }],
  ])("RE-23 takes out of the wrapper %s", (_, schema, inner) => {
    expect(schemaInside(schema, "result")).toEqual(inner);
  });

  it.each([
    ["more properties", { ...wrapper(true), properties: { result: true, more: true } }],
    ["another name", { type: "object", properties: { value: true }, required: ["value"] }],
    ["an optional member", { type: "object", properties: { result: true } }],
    ["an open wrapper that says so", wrapper(true, { additionalProperties: true })],
    ["a rule of its own", wrapper(true, { minProperties: 1 })],
    ["the mark alone", { type: "object", "x-fastmcp-wrap-result": true }],
    ["no type", { properties: { result: true }, required: ["result"] }],
    ["a member that cannot be", wrapper(false)],
    ["a member that is no schema", wrapper("x")],
    ["a reference to the wrapper", wrapper({ anyOf: [{ type: "null" }, { $ref: "#" }] })],
    [
      "a reference from a definition to it",
      wrapper({ $ref: "#/$defs/a" }, { $defs: { a: { not: { $ref: "#" } } } }),
    ],
    ["definitions on both sides", wrapper({ $defs: { a: true } }, { $defs: { b: true } })],
    ["no schema", null],
    ["a boolean", true],
  ])("RE-23 leaves alone what has %s", (_, schema) => {
    expect(schemaInside(schema, "result")).toBeUndefined();
  });

  it("RE-32 gives a schema that still works, in old dialects too", () => {
    const $schema = "http://json-schema.org/draft-07/schema#";
    const schema = wrapper({ $ref: "#/definitions/n" }, { $schema, definitions: { n: { type: "integer" } } });
    const compiled = compileSchema(schemaInside(schema, "result"));
    expect([compiled.check(1), compiled.check("1")]).toEqual([true, false]);
  });
});

describe("valueInside", () => {
  it("RE-23 takes the value of the one member, whatever it is", () => {
    for (const value of [null, 0, false, "", [], undefined]) {
      expect(valueInside({ result: value }, "result")).toEqual({ value });
    }
  });

  it("RE-23 leaves anything else alone", () => {
    for (const value of [{}, { result: 1, more: 2 }, { other: 1 }, [1], null, "result"]) {
      expect(valueInside(value, "result")).toBeUndefined();
    }
  });
});
