import { compileSchema, type JsonSchema, type JsonSchemaObject, Type } from "../src/index.ts";

const DRAFT_04 = "http://json-schema.org/draft-04/schema#";
const DRAFT_07 = "http://json-schema.org/draft-07/schema#";
const TODAY = "https://json-schema.org/draft/2020-12/schema";
const TEXT = { type: "string" };
const COUNT = { type: "number" };

/** An object with one member `a`. */
const withA = (a: JsonSchema, more: JsonSchemaObject = {}): JsonSchemaObject => ({
  type: "object",
  properties: { a },
  ...more,
});

/** Schemas that some validator of a client refuses or reads otherwise as they are, with values that fit them. */
export const AWKWARD: Readonly<
  Record<string, readonly [schema: JsonSchemaObject, values: readonly unknown[]]>
> = {
  "a pattern with a loose hyphen": [withA({ ...TEXT, pattern: "^[\\w-.]+$" }), [{ a: "b-c" }]],
  "a pattern with a needless escape": [withA({ ...TEXT, pattern: "^\\-$" }), [{ a: "-" }]],
  "a pattern of names with a loose hyphen": [
    { type: "object", patternProperties: { "^[\\w-.]+$": COUNT }, additionalProperties: false },
    [{ "b-c": 1 }],
  ],
  "the same, and nothing left over": [
    { type: "object", patternProperties: { "^[\\w-.]+$": COUNT }, unevaluatedProperties: false },
    [{ "b-c": 1 }],
  ],
  "a pattern with a loose hyphen that must not match": [
    withA({ ...TEXT, not: { pattern: "^[\\w-.]+$" } }),
    [{ a: "b c" }],
  ],
  "exclusive bounds of draft-04": [
    { $schema: DRAFT_04, id: "http://x/y", ...withA({ ...COUNT, minimum: 0, exclusiveMinimum: true }) },
    [{ a: 1 }],
  ],
  "exclusive bounds without a dialect": [
    withA({ ...COUNT, maximum: 3, exclusiveMaximum: true, exclusiveMinimum: false }),
    [{ a: 2 }],
  ],
  "the id of draft-04 below the root": [withA({ id: "x", ...COUNT }), [{ a: 1 }]],
  "a dialect nobody knows": [{ $schema: "https://example.com/dialect", type: "object" }, [{ a: 1 }]],
  "a dialect further down": [withA({ $schema: TODAY, ...COUNT }), [{ a: 1 }]],
  "two schemas with the same name": [
    {
      type: "object",
      properties: { a: { $id: "https://e/n", ...COUNT }, b: { $id: "https://e/n", ...TEXT } },
    },
    [{ a: 1, b: "x" }],
  ],
  "a root with a name": [{ $id: "https://e/x", ...withA(COUNT), required: ["a"] }, [{ a: 1 }]],
  "another root with that name": [{ $id: "https://e/x", ...withA(TEXT), required: ["a"] }, [{ a: "x" }]],
  "references by name": [
    { $id: "https://e/u", ...withA({ $ref: "/u#/$defs/i" }), $defs: { i: COUNT } },
    [{ a: 1 }],
  ],
  "references by anchor": [
    withA({ $ref: "#1:n" }, { $defs: { i: { $anchor: "1:n", ...COUNT } } }),
    [{ a: 1 }],
  ],
  "a reference to the anchor of the root": [
    withA({ anyOf: [{ $ref: "#top" }, COUNT] }, { $anchor: "top" }),
    [{ a: { a: 1 } }],
  ],
  "an anchor of draft-07": [
    { $schema: DRAFT_07, ...withA({ $ref: "#foo" }), definitions: { x: { $id: "#foo", ...TEXT } } },
    [{ a: "x" }],
  ],
  "what a reference of draft-07 hides": [
    { $schema: DRAFT_07, ...withA({ $ref: "#/definitions/x", ...TEXT }), definitions: { x: {} } },
    [{ a: 5 }],
  ],
  "a reference into a tuple of draft-07": [
    {
      $schema: DRAFT_07,
      type: "object",
      properties: { a: { type: "array", items: [COUNT] }, b: { $ref: "#/properties/a/items/0" } },
    },
    [{ a: [1], b: 2 }],
  ],
  "a reference below a keyword nobody knows": [
    withA({ $ref: "#/components/schemas/N" }, { components: { schemas: { N: { $id: "n", ...COUNT } } } }),
    [{ a: 1 }],
  ],
  "a reference to a definition with an odd name": [
    withA({ $ref: "#/$defs/a~1b%25%20c" }, { $defs: { "a/b% c": COUNT } }),
    [{ a: 1 }],
  ],
  "a reference to a metaschema": [withA({ $ref: TODAY }), [{ a: { type: "string" } }]],
  "dynamic references": [
    {
      $dynamicAnchor: "n",
      type: "object",
      properties: { k: { type: "array", items: { $dynamicRef: "#n" } } },
    },
    [{ k: [{ k: [] }] }],
  ],
  "a tuple": [withA({ type: "array", prefixItems: [COUNT, TEXT], items: false }), [{ a: [1, "x"] }]],
  "a tuple without a dialect": [
    withA({ type: "array", items: [COUNT, TEXT], additionalItems: false }),
    [{ a: [1, "x"] }, { a: [] }],
  ],
  "a tuple of TypeBox": [
    toJson(Type.Object({ a: Type.Tuple([Type.Number(), Type.String()]) })),
    [{ a: [1, "x"] }],
  ],
  "what must be no tuple": [withA({ type: "array", not: { prefixItems: [TEXT] } }), [{ a: [1] }]],
  "one of two tuples": [
    withA({
      oneOf: [
        { prefixItems: [TEXT], minItems: 1 },
        { prefixItems: [COUNT], minItems: 1 },
      ],
    }),
    [{ a: [1] }, { a: ["x"] }],
  ],
  "a condition on a tuple": [
    withA({ type: "array", if: { prefixItems: [TEXT] }, then: { minItems: 2 } }),
    [{ a: [1] }],
  ],
  "dependencies without a dialect": [
    { type: "object", dependencies: { a: ["b"], c: { required: ["d"] } } },
    [{ a: 1, b: 2 }, {}],
  ],
  "something contained as often as none": [
    withA({ type: "array", contains: TEXT, minContains: 0, maxContains: 1 }),
    [{ a: [] }, { a: [1] }],
  ],
  "members that every object inherits": [
    {
      type: "object",
      properties: { constructor: TEXT, toString: TEXT },
      dependentRequired: { valueOf: ["a"] },
    },
    [{}],
  ],
  "members with boolean schemas": [
    { type: "object", properties: { a: true, b: false }, required: ["a"] },
    [{ a: 1 }],
  ],
  money: [withA({ ...COUNT, multipleOf: 0.01 }), [{ a: 19.99 }]],
  "nullable without a type": [withA({ nullable: true, enum: [1] }), [{ a: 1 }]],
  "an enumeration of nothing": [withA({ enum: [] }), [{}]],
  "a promise": [{ $async: true, ...withA({ $async: true, ...COUNT }) }, [{ a: 1 }]],
  "a name below a keyword nobody knows": [
    { ...withA({ $id: "https://e/z", ...COUNT }), "x-note": { $id: "https://e/z", $anchor: "1" } },
    [{ a: 1 }],
  ],
};

function toJson(schema: unknown): JsonSchemaObject {
  return compileSchema(schema).json as JsonSchemaObject;
}
