import { describe, expect, it } from "vitest";
import { compileSchema } from "../../core/schema/compile-schema.ts";
import { toModernSchema } from "./modern-schema.ts";

const DRAFT_04 = "http://json-schema.org/draft-04/schema#";
const OF_2019 = "https://json-schema.org/draft/2019-09/schema";

describe("toModernSchema", () => {
  it.each([
    { $schema: "https://example.com/dialect", items: [{}] },
    { $id: "https://e/x", pattern: "^[\\w-.]+$", prefixItems: [true], properties: { a: { $anchor: "a" } } },
  ])("RE-32 leaves %j word for word", (schema) => {
    expect(toModernSchema(schema)).toBe(schema);
  });

  it("RE-32 leaves out the name of today's dialect, which stops validators of another one", () => {
    const $schema = "https://json-schema.org/draft/2020-12/schema";
    const given = {
      $schema,
      properties: { $schema: { $schema, type: "string" }, a: { $ref: "#/$defs/b" } },
      $defs: { b: { $schema: `${$schema}#`, $id: "https://e/b", const: { $schema } } },
    };
    expect(toModernSchema(given)).toEqual({
      properties: { $schema: { type: "string" }, a: { $ref: "#/$defs/b" } },
      $defs: { b: { $id: "https://e/b", const: { $schema } } },
    });
    expect(given.$schema).toBe($schema);
  });

  it.each([
    [
      { items: [{ type: "number" }], additionalItems: false },
      { prefixItems: [{ type: "number" }], items: false },
    ],
    [
      { not: { dependencies: { a: ["b"], c: { required: ["d"] } } } },
      { not: { dependentRequired: { a: ["b"] }, dependentSchemas: { c: { required: ["d"] } } } },
    ],
    [
      { minimum: 1, exclusiveMinimum: true },
      { minimum: 1, exclusiveMinimum: 1 },
    ],
    [{ $schema: DRAFT_04, maximum: 1, exclusiveMaximum: false }, { maximum: 1 }],
    [{ $schema: OF_2019, $recursiveAnchor: true, not: { $recursiveRef: "#" } }, { not: { $ref: "#" } }],
  ])("RE-32 rewrites %j, whether or not it names its dialect", (old, modern) => {
    expect(toModernSchema(old)).toEqual(modern);
  });

  it("RE-32 keeps patterns and whatever else only validators stumble over", () => {
    const old = { items: [{ pattern: "^[\\w-.]+$", nullable: true, multipleOf: 0.01 }] };
    expect(toModernSchema(old)).toEqual({ prefixItems: old.items });
  });

  it("RE-32 follows references into what it rewrote", () => {
    const old = { properties: { a: { items: [{ type: "number" }] }, b: { $ref: "#/properties/a/items/0" } } };
    const modern = compileSchema(toModernSchema(old));
    expect([{ a: [1], b: 1 }, { a: ["x"] }, { b: "x" }].map((value) => modern.check(value))).toEqual([
      true,
      false,
      false,
    ]);
  });
});
