import fc from "fast-check";
import type { JsonSchema } from "../src/index.ts";
import { isObject } from "./json-values.ts";
import { sampleValue } from "./sample-value.ts";

/** A schema with values that fit it, nearly fit it, or have nothing to do with it. */
export interface SchemaCase {
  readonly schema: JsonSchema;
  readonly values: readonly unknown[];
}

/** Names of properties, those that objects inherit and those that pointers escape included. */
export const PROPERTY_NAMES = ["a", "b", "c", "d", "__proto__", "constructor", "x/y", "t~k"] as const;

const name = fc.constantFrom(...PROPERTY_NAMES, "a", "b", "c", "a", "b");
const smallCount = fc.nat({ max: 3 });

/** Keywords together; those not required are there one time in three. */
function keywords(
  parts: Record<string, fc.Arbitrary<unknown>>,
  required: readonly string[] = [],
): fc.Arbitrary<Record<string, unknown>> {
  const absent = { arbitrary: fc.constant(undefined), weight: 2 };
  const entries = Object.entries(parts).map(([keyword, value]) =>
    fc
      .oneof(...(required.includes(keyword) ? [] : [absent]), { arbitrary: value, weight: 1 })
      .map((chosen) => (chosen === undefined ? [] : [[keyword, chosen] as const])),
  );
  return fc.tuple(...entries).map((list) => Object.fromEntries(list.flat()));
}

const scalar = fc.constantFrom<unknown[]>(0, 1, 7, -3, 1.5, "", "7", "ab", "true", "😀", true, false, null);

const leaf: fc.Arbitrary<JsonSchema> = fc.oneof(
  fc.constantFrom<JsonSchema[]>(true, {}, { type: "object" }, { type: "array" }, { type: "null" }),
  fc.constantFrom<JsonSchema[]>(
    { type: "integer" },
    { type: "number" },
    { type: "string" },
    { type: "boolean" },
  ),
  fc.constantFrom<JsonSchema[]>(
    { type: ["integer", "null"] },
    { type: ["string", "boolean"] },
    { type: ["number", "object"] },
  ),
  fc.record({ enum: fc.uniqueArray(scalar, { minLength: 1, maxLength: 4 }) }, { noNullPrototype: true }),
  fc.record(
    { const: fc.oneof(scalar, fc.constantFrom<unknown[]>({ a: 1 }, [1])) },
    { noNullPrototype: true },
  ),
  keywords({
    type: fc.constant("integer"),
    minimum: smallCount,
    maximum: smallCount,
    multipleOf: fc.constant(2),
  }),
  keywords({ type: fc.constant("number"), exclusiveMinimum: smallCount, exclusiveMaximum: fc.constant(7) }),
  keywords({
    type: fc.constant("string"),
    minLength: smallCount,
    maxLength: smallCount,
    pattern: fc.constantFrom("^a", "(a|b)+$", "\\d"),
  }),
);

const reference: fc.Arbitrary<JsonSchema> = fc.constantFrom(
  { $ref: "#" },
  { $ref: "#/$defs/p" },
  { $ref: "#/$defs/q" },
);

const { anySchema } = fc.letrec<{
  anySchema: JsonSchema;
  object: JsonSchema;
  array: JsonSchema;
  mixed: JsonSchema;
}>((tie) => {
  const child = tie("anySchema");
  const children = fc.array(child, { minLength: 1, maxLength: 3 });
  const open = fc.oneof(fc.boolean(), child);
  const named = fc.dictionary(name, child, { maxKeys: 4, noNullPrototype: true });
  const byName = fc.dictionary(name, child, { maxKeys: 1, noNullPrototype: true });
  return {
    anySchema: fc
      .tuple(
        fc.oneof(
          { maxDepth: 4, depthSize: "small", withCrossShrink: true },
          { arbitrary: leaf, weight: 3 },
          { arbitrary: reference, weight: 1 },
          { arbitrary: tie("object"), weight: 5 },
          { arbitrary: tie("array"), weight: 2 },
          { arbitrary: tie("mixed"), weight: 3 },
        ),
        fc.oneof(
          { arbitrary: fc.constant(undefined), weight: 3 },
          { arbitrary: fc.array(fc.nat({ max: 9_999 }), { minLength: 20, maxLength: 20 }), weight: 1 },
        ),
      )
      .map(([schema, tape]) =>
        isObject(schema) && tape !== undefined
          ? { ...schema, default: sampleValue(schema, tape, false) ?? null }
          : schema,
      ),
    object: fc
      .tuple(
        keywords(
          {
            type: fc.constant("object"),
            properties: named,
            required: fc.uniqueArray(name, { maxLength: 2 }),
          },
          ["properties"],
        ),
        fc.option(keywords({ additionalProperties: open }, ["additionalProperties"])),
        fc.option(
          keywords({
            patternProperties: fc.record({ "^[b-d]$": child }, { noNullPrototype: true }),
            unevaluatedProperties: open,
            dependentSchemas: byName,
            dependentRequired: fc.dictionary(name, fc.array(name, { maxLength: 1 }), {
              maxKeys: 1,
              noNullPrototype: true,
            }),
            propertyNames: fc.constantFrom<JsonSchema[]>({ maxLength: 1 }, { not: { const: "d" } }),
            minProperties: smallCount,
            maxProperties: fc.constant(4),
          }),
          { freq: 2 },
        ),
      )
      .map((parts) => Object.assign({}, ...parts)),
    array: keywords({
      type: fc.constant("array"),
      items: open,
      prefixItems: children,
      contains: child,
      maxContains: smallCount,
      minItems: fc.constant(1),
      maxItems: smallCount,
      uniqueItems: fc.boolean(),
      unevaluatedItems: open,
    }),
    mixed: fc.oneof(
      keywords({ anyOf: children }, ["anyOf"]),
      keywords({ oneOf: children }, ["oneOf"]),
      keywords({ allOf: children, properties: named }, ["allOf"]),
      keywords({ anyOf: children, properties: named, additionalProperties: open }, ["anyOf", "properties"]),
      keywords({ not: child }, ["not"]),
      keywords({ if: child, then: child, else: child }, ["if"]),
    ),
  };
});

/** Any schema of the dialect of today, with definitions that it may refer to. */
const schemas: fc.Arbitrary<JsonSchema> = fc
  .tuple(anySchema, anySchema, anySchema)
  .map(([root, p, q]) => (isObject(root) ? { ...root, $defs: { p, q } } : root));

/** Schemas with values for them. `isExotic` adds what JSON does not have. */
export function schemaCases(isExotic: boolean): fc.Arbitrary<SchemaCase> {
  const tape = fc.array(fc.nat({ max: 9_999 }), { minLength: 60, maxLength: 60 });
  const foreign = fc.jsonValue({ maxDepth: 3 });
  return fc
    .tuple(schemas, fc.array(tape, { minLength: 3, maxLength: 6 }), foreign)
    .map(([schema, tapes, other]) => ({
      schema,
      values: [...tapes.map((numbers) => sampleValue(schema, numbers, isExotic)), other],
    }));
}
