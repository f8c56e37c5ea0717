import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { expect, it } from "vitest";
import { type CompiledSchema, compileSchema, type JsonSchema, SchemaError } from "../src/index.ts";
import { schemaCases } from "./arbitrary-schema.ts";
import { isObject, parsePointer } from "./json-values.ts";
import { seededRuns } from "./runs.ts";

/** Tries a law on any schema, both ways of checking, and any values, all of them frozen. */
function holds(law: (compiled: CompiledSchema, value: unknown, schema: JsonSchema) => void): void {
  fc.assert(
    fc.property(schemaCases(true), fc.boolean(), ({ schema, values }, codegen) => {
      const compiled = tryCompile(schema, codegen);
      fc.pre(compiled !== undefined);
      for (const value of values) law(compiled, deepFreeze(value), schema);
    }),
    seededRuns(80),
  );
}

function tryCompile(schema: JsonSchema, codegen: boolean): CompiledSchema | undefined {
  try {
    return compileSchema(schema, { codegen });
  } catch (thrown) {
    if (thrown instanceof SchemaError) return undefined;
    throw thrown;
  }
}

function deepFreeze(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const key of Object.keys(value)) deepFreeze((value as Record<string, unknown>)[key]);
  return Object.freeze(value);
}

/** Every scalar of a value with its path; what is no JSON counts as one. */
function* leaves(value: unknown, path: readonly string[] = []): Generator<[readonly string[], unknown]> {
  if (!Array.isArray(value) && !isPlain(value)) {
    yield [path, value];
    return;
  }
  const keys = Object.keys(value);
  if (keys.length === 0) yield [path, Array.isArray(value) ? "[]" : "{}"];
  for (const key of keys) yield* leaves((value as Record<string, unknown>)[key], [...path, key]);
}

function isPlain(value: unknown): value is object {
  return isObject(value) && Object.prototype.toString.call(value) === "[object Object]";
}

function at(value: unknown, path: readonly string[]): unknown {
  let current = value;
  for (const key of path) {
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, key)) return undefined;
    current = (current as Record<string, unknown>)[key];
  }
  return current;
}

function defaultsIn(schema: unknown): unknown[] {
  if (Array.isArray(schema)) return schema.flatMap(defaultsIn);
  if (!isObject(schema)) return [];
  const own = Object.hasOwn(schema, "default") ? [schema["default"]] : [];
  return [...own, ...Object.keys(schema).flatMap((key) => defaultsIn(schema[key]))];
}

/** True when `after` says what `before` said: the same, or the same written as another type. */
function isSame(before: unknown, after: unknown): boolean {
  if (Object.is(before, after)) return true;
  if (isEmptyContainer(after)) return typeof before === "object" && before !== null;
  if (before === undefined || before === null || after === undefined || after === null) return false;
  if (before instanceof Date) return after === before.toISOString();
  return typeof before !== "object" && String(before) === String(after);
}

function isEmptyContainer(leaf: unknown): boolean {
  return leaf === "[]" || leaf === "{}";
}

it("RE-13 invents nothing: every scalar was in the value, or is a declared default", () => {
  holds((compiled, value, schema) => {
    const { value: result, report } = compiled.normalize(value);
    const defaulted = (report?.defaulted ?? []).map(parsePointer);
    for (const [path, leaf] of leaves(result)) {
      if (isSame(at(value, path), leaf)) continue;
      const filled = defaulted.filter((start) => start.every((key, i) => key === path[i]));
      const isDeclared = filled.some((start) =>
        defaultsIn(schema).some((declared) => isSame(at(declared, path.slice(start.length)), leaf)),
      );
      expect({ path, leaf, isDeclared }).toEqual({ path, leaf, isDeclared: true });
    }
  });
});

it("RE-13 normalising twice equals once, and the second time gives the same object", () => {
  holds((compiled, value) => {
    const once = compiled.normalize(value);
    const twice = compiled.normalize(once.value);
    expect(twice.value).toBe(once.value);
    expect(twice.valid).toBe(once.valid);
    expect(twice.report).toBeUndefined();
  });
});

it("RE-13 gives the value back as the same object unless it reports a change", () => {
  holds((compiled, value) => {
    const { value: result, report } = compiled.normalize(value);
    expect(Object.is(result, value)).toBe(report === undefined);
    if (report === undefined) return;
    expect(report.stripped.length + report.defaulted.length + report.converted.length).toBeGreaterThan(0);
    expect(isDeepStrictEqual(result, value)).toBe(false);
  });
});

it("RE-13 says valid exactly when what it gives back passes, and lists issues exactly when not", () => {
  holds((compiled, value) => {
    const { value: result, valid, issues } = compiled.normalize(value);
    expect(compiled.check(result)).toBe(valid);
    expect(issues.length === 0).toBe(valid);
    if (!valid) expect(Object.is(result, value)).toBe(true);
    if (compiled.check(value)) expect(valid).toBe(true);
  });
});

it("RE-13 leaves a clean value alone", () => {
  holds((compiled, value) => {
    if (!compiled.isClean(value)) return;
    expect(compiled.check(value)).toBe(true);
    expect(compiled.normalize(value)).toEqual({ value, valid: true, issues: [] });
    expect(Object.is(compiled.normalize(value).value, value)).toBe(true);
  });
});

it("RE-13 fills defaults without stripping or converting anything", () => {
  holds((compiled, value) => {
    const filled = compiled.fillDefaults(value);
    for (const [path, leaf] of leaves(value)) {
      if (leaf === undefined) continue;
      const kept = at(filled, path);
      expect(isEmptyContainer(leaf) || Object.is(kept, leaf)).toBe(true);
    }
    if (!compiled.hasDefaults) expect(Object.is(filled, value)).toBe(true);
  });
});

it("RE-13 fills a copy of a default, so that nobody's changes reach the schema", () => {
  holds((compiled, value) => {
    const { value: result, report } = compiled.normalize(value);
    for (const pointer of report?.defaulted ?? []) {
      const filled = at(result, parsePointer(pointer));
      if (typeof filled === "object" && filled !== null) expect(Object.isFrozen(filled)).toBe(false);
    }
  });
});

it.each<[string, JsonSchema, unknown, unknown]>([
  [
    "two defaults that differ",
    { allOf: [{ properties: { a: { default: 1 } } }, { properties: { a: { default: 2 } } }] },
    {},
    {},
  ],
  ["two ways to make a value fit", { anyOf: [{ type: "integer" }, { type: "string" }] }, 7n, 7n],
  [
    "alternatives that would fill different defaults",
    { anyOf: [1, 2].map((value) => ({ properties: { k: { type: "integer" }, a: { default: value } } })) },
    { k: "7" },
    { k: "7" },
  ],
  [
    "alternatives that would strip differently",
    {
      anyOf: ["x", "y"].map((key) => ({
        properties: { [key]: { type: "integer" } },
        required: [key],
        additionalProperties: false,
      })),
    },
    { x: 1, y: 2 },
    { x: 1, y: 2 },
  ],
  [
    "what only the condition names",
    { properties: {}, if: { properties: { a: {} } } },
    { a: 1, b: 2 },
    { a: 1 },
  ],
])("RE-13 does not guess: %s", (_what, schema, value, expected) => {
  for (const codegen of [true, false]) {
    expect(compileSchema(schema, { codegen }).normalize(value).value).toEqual(expected);
  }
});

it("RE-13 pollutes no prototype, whatever the keys", () => {
  const before = Object.getOwnPropertyNames(Object.prototype).sort();
  const key = fc.constantFrom("__proto__", "constructor", "prototype", "polluted", "a");
  const hostile = fc.letrec((tie) => ({
    value: fc.oneof({ maxDepth: 4 }, fc.constantFrom(1, "7", null), fc.dictionary(key, tie("value"))),
  })).value;
  fc.assert(
    fc.property(schemaCases(false), hostile, ({ schema, values }, other) => {
      const compiled = tryCompile(schema, true);
      fc.pre(compiled !== undefined);
      for (const value of [...values, other]) {
        for (const result of [compiled.normalize(value).value, compiled.fillDefaults(value)]) {
          if (isObject(value) && isObject(result)) {
            const prototypes = [Object.prototype, null, Object.getPrototypeOf(value)];
            expect(prototypes.includes(Object.getPrototypeOf(result))).toBe(true);
          }
        }
      }
    }),
    seededRuns(80),
  );
  expect(Object.getOwnPropertyNames(Object.prototype).sort()).toEqual(before);
  expect(Object.hasOwn(Object.prototype, "polluted") || "polluted" in {}).toBe(false);
});
