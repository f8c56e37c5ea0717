import { expect } from "vitest";
import { type CompiledSchema, compileSchema, SchemaError, type SchemaOptions } from "../src/index.ts";

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

/** Values by what a schema says of them: nothing to change, valid but not clean, refused. */
interface Judged {
  readonly clean: readonly unknown[];
  readonly valid: readonly unknown[];
  readonly refused: readonly unknown[];
}

/** Expects both predicates to judge values so, standing alone and as a property of an object. */
export function expectPredicates(schema: unknown, options: SchemaOptions, judged: Judged): void {
  const compiled = compileSchema(schema, options);
  expectJudgement((value) => [compiled.check(value), compiled.isClean(value)], judged);
  // A reference to the whole document would mean something else inside another one.
  if (JSON.stringify(schema).includes('"#"')) return;
  const $defs = (schema as { $defs?: object }).$defs ?? {};
  const whole = { type: "object", properties: { w: schema }, required: ["w"], $defs };
  const nested = compileSchema(whole, options);
  const present = judged.clean.filter((value) => value !== undefined);
  expectJudgement((w) => [nested.check({ w }), nested.isClean({ w })], { ...judged, clean: present });
}

function expectJudgement(ask: (value: unknown) => unknown[], { clean, valid, refused }: Judged): void {
  for (const value of clean) expect([value, ...ask(value)]).toEqual([value, true, true]);
  for (const value of valid) expect([value, ...ask(value)]).toEqual([value, true, false]);
  for (const value of refused) expect([value, ...ask(value)]).toEqual([value, false, false]);
}
