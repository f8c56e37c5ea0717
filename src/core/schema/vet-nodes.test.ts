import { describe, expect, it } from "vitest";
import { compileSchema } from "./compile-schema.ts";
import { SchemaError } from "./schema-issue.ts";

const LOOP = "The schema refers to itself without consuming any input.";
const self = { $ref: "#" };

describe("references that loop", () => {
  it.each([
    self,
    { allOf: [{}, self] },
    { anyOf: [self, {}] },
    { oneOf: [self] },
    { not: self },
    { if: self },
    { if: {}, then: self },
    { if: {}, else: self },
    { dependentSchemas: { a: self } },
    { dependencies: { a: self } },
    { allOf: [{ anyOf: [{ oneOf: [{ not: { if: self } }] }] }] },
    { $id: "https://x.example/a", allOf: [{ $ref: "a" }] },
    { $anchor: "a", allOf: [{ $ref: "#a" }] },
    { $dynamicAnchor: "a", $dynamicRef: "#a" },
    { $dynamicAnchor: "a", allOf: [{ $dynamicRef: "#a" }] },
    { $dynamicAnchor: "a", allOf: [{ $ref: "#a" }] },
    { allOf: [{ $dynamicRef: "#a", $dynamicAnchor: "a" }] },
    { $recursiveRef: "#" },
    { $recursiveAnchor: true, anyOf: [{ $recursiveRef: "#" }] },
    { type: "string", $ref: "#/$defs/a", $defs: { a: self } },
  ])("RE-32 refuses %j", (schema) => {
    expect(() => compileSchema(schema)).toThrow(SchemaError);
    expect(() => compileSchema(schema)).toThrow(LOOP);
  });

  it.each([
    [
      "mutual references",
      { items: { $ref: "#/$defs/a" }, $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } },
    ],
    ["one deep in a property", { properties: { a: { not: { $ref: "#/properties/a" } } } }],
    ["one in patternProperties", { patternProperties: { a: { $ref: "#/patternProperties/a" } } }],
    ["one in additionalProperties", { additionalProperties: { $ref: "#/additionalProperties" } }],
    ["one in propertyNames", { propertyNames: { $ref: "#/propertyNames" } }],
    ["one in prefixItems", { prefixItems: [{ $ref: "#/prefixItems/0" }] }],
    ["one in contains", { contains: { $ref: "#/contains" } }],
    ["one in unevaluatedProperties", { unevaluatedProperties: { $ref: "#/unevaluatedProperties" } }],
    ["one in unevaluatedItems", { unevaluatedItems: { $ref: "#/unevaluatedItems" } }],
  ])("RE-32 refuses a loop that only a part of a value meets: %s", (_, schema) => {
    expect(() => compileSchema(schema)).toThrow(LOOP);
  });

  it("RE-32 says where a loop is", () => {
    const schema = { properties: { a: { $ref: "#/properties/a" } } };
    expect(() => compileSchema(schema)).toThrow(`${LOOP} (at /properties/a of the schema)`);
  });

  it("RE-32 leaves alone a loop that nothing leads to, and one place reached twice", () => {
    const text = { $ref: "#/$defs/text" };
    const schema = {
      allOf: [text, { anyOf: [text] }],
      $defs: { text: { type: "string" }, loop: { $ref: "#/$defs/loop" } },
    };
    expect(compileSchema(schema).check("a")).toBe(true);
    expect(compileSchema(schema).check(1)).toBe(false);
    expect(compileSchema({ then: self }).check(1)).toBe(true);
  });

  it("RE-32 follows a chain of references as long as the schema without running out of stack", () => {
    const $defs = Object.fromEntries(
      Array.from({ length: 20_000 }, (_, i) => [i, { $ref: `#/$defs/${i + 1}` }]),
    );
    const schema = { $ref: "#/$defs/0", $defs: { ...$defs, 20000: {} } };
    expect(() => compileSchema(schema)).toThrow(/nested deeper than 256 levels|more than 10000 subschemas/);
  });
});

describe("recursion that consumes input", () => {
  const list = (key: string, child: object) => ({ type: ["object", "array", "null"], [key]: child });
  it.each([
    ["properties", list("properties", { a: self }), { a: { a: null } }, { a: { a: 1 } }],
    ["patternProperties", list("patternProperties", { "^a": self }), { ab: {} }, { ab: { ac: 1 } }],
    ["additionalProperties", list("additionalProperties", self), { x: { y: null } }, { x: { y: 1 } }],
    ["items", list("items", self), [[], [null]], [[], [1]]],
    ["prefixItems", list("prefixItems", [self] as unknown as object), [[null]], [[1]]],
    ["contains", { anyOf: [{ type: "null" }, { type: "array", contains: self }] }, [1, [null]], [1, [1]]],
    ["unevaluatedItems", list("unevaluatedItems", self), [[null]], [[1]]],
    ["unevaluatedProperties", list("unevaluatedProperties", self), { a: { b: {} } }, { a: { b: 1 } }],
    ["$recursiveRef", { $recursiveAnchor: true, ...list("items", { $recursiveRef: "#" }) }, [[null]], [[1]]],
    ["$recursiveRef without an anchor", list("items", { $recursiveRef: "#" }), [[null]], [[1]]],
    ["$dynamicRef", { $dynamicAnchor: "a", ...list("items", { $dynamicRef: "#a" }) }, [[null]], [[1]]],
  ])("RE-32 accepts recursion through %s", (_, schema, good, bad) => {
    for (const codegen of [true, false]) {
      const compiled = compileSchema(schema, { codegen });
      expect(compiled.errors(good)).toEqual([]);
      expect(compiled.check(bad)).toBe(false);
    }
  });

  const generic = {
    $id: "https://x.example/list",
    items: { $dynamicRef: "#T" },
    $defs: { any: { $dynamicAnchor: "T" } },
  };
  it("RE-32 lets the outermost document decide what a $dynamicRef means", () => {
    const strings = {
      $id: "https://x.example/strings",
      $ref: "list",
      $defs: { t: { $dynamicAnchor: "T", type: "string" }, generic },
    };
    const numbers = {
      $id: "https://x.example/numbers",
      $ref: "list",
      $defs: { t: { $dynamicAnchor: "T", type: "number" } },
    };
    const both = {
      properties: { s: { $ref: "https://x.example/strings" }, n: { $ref: "https://x.example/numbers" } },
      $defs: { strings, numbers },
    };
    for (const codegen of [true, false]) {
      const single = compileSchema(strings, { codegen });
      expect([["a"], [1]].map((value) => single.check(value))).toEqual([true, false]);
      const open = compileSchema({ $ref: generic.$id, $defs: { generic } }, { codegen });
      expect([["a"], [1]].map((value) => open.check(value))).toEqual([true, true]);
      const compiled = compileSchema(both, { codegen });
      expect([{ s: ["a"], n: [1] }, { s: [1] }, { n: ["a"] }].map((value) => compiled.check(value))).toEqual([
        true,
        false,
        false,
      ]);
    }
  });
});
