import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { expect, it } from "vitest";
import { compileSchema, type JsonSchemaObject } from "../src/index.ts";
import { PROPERTY_NAMES } from "./arbitrary-schema.ts";
import { isObject } from "./json-values.ts";
import { seededRuns } from "./runs.ts";
import { putOwn, sampleValue } from "./sample-value.ts";

type Simple = JsonSchemaObject;

const name = fc.constantFrom(...PROPERTY_NAMES);
const { schema: simpleSchemas } = fc.letrec<{ schema: Simple; properties: Record<string, Simple> }>(
  (tie) => ({
    properties: fc.dictionary(name, tie("schema"), { maxKeys: 4, noNullPrototype: true }),
    schema: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      fc.constantFrom<Simple[]>(
        { type: "integer" },
        { type: "string" },
        { type: "boolean" },
        { type: "null" },
      ),
      fc.constantFrom<Simple[]>(
        { type: "integer", default: 5 },
        { type: "string", default: "" },
        { type: "object" },
      ),
      fc.constantFrom<Simple[]>({ type: "object", properties: {}, default: { z: 1 } }),
      tie("properties").map((properties) => ({ type: "object", properties })),
      tie("properties").map((properties) => ({ type: "object", properties, additionalProperties: false })),
      tie("properties").map((properties) => ({ type: "object", properties, additionalProperties: true })),
      fc
        .tuple(tie("properties"), tie("schema"))
        .map(([properties, additionalProperties]) => ({ type: "object", properties, additionalProperties })),
      tie("schema").map((items) => ({ type: "array", items })),
      fc
        .array(tie("schema"), { minLength: 1, maxLength: 2 })
        .map((prefixItems) => ({ type: "array", prefixItems })),
    ),
  }),
);

/** The rule of normalising read aloud, for schemas without combinations; throws when the value cannot pass. */
function byTheRule(schema: Simple, value: unknown): unknown {
  const { type, items, prefixItems } = schema;
  if (type === "object" && isObject(value)) return objectByTheRule(schema, value);
  if (type === "array" && Array.isArray(value)) {
    const prefix = (prefixItems ?? []) as Simple[];
    return value.map((item, i) => {
      const child = prefix[i] ?? (items as Simple | undefined);
      return child === undefined ? item : byTheRule(child, item);
    });
  }
  return scalarByTheRule(type, value);
}

function scalarByTheRule(type: unknown, value: unknown): unknown {
  if (type === "null" && value === null) return null;
  if (type === "string" && typeof value === "string") return value;
  if (type === "string" && (typeof value === "number" || typeof value === "boolean")) return String(value);
  if (type === "boolean" && typeof value === "boolean") return value;
  if (type === "boolean" && (value === "true" || value === "false")) return value === "true";
  const number = typeof value === "string" && /^(?:0|-?[1-9]\d*)$/.test(value) ? Number(value) : value;
  if (type === "integer" && Number.isInteger(number)) return number;
  throw new Error("does not pass");
}

function objectByTheRule(schema: Simple, value: Record<string, unknown>): unknown {
  const { properties, additionalProperties } = schema as {
    properties?: Record<string, Simple>;
    additionalProperties?: boolean | Simple;
  };
  if (properties === undefined) return value;
  const result: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    if (Object.hasOwn(properties, key)) putOwn(result, key, byTheRule(properties[key] as Simple, value[key]));
    else if (additionalProperties === true) putOwn(result, key, value[key]);
    else if (isObject(additionalProperties)) putOwn(result, key, byTheRule(additionalProperties, value[key]));
  }
  for (const key of Object.keys(properties)) {
    const child = properties[key] as Simple;
    if (Object.hasOwn(value, key) || !Object.hasOwn(child, "default")) continue;
    putOwn(result, key, byTheRule(child, child["default"]));
  }
  return result;
}

function expectedOf(schema: Simple, value: unknown): { value: unknown; valid: boolean } {
  try {
    return { value: byTheRule(schema, value), valid: true };
  } catch {
    return { value, valid: false };
  }
}

it("RE-13 does what the rule says, no more and no less, for schemas without combinations", () => {
  const tape = fc.array(fc.nat({ max: 9_999 }), { minLength: 40, maxLength: 40 });
  fc.assert(
    fc.property(
      simpleSchemas,
      fc.array(tape, { minLength: 3, maxLength: 6 }),
      fc.boolean(),
      (schema, tapes, codegen) => {
        const compiled = compileSchema(schema, { codegen });
        for (const numbers of tapes) {
          const given = sampleValue(schema, numbers, false);
          const expected = expectedOf(schema, given);
          const { value, valid } = compiled.normalize(given);
          if (!isDeepStrictEqual({ value, valid }, expected))
            expect({ given, value, valid }).toEqual({ given, ...expected });
          if (isDeepStrictEqual(given, expected.value)) expect(Object.is(value, given)).toBe(true);
        }
      },
    ),
    seededRuns(300),
  );
});
