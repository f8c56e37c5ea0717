import { describe, expect, it } from "vitest";
import { compileSchema } from "./compile-schema.ts";

type Row = readonly [
  schema: unknown,
  value: unknown,
  ...issues: readonly (readonly [string, string, string])[],
];

const $defs = { s: { type: "string" } };
const both = "a value the schema does not rule out (not)";

/** A schema, a value it refuses, and all that is said about it. */
const REFUSALS: readonly Row[] = [
  [false, 1, ["", "nothing here", "number 1"]],
  [{ type: "string" }, 1, ["", "string", "number 1"]],
  [{ type: ["string", "null"] }, true, ["", "null or string", "boolean true"]],
  [{ type: "null" }, undefined, ["", "null", "nothing"]],
  [{ type: "object" }, [1], ["", "object", "array of 1 item"]],
  [{ type: "array" }, {}, ["", "array", "object"]],
  [{ type: "boolean" }, null, ["", "boolean", "null"]],
  [{ type: "number" }, 1n, ["", "number", "bigint"]],
  [{ type: "number" }, Symbol.iterator, ["", "number", "symbol"]],
  [{ type: "void" }, 1, ["", "undefined", "number 1"]],
  [{ type: "bigint" }, 1, ["", "bigint", "number 1"]],
  [{ const: "a" }, "b", ["", '"a"', "string of 1 character"]],
  [{ enum: ["a", 1] }, "bc", ["", 'one of "a", 1', "string of 2 characters"]],
  [{ enum: [] }, 1, ["", "one of ", "number 1"]],
  [{ enum: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] }, 10, ["", "one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9", "number 10"]],
  [
    { enum: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10] },
    11,
    ["", "one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …", "number 11"],
  ],
  [{ const: "x".repeat(70) }, 1, ["", `"${"x".repeat(59)}`, "number 1"]],
  [{ minLength: 1 }, "", ["", "at least 1 character", "string of 0 characters"]],
  [{ minLength: 2 }, "😀", ["", "at least 2 characters", "string of 1 character"]],
  [{ maxLength: 1 }, "ab", ["", "at most 1 character", "string of 2 characters"]],
  [{ maxLength: 0 }, "a", ["", "at most 0 characters", "string of 1 character"]],
  [{ pattern: "^a$" }, "b", ["", "a match of the pattern ^a$", "string of 1 character"]],
  [{ minimum: 2 }, 1, ["", "at least 2", "number 1"]],
  [{ maximum: 2 }, 3, ["", "at most 2", "number 3"]],
  [{ exclusiveMinimum: 2 }, 2, ["", "more than 2", "number 2"]],
  [{ exclusiveMaximum: 2 }, 2, ["", "less than 2", "number 2"]],
  [{ multipleOf: 2 }, 3, ["", "a multiple of 2", "number 3"]],
  [{ minItems: 1 }, [], ["", "at least 1 item", "array of 0 items"]],
  [{ maxItems: 0 }, [1], ["", "at most 0 items", "array of 1 item"]],
  [{ uniqueItems: true }, [1, 1], ["", "items that all differ", "array of 2 items"]],
  [{ items: { type: "string" } }, ["a", 1], ["/1", "string", "number 1"]],
  [
    { prefixItems: [{ type: "string" }], items: false },
    [1, 2],
    ["/0", "string", "number 1"],
    ["/1", "nothing here", "number 2"],
  ],
  [
    { contains: { type: "string" }, minContains: 2 },
    ["a"],
    ["", 'at least 2 items matching "contains"', "array of 1 item"],
  ],
  [
    { contains: { type: "string" }, maxContains: 2 },
    ["a", "b", "c"],
    ["", 'at most 2 items matching "contains"', "array of 3 items"],
  ],
  [
    { required: ["a", "b"] },
    {},
    ["/a", "a required property", "nothing"],
    ["/b", "a required property", "nothing"],
  ],
  [
    { required: ["a"], minProperties: 1 },
    {},
    ["", "at least 1 property", "object"],
    ["/a", "a required property", "nothing"],
  ],
  [{ minProperties: 2 }, { a: 1 }, ["", "at least 2 properties", "object"]],
  [{ maxProperties: 1 }, { a: 1, b: 1 }, ["", "at most 1 property", "object"]],
  [
    { dependentRequired: { a: ["b", "c"] } },
    { a: 1, c: 1 },
    ["/b", 'a property, because "a" is there', "nothing"],
  ],
  [{ dependentSchemas: { a: { required: ["b"] } } }, { a: 1 }, ["/b", "a required property", "nothing"]],
  [
    { properties: { a: { type: "string" }, b: { type: "null" } } },
    { a: 1, b: 2 },
    ["/a", "string", "number 1"],
    ["/b", "null", "number 2"],
  ],
  [{ patternProperties: { "^x": { type: "string" } } }, { x1: 1, y: 1 }, ["/x1", "string", "number 1"]],
  [{ properties: { a: {} }, additionalProperties: false }, { a: 1, b: 2 }, ["/b", "absent", "number 2"]],
  [
    { patternProperties: { a: {} }, additionalProperties: { type: "string" } },
    { a: 1, b: 2 },
    ["/b", "string", "number 2"],
  ],
  [
    { propertyNames: { maxLength: 1 } },
    { a: 1, bc: 2 },
    ["/bc", "a property name the schema allows", "number 2"],
  ],
  [{ $ref: "#/$defs/s", $defs }, 1, ["", "string", "number 1"]],
  [
    { $dynamicRef: "#x", $defs: { s: { $dynamicAnchor: "x", type: "string" } } },
    1,
    ["", "string", "number 1"],
  ],
  [{ $ref: "#/$defs/s", minimum: 2, $defs }, 1, ["", "at least 2", "number 1"], ["", "string", "number 1"]],
  [
    { allOf: [{ type: "string" }, { minimum: 2 }] },
    1,
    ["", "string", "number 1"],
    ["", "at least 2", "number 1"],
  ],
  [
    { oneOf: [{ type: "number" }, { minimum: 0 }, false] },
    1,
    ["", "a match for exactly one of 3 alternatives, not several", "number 1"],
  ],
  [{ not: { type: "number" } }, 1, ["", both, "number 1"]],
  [
    { allOf: [{ type: "string" }], not: { type: "number" } },
    1,
    ["", "string", "number 1"],
    ["", both, "number 1"],
  ],
  [
    { if: { type: "number" }, then: { minimum: 2 }, else: { type: "null" } },
    1,
    ["", "at least 2", "number 1"],
  ],
  [
    { if: { type: "number" }, then: { minimum: 2 }, else: { type: "null" } },
    "a",
    ["", "null", "string of 1 character"],
  ],
  [{ not: {}, if: true, then: false }, 1, ["", both, "number 1"], ["", "nothing here", "number 1"]],
  [{ properties: { a: {} }, unevaluatedProperties: false }, { a: 1, b: 2 }, ["/b", "absent", "number 2"]],
  [{ unevaluatedProperties: { type: "string" } }, { "a/b": 1 }, ["/a~1b", "string", "number 1"]],
  [{ prefixItems: [{}], unevaluatedItems: { type: "string" } }, [1, 2, "a"], ["/1", "string", "number 2"]],
  [
    { properties: { "a/b~c": { items: { required: ["~1"] } } } },
    { "a/b~c": [{}] },
    ["/a~1b~0c/0/~01", "a required property", "nothing"],
  ],
];

/** Alternatives: the general sentence, then what the closest of them lacks, whichever comes first. */
const deep = { properties: { a: { type: "string" } }, required: ["a"] };
const wide = { properties: { a: { type: "string" }, b: { type: "string" } } };
const none = (value: string) => ["", "a match for one of 2 alternatives", value] as const;
const ALTERNATIVES: readonly Row[] = [
  [{ anyOf: [{ type: "string" }, deep] }, { a: 1 }, none("object"), ["/a", "string", "number 1"]],
  [{ oneOf: [deep, { type: "string" }] }, { a: 1 }, none("object"), ["/a", "string", "number 1"]],
  [
    { anyOf: [wide, { properties: { b: { type: "null" } } }] },
    { a: 1, b: 1 },
    none("object"),
    ["/b", "null", "number 1"],
  ],
  [
    { anyOf: [{ properties: { b: { type: "null" } } }, wide] },
    { a: 1, b: 1 },
    none("object"),
    ["/b", "null", "number 1"],
  ],
  [{ anyOf: [{ type: "null" }, { type: "string" }] }, 1, none("number 1"), ["", "null", "number 1"]],
];

/** Alternatives that a member tells apart, by values of its own in each of them. */
const tagged = (kind: unknown, required: readonly string[] = []) => ({
  properties: { kind, from: { type: "number" } },
  required: ["kind", ...required],
});
const KINDS = {
  oneOf: [tagged({ const: "fixed" }, ["amount"]), tagged({ enum: ["range", "ramp"] }, ["from", "to", "by"])],
};
const kinds = 'one of "fixed", "range", "ramp"';
const TAGS: readonly Row[] = [
  [KINDS, { kind: "rang" }, none("object"), ["/kind", kinds, "string of 4 characters"]],
  [KINDS, { kind: 7, from: "a" }, none("object"), ["/kind", kinds, "number 7"]],
  [{ anyOf: KINDS.oneOf }, { kind: "x" }, none("object"), ["/kind", kinds, "string of 1 character"]],
  [
    KINDS,
    { kind: "range" },
    none("object"),
    ...["to", "by", "from"].map((name) => [`/${name}`, "a required property", "nothing"] as const),
  ],
  [
    { properties: { price: KINDS } },
    { price: { kind: "rang" } },
    ["/price", "a match for one of 2 alternatives", "object"],
    ["/price/kind", kinds, "string of 4 characters"],
  ],
  [
    KINDS,
    {},
    none("object"),
    ...["kind", "amount"].map((name) => [`/${name}`, "a required property", "nothing"] as const),
  ],
  // A member that only some of them limit tells none apart.
  [
    { anyOf: [tagged({ const: "fixed" }), { required: ["a", "b"] }] },
    { kind: "x" },
    none("object"),
    ["/kind", '"fixed"', "string of 1 character"],
  ],
];

const ROWS = [...REFUSALS, ...ALTERNATIVES, ...TAGS].map(([schema, value, ...issues]) => ({
  schema,
  value,
  issues: issues.map(([pointer, expected, found]) => ({ pointer, expected, found })),
}));

describe.each([{ codegen: true }, { codegen: false }])("issues (codegen: $codegen)", (options) => {
  it.each(ROWS)("RE-12 says where and how $schema is missed", ({ schema, value, issues }) => {
    const compiled = compileSchema(schema, options);
    expect(compiled.check(value)).toBe(false);
    expect(compiled.isClean(value)).toBe(false);
    expect(compiled.errors(value)).toEqual(issues);
  });
});
