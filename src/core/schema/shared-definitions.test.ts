import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.ts";
import { compileSchema } from "./compile-schema.ts";
import type { JsonSchema, JsonSchemaObject } from "./json-schema.ts";
import { SCHEMA_LIMITS } from "./limits.ts";
import { snapshotSchema } from "./snapshot-schema.ts";

const frozen = (schema: JsonSchemaObject) => snapshotSchema(schema, SCHEMA_LIMITS) as JsonSchemaObject;

const refTo = (name: string) => ({ $ref: `#/$defs/${name}` });

describe("definitions that schemas share", () => {
  it("RE-32 are not copied again", () => {
    const shared = frozen({ type: "object", properties: { name: { type: "string" } } });
    const { json } = compileSchema({ ...refTo("Shared"), $defs: { Shared: shared } });
    expect((json as { $defs: JsonSchemaObject }).$defs["Shared"]).toBe(shared);
    expect(frozen(shared)).toBe(shared);
  });

  it("RE-32 mean what they lead to in each schema", () => {
    const list = frozen({ type: "array", items: refTo("Item") });
    const schemas = (["string", "integer", "string"] as const).map((type) =>
      compileSchema({ ...refTo("List"), $defs: { List: list, Item: frozen({ type }) } }),
    );
    expect(schemas.map((schema) => schema.check(["a"]))).toEqual([true, false, true]);
    expect(schemas.map((schema) => schema.check([1]))).toEqual([false, true, false]);
  });

  it("RE-32 may refer to the schema they stand in", () => {
    const part = frozen({ type: "object", properties: { whole: { $ref: "#" } } });
    const schemas = ["a", "b"].map((name) =>
      compileSchema({ required: [name], properties: { part: refTo("Part") }, $defs: { Part: part } }),
    );
    const value = { a: 1, part: { whole: { a: 1 } } };
    expect(schemas.map((schema) => schema.check(value))).toEqual([true, false]);
    expect(schemas.map((schema) => schema.check({ ...value, b: 1 }))).toEqual([true, false]);
  });

  it("RE-32 declare defaults wherever they are reached", () => {
    const inner = frozen({ type: "object", properties: { n: { type: "integer", default: 7 } } });
    const outer = frozen({ type: "object", properties: { inner: refTo("Inner") } });
    const $defs = { Outer: outer, Inner: inner, Unused: frozen({ default: 1 }) };
    for (let round = 0; round < 3; round++) {
      const schema = compileSchema({ ...refTo("Outer"), title: `${round}`, $defs });
      expect(schema.hasDefaults).toBe(true);
      expect(schema.fillDefaults({ inner: {} })).toEqual({ inner: { n: 7 } });
      expect(compileSchema({ type: "object", title: `${round}`, $defs }).hasDefaults).toBe(false);
    }
  });

  it("RE-32 count as what they are in every schema, up to the limits and not beyond", () => {
    const half = (title: string, length: number) =>
      frozen({ title, properties: Object.fromEntries(Array.from({ length }, (_, at) => [`p${at}`, {}])) });
    const [first, second] = [half("first", 20_000), half("second", SCHEMA_LIMITS.subschemas - 20_000 - 5)];
    const schema = (more: JsonSchemaObject) => ({
      allOf: [refTo("A"), refTo("B")],
      $defs: { A: first, B: second },
      ...more,
    });
    for (let round = 0; round < 3; round++) {
      // The root, its two references, the two definitions and what is in them.
      expect(compileSchema(schema({})).check({})).toBe(true);
      expect(() => compileSchema(schema({ not: false }))).toThrow("more than 50000 subschemas");
    }
    const pattern = (letter: string) => frozen({ pattern: `^${letter}+$`.padEnd(4_000, "|b+c") });
    const $defs = Object.fromEntries(
      [..."defghijklmnopqrstuvwxyz"].map((letter) => [letter, pattern(letter)]),
    );
    for (const letter of Object.keys($defs)) {
      compileSchema({ ...refTo(letter), $defs: { [letter]: $defs[letter] as JsonSchema } });
    }
    expect(() => compileSchema({ allOf: Object.keys($defs).map(refTo), $defs })).toThrow("patternSize");
  });

  it("RE-32 remember answers, so that alternatives within alternatives stay few", () => {
    const tree = frozen({
      anyOf: [
        { required: ["none"], properties: { next: refTo("Tree") } },
        { properties: { next: refTo("Tree"), none: false } },
        { properties: { next: refTo("Tree") } },
      ],
    });
    let value: object = { leaf: true };
    for (let depth = 0; depth < 60; depth++) value = { next: value };
    for (const title of ["first", "second"]) {
      const schema = compileSchema({ title, properties: { root: refTo("Tree") }, $defs: { Tree: tree } });
      expect(schema.check({ root: value })).toBe(true);
      expect(schema.normalize({ root: value }).valid).toBe(true);
    }
  });

  it("RE-32 answer like copies of them, in any graph", () => {
    const names = ["A", "B", "C", "D"];
    const definition = fc
      .record({
        types: fc.constantFrom(["object"], ["object", "integer"], ["object", "string"]),
        refs: fc.subarray(names),
        required: fc.subarray(["a", "b"]),
      })
      .map(({ types, refs, required }) =>
        frozen({
          type: types,
          required,
          properties: Object.fromEntries(refs.map((name) => [name.toLowerCase(), refTo(name)])),
        }),
      );
    const pools = fc.record(
      Object.fromEntries(names.map((name) => [name, fc.array(definition, { minLength: 2, maxLength: 2 })])),
    );
    const roots = fc.array(
      fc.record({
        root: fc.constantFrom(...names),
        picks: fc.array(fc.nat(1), { minLength: 4, maxLength: 4 }),
      }),
      { minLength: 2, maxLength: 6 },
    );
    const value = fc.letrec((tie) => ({
      tree: fc.oneof(
        { depthSize: "small", withCrossShrink: true },
        fc.constantFrom(1, "text", null),
        fc.dictionary(fc.constantFrom("a", "b", "c", "d"), tie("tree"), { maxKeys: 3 }),
      ),
    })).tree;
    fc.assert(
      fc.property(pools, roots, fc.array(value, { minLength: 3 }), (pool, all, values) => {
        for (const { root, picks } of all) {
          const $defs = Object.fromEntries(names.map((name, at) => [name, pool[name]?.[picks[at] ?? 0]]));
          const schema = { ...refTo(root), $defs } as JsonSchemaObject;
          const [shared, copied] = [compileSchema(schema), compileSchema(structuredClone(schema))];
          for (const each of values) expect(shared.errors(each)).toEqual(copied.errors(each));
        }
      }),
      runs(200),
    );
  });
});
