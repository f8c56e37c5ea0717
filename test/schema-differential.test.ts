import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { Compile } from "typebox/schema";
import { expect, it } from "vitest";
import { type CompiledSchema, compileSchema, type JsonSchema, SchemaError } from "../src/index.ts";
import { type SchemaCase, schemaCases } from "./arbitrary-schema.ts";
import { seededRuns } from "./runs.ts";

/** Compiles both ways; undefined when both refuse the schema for the same reason. */
function bothWays(schema: JsonSchema): [CompiledSchema, CompiledSchema] | undefined {
  const [compiled, interpreted] = [true, false].map((codegen) => {
    try {
      return compileSchema(schema, { codegen });
    } catch (thrown) {
      if (!(thrown instanceof SchemaError)) throw thrown;
      return thrown.message;
    }
  });
  if (typeof compiled === "object" && typeof interpreted === "object") return [compiled, interpreted];
  expect(compiled).toBe(interpreted);
  return undefined;
}

/** Renames what the other checker takes for inherited properties. */
function withPlainNames(given: SchemaCase): SchemaCase {
  const text = JSON.stringify(given, (_key, value) => (value === undefined ? null : value));
  return JSON.parse(text.replaceAll(/"(?:__proto__|toString)"/g, '"p"').replaceAll('"constructor"', '"e"'));
}

it("RE-32 gives the same answers compiled and interpreted, for any schema and any value", () => {
  fc.assert(
    fc.property(schemaCases(true), ({ schema, values }) => {
      const both = bothWays(schema);
      fc.pre(both !== undefined);
      const [compiled, interpreted] = both;
      for (const value of values) {
        for (const ask of ["check", "errors", "normalize", "fillDefaults"] as const) {
          const [answer, other] = [compiled[ask](value), interpreted[ask](value)];
          if (!isDeepStrictEqual(answer, other))
            expect({ ask, value, answer }).toEqual({ ask, value, other });
        }
        if (compiled.isClean(value)) expect(interpreted.isClean(value)).toBe(true);
      }
    }),
    seededRuns(60),
  );
});

it.each<[JsonSchema, unknown]>([
  [{ anyOf: [{ type: "object" }, { properties: { x: {} } }] }, { y: 1 }],
  [
    { anyOf: [{ properties: { a: { type: "object" } } }, { properties: { a: { properties: { x: {} } } } }] },
    { a: { y: 1 } },
  ],
  [{ anyOf: [{ properties: { a: {} } }, { properties: { a: {}, b: { default: 1 } } }] }, { a: 1 }],
  [{ minimum: 5 }, Number.NEGATIVE_INFINITY],
  [{ multipleOf: 2 }, Number.NaN],
  [{ properties: { n: {} } }, { n: Number.NaN, zz: 1 }],
  [{ items: true }, [Number.NaN]],
  [{ default: {} }, undefined],
  [{ const: {} }, { a: undefined }],
])("RE-32 gives the same answers compiled and interpreted for %j", (schema, value) => {
  const [answers, others] = [true, false].map((codegen) => {
    const compiled = compileSchema(schema, { codegen });
    return [compiled.check(value), compiled.errors(value), compiled.normalize(value)];
  });
  expect(answers).toEqual(others);
});

it("RE-32 says each issue once, even where two keywords agree on it", () => {
  const k = { required: ["k"] };
  const compiled = compileSchema({ properties: { b: k }, patternProperties: { "^b": k, b$: k } });
  expect(compiled.errors({ b: {} })).toEqual([
    { pointer: "/b/k", expected: "a required property", found: "nothing" },
  ]);
});

it("RE-32 has errors exactly when the value does not pass, at most 20, shortest pointer first", () => {
  fc.assert(
    fc.property(schemaCases(true), fc.boolean(), ({ schema, values }, codegen) => {
      const both = bothWays(schema);
      fc.pre(both !== undefined);
      const compiled = both[codegen ? 0 : 1];
      for (const value of values) {
        const issues = compiled.errors(value);
        expect(issues.length === 0).toBe(compiled.check(value));
        expect(issues.length).toBeLessThanOrEqual(20);
        const lengths = issues.map(({ pointer }) => pointer.length);
        expect(lengths).toEqual([...lengths].sort((a, b) => a - b));
        const said = issues.map(({ pointer, expected }) => `${pointer}\n${expected}`);
        expect(new Set(said).size).toBe(said.length);
      }
    }),
    seededRuns(60),
  );
});

/** Keywords that the other checker reads otherwise: by a tolerance, and on arrays as well as objects. */
const READ_OTHERWISE = /"(?:multipleOf|unevaluatedItems|unevaluatedProperties)":/;

it("RE-32 passes the values that an independent checker passes", () => {
  fc.assert(
    fc.property(schemaCases(false).map(withPlainNames), ({ schema, values }) => {
      fc.pre(!READ_OTHERWISE.test(JSON.stringify(schema)));
      const both = bothWays(schema);
      fc.pre(both !== undefined);
      const other = Compile(schema as Exclude<JsonSchema, boolean>);
      for (const value of values) {
        const answers = both.map((compiled) => compiled.check(value));
        const expected = other.Check(value);
        if (answers.some((answer) => answer !== expected))
          expect({ value, answers }).toEqual({ value, expected });
      }
    }),
    seededRuns(60),
  );
});
