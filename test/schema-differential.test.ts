import fc from "fast-check";
import { expect, it } from "vitest";
import { Compile } from "typebox/schema";
import { type CompiledSchema, compileSchema } from "../src/core/schema/compile-schema.ts";
import type { JsonSchema } from "../src/core/schema/json-schema.ts";
import { SchemaError } from "../src/core/schema/schema-error.ts";
import { runs, schemaCases } from "./arbitrary-schema.ts";

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

it("RE-32 gives the same answers compiled and interpreted, for any schema and any value", () => {
  fc.assert(
    fc.property(schemaCases(true), ({ schema, values }) => {
      const both = bothWays(schema);
      fc.pre(both !== undefined);
      const [compiled, interpreted] = both;
      for (const value of values) {
        expect(compiled.check(value)).toBe(interpreted.check(value));
        expect(compiled.errors(value)).toEqual(interpreted.errors(value));
        expect(compiled.normalize(value)).toStrictEqual(interpreted.normalize(value));
        expect(compiled.fillDefaults(value)).toStrictEqual(interpreted.fillDefaults(value));
      }
    }),
    runs(300),
  );
});

it("RE-32 has errors exactly when the value does not pass, and is clean only when it passes", () => {
  fc.assert(
    fc.property(schemaCases(true), fc.boolean(), ({ schema, values }, codegen) => {
      const both = bothWays(schema);
      fc.pre(both !== undefined);
      const compiled = both[codegen ? 0 : 1];
      for (const value of values) {
        expect(compiled.errors(value).length === 0).toBe(compiled.check(value));
        if (compiled.isClean(value)) expect(compiled.check(value)).toBe(true);
      }
    }),
    runs(300),
  );
});
it("RE-32 passes the values that an independent checker passes", () => {
  fc.assert(
    fc.property(schemaCases(false), ({ schema, values }) => {
      const both = bothWays(schema);
      fc.pre(both !== undefined);
      const other = Compile(schema as never);
      for (const value of values) expect(both[0].check(value)).toBe(other.Check(value));
    }),
    runs(300),
  );
});
