import { expect } from "vitest";
import { type CompiledSchema, compileSchema, type SchemaOptions } from "../src/core/schema/compile-schema.ts";
import { SchemaError } from "../src/core/schema/schema-error.ts";

/** The error a schema is refused with. */
export function refusal(schema: unknown, options?: SchemaOptions): SchemaError {
  try {
    compileSchema(schema, options);
  } catch (error) {
    if (error instanceof SchemaError) return error;
    throw error;
  }
  throw new Error("The schema was accepted.");
}

/** Expects a schema to pass the good values and to refuse the bad ones. */
export function expectAnswers(
  compiled: CompiledSchema,
  good: readonly unknown[],
  bad: readonly unknown[],
): void {
  for (const value of good) expect(compiled.errors(value)).toEqual([]);
  for (const value of bad) expect(compiled.check(value)).toBe(false);
}
