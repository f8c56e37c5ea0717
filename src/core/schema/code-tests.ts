import { type NumberRules, type StringRules, TYPE_BITS } from "./schema-node.ts";

/** An expression that is true when the variable `x` has one of the types. */
export function typeTest(types: number, x: string): string {
  const tests: string[] = [];
  const has = (bit: number) => (types & bit) !== 0;
  if (has(TYPE_BITS.string)) tests.push(`typeof ${x} === "string"`);
  if (has(TYPE_BITS.number)) tests.push(`Number.isFinite(${x})`);
  else if (has(TYPE_BITS.integer)) tests.push(`Number.isInteger(${x})`);
  if (has(TYPE_BITS.boolean)) tests.push(`typeof ${x} === "boolean"`);
  if (has(TYPE_BITS.null)) tests.push(`${x} === null`);
  if (has(TYPE_BITS.array)) tests.push(`Array.isArray(${x})`);
  if (has(TYPE_BITS.object))
    tests.push(`(typeof ${x} === "object" && ${x} !== null && !Array.isArray(${x}))`);
  return tests.join(" || ");
}

/** Statements that return false when the number `x` is out of bounds. */
export function numberTests(rules: NumberRules, x: string): string {
  const tests: string[] = [];
  if (rules.minimum !== undefined) tests.push(`${x} < ${rules.minimum}`);
  if (rules.maximum !== undefined) tests.push(`${x} > ${rules.maximum}`);
  if (rules.exclusiveMinimum !== undefined) tests.push(`${x} <= ${rules.exclusiveMinimum}`);
  if (rules.exclusiveMaximum !== undefined) tests.push(`${x} >= ${rules.exclusiveMaximum}`);
  if (rules.multipleOf !== undefined) tests.push(`!M(${x}, ${rules.multipleOf})`);
  return `if (${tests.join(" || ")}) return false;`;
}

/** Statements that return false when the string `x` is out of bounds; code points are counted only when in doubt. */
export function stringTests(rules: StringRules, x: string, constant: (value: unknown) => string): string {
  const { minLength, maxLength, pattern } = rules;
  const tests: string[] = [];
  if (minLength === 1) tests.push(`${x}.length < 1`);
  else if (minLength > 1) tests.push(`(${x}.length < ${2 * minLength} && C(${x}) < ${minLength})`);
  if (maxLength !== Number.POSITIVE_INFINITY)
    tests.push(`(${x}.length > ${maxLength} && C(${x}) > ${maxLength})`);
  const lengths = tests.length === 0 ? "" : `if (${tests.join(" || ")}) return false;`;
  if (pattern === undefined) return lengths;
  const matcher = constant(pattern);
  const count = pattern.isLight ? "" : `if ((b.steps -= ${matcher}.cost(${x})) < 0) L();`;
  return `${lengths}${count}if (!${matcher}.test(${x})) return false;`;
}
