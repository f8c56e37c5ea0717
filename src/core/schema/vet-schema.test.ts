import { Type } from "typebox";
import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { expectAnswers, refusal } from "../../../test/schema-answers.ts";
import { compileSchema } from "./compile-schema.ts";

describe("limits on schemas", () => {
  const chain = { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/c" }, c: {} } };
  it.each([
    ["schemaLength", 16, { type: "null" }, "The schema is longer than 15 characters."],
    ["schemaLength", 26, { a: [true, { b: 1 }] }, "The schema is longer than 25 characters."],
    ["schemaDepth", 2, { properties: { a: {} } }, "The schema is nested deeper than 1 levels."],
    ["schemaDepth", 2, { enum: [[1]] }, "The schema is nested deeper than 1 levels."],
    ["schemaDepth", 4, chain, "References and combinations are nested deeper than 3 levels."],
    ["subschemas", 3, { properties: { a: true }, not: {} }, "The schema has more than 2 subschemas."],
    ["subschemas", 4, { items: [{}, {}], $defs: { a: {} } }, "The schema has more than 3 subschemas."],
    ["expansion", 3, { allOf: [{}, {}] }, "The schema applies more than 2 subschemas to one value."],
    ["expansion", 4, { anyOf: [{ not: {} }, {}] }, "The schema applies more than 3 subschemas to one value."],
  ])("RE-32 holds a schema to %s at %i exactly", (limit, n, schema, message) => {
    expect(compileSchema(schema, { limits: { [limit]: n } }).json).toEqual(schema);
    expect(refusal(schema, { limits: { [limit]: n - 1 } }).message).toMatch(message);
  });

  it("RE-32 counts the subschemas of other documents and of places no keyword leads to", () => {
    const documents = { "https://x.example/a": { items: {} } };
    const schema = { $ref: "https://x.example/a" };
    expect(compileSchema(schema, { documents, limits: { subschemas: 3 } }).check([])).toBe(true);
    expect(refusal(schema, { documents, limits: { subschemas: 2 } }).message).toContain(
      "more than 2 subschemas",
    );
    expect(refusal({ $ref: "#/x/y", x: { y: {} } }, { limits: { subschemas: 1 } }).message).toContain(
      "more than 1",
    );
  });

  it("RE-32 does not add up the subschemas that apply to different parts of a value", () => {
    const parts = { properties: { a: { allOf: [{}] }, b: { allOf: [{}] } }, items: { not: false } };
    expect(compileSchema(parts, { limits: { expansion: 2 } }).check({ a: 1 })).toBe(true);
  });

  it("RE-32 refuses shared objects that unfold without end, and references that multiply", () => {
    let shared: object = { type: "string" };
    for (let i = 0; i < 60; i++) shared = { allOf: [shared, shared] };
    const start = cpuMs();
    expect(refusal(shared).message).toBe("The schema is longer than 4194304 characters.");
    const names = Array.from({ length: 30 }, (_, i) => `d${i}`);
    const $defs = Object.fromEntries(
      names.map((name, i) => [
        name,
        { allOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] },
      ]),
    );
    const doubling = { $ref: "#/$defs/d0", $defs: { ...$defs, d30: {} } };
    expect(refusal(doubling).message).toContain("applies more than 10000 subschemas to one value");
    expect(cpuMs() - start).toBeLessThan(5_000);
  });

  it("RE-32 follows an object that is used twice, and refuses one that contains itself", () => {
    const text = { type: "string" };
    expectAnswers(compileSchema({ properties: { a: text, b: text } }), [{ a: "", b: "" }], [{ a: "", b: 1 }]);
    const loop: Record<string, unknown> = {};
    loop["properties"] = { a: { items: [loop] } };
    expect(refusal(loop)).toMatchObject({
      message: expect.stringContaining("The schema object contains itself; use $ref for recursion."),
      pointer: "/properties/a/items/0",
    });
  });
});

describe("references among many resources", () => {
  it("RE-32 are settled in one pass: twenty seconds once, when each looked at every resource", () => {
    const many = <T>(length: number, make: (i: number) => [string, T]) =>
      Object.fromEntries(Array.from({ length }, (_, i) => make(i)));
    const schema = {
      $defs: many(10_000, (i) => [`d${i}`, { $id: `e:${i}`, $dynamicAnchor: "n" }]),
      properties: many(16_000, (i) => [`p${i}`, { $dynamicRef: "e:0#n" }]),
    };
    const started = cpuMs();
    compileSchema(schema);
    expect(cpuMs() - started).toBeLessThan(5_000);
  });
});

describe("what a schema may hold", () => {
  it.each([
    [null, "null"],
    [[], "an array"],
    [7, "number"],
    ["string", "string"],
    [undefined, "undefined"],
    [() => true, "function"],
  ])("RE-32 refuses %s in place of a schema", (schema, word) => {
    expect(refusal(schema)).toMatchObject({
      message: `A schema must be an object or a boolean, not ${word}; use Type from waybill, a JSON Schema, or a Standard Schema that gives its JSON Schema.`,
      pointer: "",
    });
  });

  it.each([
    ["a function", { default: () => 1 }, "a function", "/default"],
    ["NaN", { default: Number.NaN }, "NaN", "/default"],
    ["infinity", { maximum: Number.POSITIVE_INFINITY }, "Infinity", "/maximum"],
    ["a bigint", { const: 1n }, "a bigint", "/const"],
    ["a symbol", { const: Symbol("s") }, "a symbol", "/const"],
    ["a Date", { properties: { "a/b": { default: new Date(0) } } }, "a Date", "/properties/a~1b/default"],
    ["a Map", { enum: [1, new Map()] }, "a Map", "/enum/1"],
    ["a RegExp", { pattern: /a/ }, "a RegExp", "/pattern"],
    ["bytes", { const: new Uint8Array(1) }, "a Uint8Array", "/const"],
    // biome-ignore lint/suspicious/noSparseArray: a hole is what is tested
    ["a hole", { allOf: [, {}] }, "undefined", "/allOf/0"],
    ["undefined in a list", { enum: [1, undefined] }, "undefined", "/enum/1"],
    ["a Map as the whole", new Map(), "a Map", ""],
  ])("RE-32 refuses %s in a schema", (_, schema, word, pointer) => {
    const error = refusal(schema);
    expect(error.message).toContain(`A schema holds JSON only, not ${word}.`);
    expect(error.pointer).toBe(pointer);
  });

  it.each([
    ["Type.Refine", Type.Refine(Type.Number(), () => true)],
    ["Type.Codec", Type.Codec(Type.Number()).Decode(String).Encode(Number)],
  ])("RE-32 refuses %s with a word on what to do", (_, n) => {
    const error = refusal(Type.Object({ n }));
    expect(error.message).toContain("Type.Refine and Type.Codec cannot be written as JSON Schema");
    expect(error.pointer).toBe("/properties/n");
  });

  it("RE-32 takes a keyword that is undefined for absent, and null for a value", () => {
    const compiled = compileSchema({ type: undefined, const: null, title: undefined });
    expect(compiled.json).toEqual({ const: null });
    expect(Object.keys(compiled.json)).toEqual(["const"]);
    expectAnswers(compiled, [null], [0]);
  });

  it("RE-32 takes names such as __proto__ for ordinary ones", () => {
    const compiled = compileSchema(JSON.parse('{"properties":{"__proto__":{"type":"string"}}}'));
    expectAnswers(compiled, [{}, JSON.parse('{"__proto__":"a"}')], [JSON.parse('{"__proto__":1}')]);
    expect(refusal({ $ref: "#/constructor" }).message).toContain("points at nothing");
    expect(refusal({ type: "constructor" }).message).toContain("not a JSON Schema type");
  });

  it("RE-32 keeps a frozen copy that later changes do not reach", () => {
    const schema = { properties: { a: { enum: [{ b: 1 }] } } };
    const compiled = compileSchema(schema);
    schema.properties.a.enum.push({ b: 2 });
    expectAnswers(compiled, [{ a: { b: 1 } }], [{ a: { b: 2 } }]);
    expect(compiled.json).toEqual({ properties: { a: { enum: [{ b: 1 }] } } });
    const frozen = (value: unknown): boolean =>
      typeof value !== "object" || (Object.isFrozen(value) && Object.values(value as object).every(frozen));
    expect(frozen(compiled.json)).toBe(true);
  });

  it.each([{}, true, { title: "x" }, { default: 1 }, { $defs: { a: { type: "string" } } }, Type.Unknown()])(
    "RE-32 knows that %j says nothing",
    (schema) => {
      expect(compileSchema(schema).meaningful).toBe(false);
    },
  );

  it.each([
    false,
    { type: "string" },
    { not: {} },
    { properties: {} },
    { $ref: "#/$defs/a", $defs: { a: {} } },
  ])("RE-32 knows that %j says something", (schema) => {
    expect(compileSchema(schema).meaningful).toBe(true);
  });
});
