import { describe, expect, it } from "vitest";
import { compileSchema } from "../../../core/schema/compile-schema.ts";
import { toModernSchema, toServedInput, toServedOutput } from "./served-schema.ts";

const DRAFT_07 = "http://json-schema.org/draft-07/schema#";
const DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema";

describe("toServedInput", () => {
  it("RE-32 serves a schema for objects word for word", () => {
    const schema = { type: "object", $defs: { a: { type: "string" } }, allOf: [{}] };
    expect(toServedInput({ $schema: DRAFT_2020, ...schema })).toEqual({ schema, wrapped: false });
    const newer = { $schema: DRAFT_2020, ...schema, $defs: { a: { $anchor: "a" } } };
    expect(toServedInput(newer)).toEqual({ schema: newer, wrapped: false });
  });

  it.each([
    [undefined, { type: "object" }],
    [true, { type: "object" }],
    [{ description: "Anything." }, { description: "Anything.", type: "object" }],
    [{ properties: { a: {} } }, { properties: { a: {} }, type: "object" }],
    [{ anyOf: [{ type: "object" }, { required: ["a"] }] }, { type: "object" }],
    [
      { $ref: "#/$defs/o", $defs: { o: { type: "object" } } },
      { $ref: "#/$defs/o", type: "object" },
    ],
  ])("RE-32 serves %j as a schema for objects", (given, expected) => {
    const { schema, wrapped } = toServedInput(given);
    expect(schema).toMatchObject(expected);
    expect(wrapped).toBe(false);
  });

  it.each([
    { type: "string" },
    { type: ["object", "null"] },
    { anyOf: [{ type: "object" }, { type: "array" }] },
    { enum: [1, 2] },
    { const: null },
  ])("RE-32 wraps %j, which takes more than objects", (given) => {
    const { schema, wrapped } = toServedInput(given);
    expect(wrapped).toBe(true);
    expect(schema).toEqual({ type: "object", properties: { input: given }, required: ["input"] });
  });

  it("RE-32 keeps references right in what it wraps", () => {
    const given = { $defs: { s: { type: "string" } }, type: "array", items: { $ref: "#/$defs/s" } };
    const wrapped = compileSchema(toServedInput(given).schema);
    expect(wrapped.check({ input: ["a"] })).toBe(true);
    expect(wrapped.check({ input: [1] })).toBe(false);
  });

  it("RE-32 leaves alone what only looks like a reference", () => {
    const given = { type: "string", enum: ["x"], default: { $ref: "#" }, examples: [{ $ref: "#/a" }] };
    expect(toServedInput(given).schema["properties"]).toEqual({ input: given });
  });
});

describe("toServedOutput", () => {
  it("RE-32 rewrites draft-07 as 2020-12 with the same meaning", () => {
    const given = {
      $schema: DRAFT_07,
      type: "object",
      definitions: { n: { type: "number" } },
      properties: {
        pair: {
          type: "array",
          items: [{ $ref: "#/definitions/n" }, { type: "string" }],
          additionalItems: false,
        },
        items: { type: "string" },
      },
      dependencies: { pair: ["items"], items: { maxProperties: 2 } },
    };
    const served = toServedOutput(given, "modern");
    expect(JSON.stringify(served)).not.toContain("$schema");
    const [before, after] = [compileSchema(given), compileSchema(served)];
    const values = [
      { pair: [1, "a"], items: "x" },
      { pair: [1, "a", 2], items: "x" },
      { pair: ["a"], items: "x" },
      { pair: [1] },
      { items: "x", a: 1, b: 2 },
    ];
    expect(values.map((value) => after.check(value))).toEqual(values.map((value) => before.check(value)));
    expect(values.map((value) => after.check(value))).toEqual([true, false, false, false, false]);
  });

  it("RE-30 wraps what is no object for 2025 clients alone", () => {
    const given = { type: "array", items: { $ref: "#" } };
    expect(toServedOutput(given, "modern")).toEqual(given);
    expect(toServedOutput(given, "legacy")).toEqual({
      type: "object",
      properties: { result: { type: "array", items: { $ref: "#/properties/result" } } },
      required: ["result"],
    });
  });

  it("RE-30 says object where branches do, and never adds it to what accepts more", () => {
    const branches = { anyOf: [{ type: "object" }, { type: "object" }] };
    expect(toServedOutput(branches, "legacy")).toEqual({ ...branches, type: "object" });
    expect(toServedOutput({ properties: {} }, "modern")).toEqual({ properties: {} });
  });

  it("RE-30 leaves the name of the dialect out, which older validators refuse", () => {
    expect(toServedOutput({ $schema: DRAFT_2020, type: "object" }, "legacy")).toEqual({ type: "object" });
    expect(toServedOutput(true, "legacy")).toBeUndefined();
  });

  it("RE-30 drops no more than it must beside a pattern that clients refuse", () => {
    const given = {
      type: "object",
      properties: { a: { type: "string", minLength: 1, pattern: "^[\\w-.]+$" }, b: { pattern: "^\\-$" } },
      required: ["a"],
      additionalProperties: false,
    };
    expect(toServedOutput(given, "modern")).toEqual({
      ...given,
      properties: { a: { type: "string", minLength: 1 }, b: { pattern: "^-$" } },
    });
  });

  it("RE-30 keeps a choice without alternatives, which accepts nothing", () => {
    const given = { type: "object", properties: { a: { oneOf: [] } }, not: { oneOf: [] } };
    for (const era of ["legacy", "modern"] as const) {
      const served = compileSchema(toServedOutput(given, era));
      expect([{}, { a: 1 }].map((value) => served.check(value))).toEqual([true, false]);
    }
  });

  it("RE-30 lets further members in where a pattern of names is dropped", () => {
    const bad = { "^[\\w-.]+$": { type: "number" } };
    const given = { type: "object", patternProperties: bad, additionalProperties: false };
    expect(toServedOutput(given, "modern")).toEqual({ type: "object", patternProperties: {} });
  });

  it("RE-30 leaves out what follows a tuple for 2025 clients alone", () => {
    const pair = { type: "array", items: [{ type: "number" }], additionalItems: false };
    const given = { type: "object", properties: { pair } };
    const prefix = { type: "array", prefixItems: [{ type: "number" }] };
    expect(toServedOutput(given, "modern")?.["properties"]).toEqual({ pair: { ...prefix, items: false } });
    expect(toServedOutput(given, "legacy")?.["properties"]).toEqual({ pair: prefix });
  });

  it("RE-30 turns a choice of one into a choice of any where its branches are loosened, and keeps it elsewhere", () => {
    const exact = { type: "object", oneOf: [{ required: ["a"] }, { required: ["b"] }] };
    expect(toServedOutput(exact, "legacy")).toEqual(exact);
    const later = { type: "object", oneOf: [{ dependentRequired: { a: ["b"] } }, { required: ["c"] }] };
    expect(toServedOutput(later, "modern")).toEqual(later);
    expect(toServedOutput(later, "legacy")).toEqual({ type: "object", anyOf: later.oneOf });
  });

  it("RE-30 writes every reference as a pointer, so that no two tools share a name", () => {
    const node = { $anchor: "n", type: "object", properties: { next: { $ref: "#n" } } };
    const given = { $id: "https://e/x", type: "object", properties: { first: node, self: { $ref: "x" } } };
    expect(toServedOutput(given, "legacy")).toEqual({
      type: "object",
      properties: { first: { $ref: "#/$defs/ref1" }, self: { $ref: "#" } },
      $defs: { ref1: { type: "object", properties: { next: { $ref: "#/$defs/ref1" } } } },
    });
  });

  it("RE-30 takes no name that a definition has", () => {
    const given = {
      type: "object",
      properties: { a: { type: "string" }, b: { $ref: "#/properties/a" }, c: { $ref: "#/$defs/ref1" } },
      $defs: { ref1: { type: "number" } },
    };
    const served = compileSchema(toServedOutput(given, "modern"));
    expect([{ b: "x", c: 1 }, { b: 1 }, { c: "x" }].map((value) => served.check(value))).toEqual([
      true,
      false,
      false,
    ]);
  });

  it("RE-30 advertises nothing where the schema cannot be read", () => {
    expect(toServedOutput({ type: "object", $id: "http://[" }, "modern")).toBeUndefined();
  });
});

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
