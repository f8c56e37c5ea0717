import { describe, expect, it } from "vitest";
import { expectAnswers, refusal } from "../../../test/schema-answers.ts";
import { compileSchema } from "./compile-schema.ts";

const DRAFT_07 = "http://json-schema.org/draft-07/schema#";

describe("malformed keywords", () => {
  const numbers = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
  const counts = ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"];
  const schemas = ["not", "if", "items", "contains", "additionalProperties", "propertyNames"];
  const more = ["unevaluatedProperties", "unevaluatedItems"];
  const lists = ["allOf", "anyOf", "oneOf", "prefixItems"];
  const maps = ["properties", "patternProperties", "dependentSchemas"];
  const each = (keywords: string[], values: unknown[], wanted: string) =>
    keywords.flatMap((keyword) => values.map((value) => [keyword, value, wanted] as const));
  it.each([
    ...each([...numbers, ...counts], ["1", null, [], {}], "a number"),
    ...each(["exclusiveMinimum", "exclusiveMaximum"], ["true"], "a number"),
    ...each(["minimum", "multipleOf"], [true, false], "a number"),
    ...each(counts, [-1, 1.5], "a whole number that is not negative"),
    ...each(["pattern", "$ref", "$dynamicRef", "$recursiveRef"], [1, null, {}], "a string"),
    ...each(["uniqueItems"], ["true", 1, null], "a boolean"),
    ...each(["enum", "required", ...lists], [{}, "a", null, true], "an array"),
    ...each(["required"], [[1], ["a", null]], "an array of strings"),
    ...each([...schemas, ...more], ["a", 1, null], "a schema"),
    ...each(["not", "contains", "additionalProperties"], [[{}]], "a schema"),
    ...each([...lists, "items"], [[{}, "a"], [null], [[]]], "an array of schemas"),
    ...each([...maps, "dependentRequired", "dependencies"], [[], "a", null, true], "an object"),
    ...each(maps, [{ a: {}, b: 1 }, { a: [] }, { a: null }], "an object of schemas"),
  ])("RE-32 refuses %s: %j", (keyword, value, wanted) => {
    const error = refusal({ properties: { "a/b": { [keyword]: value } } });
    const pointer = `/properties/a~1b/${keyword}`;
    expect(error.message).toBe(`The keyword "${keyword}" takes ${wanted}. (at ${pointer} of the schema)`);
    expect(error.pointer).toBe(pointer);
  });

  it.each([
    [{ contains: {}, minContains: -1 }, "takes a whole number", "/minContains"],
    [{ contains: {}, maxContains: "1" }, "takes a number", "/maxContains"],
    [{ if: {}, then: 1 }, "takes a schema", "/then"],
    [{ if: {}, else: [] }, "takes a schema", "/else"],
    [{ items: [], additionalItems: 1 }, "takes a schema", "/additionalItems"],
    [{ multipleOf: 0 }, 'The keyword "multipleOf" takes a number above zero.', "/multipleOf"],
    [{ multipleOf: -1 }, 'The keyword "multipleOf" takes a number above zero.', "/multipleOf"],
    [{ type: [] }, 'The keyword "type" names at least one type.', "/type"],
    [{ type: "strin" }, '"strin" is not a JSON Schema type.', "/type"],
    [{ type: ["string", 5] }, '"5" is not a JSON Schema type.', "/type"],
    [{ type: null }, '"null" is not a JSON Schema type.', "/type"],
    [
      { dependentRequired: { a: {} } },
      '"dependentRequired" takes names of properties.',
      "/dependentRequired/a",
    ],
    [
      { dependentRequired: { a: [1] } },
      '"dependentRequired" takes names of properties.',
      "/dependentRequired/a",
    ],
    [{ dependencies: { a: 5 } }, '"dependencies" takes names of properties.', "/dependencies/a"],
    [{ dependencies: { a: [1] } }, '"dependencies" takes names of properties.', "/dependencies/a"],
    [{ allOf: [{}, { items: { type: "x" } }] }, "not a JSON Schema type", "/allOf/1/items/type"],
    [{ prefixItems: [{ type: "x" }] }, "not a JSON Schema type", "/prefixItems/0/type"],
    [{ $ref: "#/x/y", x: { y: { type: "x" } } }, "not a JSON Schema type", "/x/y/type"],
    [{ dependencies: { a: { type: "x" } } }, "not a JSON Schema type", "/dependencies/a/type"],
  ])("RE-32 refuses %j and says where", (schema, message, pointer) => {
    const error = refusal(schema);
    expect(error.message).toContain(message);
    expect(error.pointer).toBe(pointer);
  });
});

describe("keywords as they are read", () => {
  const table: [schema: object, good: unknown[], bad: unknown[]][] = [
    [{ type: ["string", "null"] }, ["a", null], [1]],
    [{ enum: [1, 2], const: 1 }, [1], [2]],
    [{ enum: [1, { a: [1] }], const: { a: [1] } }, [{ a: [1] }], [1]],
    [{ enum: [1, 2], const: 3 }, [], [1, 2, 3]],
    [{ enum: [] }, [], [1, null, "a"]],
    [{ const: null }, [null], [0, undefined]],
    [{ minimum: 1, exclusiveMinimum: true }, [2], [1]],
    [{ minimum: 1, exclusiveMinimum: false }, [1], [0]],
    [{ maximum: 1, exclusiveMaximum: true }, [0], [1]],
    [{ maximum: 1, exclusiveMaximum: false }, [1], [2]],
    [{ exclusiveMinimum: 1, exclusiveMaximum: 3 }, [2], [1, 3]],
    [{ exclusiveMinimum: true }, [-1, "a"], []],
    [{ multipleOf: 0.5 }, [1.5], [0.7]],
    [{ minLength: 2 }, ["ab", 1], ["a"]],
    [{ maxLength: 0 }, ["", 1], ["a"]],
    [{ minProperties: 1, maxProperties: 2 }, [{ a: 1 }, { a: 1, b: 2 }], [{}, { a: 1, b: 2, c: 3 }]],
    [{ minItems: 1, maxItems: 2 }, [[1], [1, 2]], [[], [1, 2, 3]]],
    [{ contains: { const: 1 } }, [[1], [1, 1]], [[], [2]]],
    [{ contains: { const: 1 }, minContains: 0, maxContains: 1 }, [[], [1, 2]], [[1, 1]]],
    [{ uniqueItems: true }, [[1, 2]], [[1, 1]]],
    [{ uniqueItems: false }, [[1, 1]], []],
    [{ items: [{ type: "string" }], additionalItems: false }, [["a"], []], [[1], ["a", 1]]],
    [{ items: { type: "string" }, additionalItems: false }, [["a", "b"]], [[1]]],
    [{ prefixItems: [{ type: "string" }], items: false }, [["a"]], [[1], ["a", 1]]],
    [{ dependencies: { a: ["b"], c: { required: ["d"] } } }, [{}, { a: 1, b: 1 }], [{ a: 1 }, { c: 1 }]],
    [{ dependentRequired: { a: ["b"] } }, [{ b: 1 }, { a: 1, b: 1 }], [{ a: 1 }]],
    [{ dependentSchemas: { a: { required: ["b"] } } }, [{ b: 1 }], [{ a: 1 }]],
    [{ if: { const: 1 }, then: false, else: { type: "string" } }, ["a"], [1, 2]],
    [{ then: false, else: false }, [1], []],
    [{ properties: { a: false }, patternProperties: { "^b": false } }, [{ c: 1 }], [{ a: 1 }, { bc: 1 }]],
    [{ propertyNames: { maxLength: 1 } }, [{ a: 1 }], [{ ab: 1 }]],
    [{ unevaluatedProperties: false, properties: { a: true } }, [{ a: 1 }], [{ b: 1 }]],
    [{ unevaluatedItems: false, prefixItems: [true] }, [[1]], [[1, 2]]],
    [{ anyOf: [{ const: 1 }, { type: "number", enum: ["a", 2] }] }, [1, 2], ["a", 3]],
    [{ anyOf: [{ const: 1 }, { const: "x", type: "string" }] }, [1, "x"], [2, "y"]],
    [{ enum: [1, 3], anyOf: [{ const: 2 }, { const: 3 }] }, [3], [1, 2]],
    [{ type: "string", anyOf: [{ const: 1 }, { const: "a" }] }, ["a"], [1]],
    [{ anyOf: [{ const: 4, minimum: 5 }, { const: 6 }] }, [6], [4]],
    [{ $ref: "#/$defs/a", minimum: 5, $defs: { a: { type: "number" } } }, [5], [4, "a"]],
  ];
  it.each(table)("RE-32 reads %j", (schema, good, bad) => {
    for (const codegen of [true, false]) expectAnswers(compileSchema(schema, { codegen }), good, bad);
  });

  it("RE-32 converts for a union of constants as it does for one", () => {
    const union = (...anyOf: object[]) => compileSchema({ anyOf }).normalize("7");
    expect(union({ type: "number", const: 7 }, { type: "number", const: 8 })).toMatchObject({
      value: 7,
      valid: true,
    });
    expect(union({ type: "number", const: 7 }, { const: "x" })).toMatchObject({ value: "7", valid: false });
  });
});

describe("dialects", () => {
  const items = {
    prefixItems: [false],
    unevaluatedItems: false,
    contains: true,
    maxContains: 1,
    minContains: 1,
  };
  const old = { $ref: "#/definitions/a", minimum: 5, definitions: { a: { type: "number" } } };
  it.each(["http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-06/schema", DRAFT_07])(
    "RE-32 reads %s by its own rules",
    ($schema) => {
      expectAnswers(compileSchema({ $schema, ...old }), [4, 5], ["a"]);
      expectAnswers(compileSchema({ $schema, ...items }), [[1, 2]], [[]]);
    },
  );

  it("RE-32 reads a schema without $schema by the dialect asked for, and others by their own", () => {
    expectAnswers(compileSchema(old, { dialect: "draft-07" }), [4], ["a"]);
    for (const options of [{}, { dialect: "2020-12" }] as const)
      expectAnswers(compileSchema(old, options), [5], [4]);
    const $schema = "https://json-schema.org/draft/2019-09/schema";
    expectAnswers(compileSchema({ $schema, ...old }, { dialect: "draft-07" }), [5], [4]);
    expectAnswers(compileSchema(items), [], [[1], [1, 2]]);
  });

  it("RE-32 takes $id beside $ref for nothing in draft-07", () => {
    const definitions = { a: { $id: "https://x.example/a", $ref: "#/definitions/b" }, b: { type: "string" } };
    const allOf = [{ $ref: "#/definitions/a" }];
    expectAnswers(compileSchema({ $schema: DRAFT_07, allOf, definitions }), ["a"], [1]);
    expect(refusal({ allOf, definitions }).message).toContain("points at nothing");
  });

  it("RE-32 leaves out the assertions that a metaschema leaves out", () => {
    const vocabulary = (name: string) => ({ [`https://json-schema.org/draft/2020-12/vocab/${name}`]: true });
    const documents = {
      "https://x.example/shape": { $vocabulary: vocabulary("applicator") },
      "https://x.example/full": { $vocabulary: { ...vocabulary("applicator"), ...vocabulary("validation") } },
      "https://x.example/silent": {},
    };
    const assertions = { minimum: 5, required: ["b"], minProperties: 3, dependentRequired: { c: ["d"] } };
    const lists = {
      minItems: 3,
      uniqueItems: true,
      maxItems: 0,
      contains: true,
      maxContains: 1,
      maxProperties: 0,
    };
    const schema = { ...assertions, ...lists, properties: { a: false } };
    const at = (name: string) =>
      compileSchema({ $schema: `https://x.example/${name}`, ...schema }, { documents });
    expectAnswers(at("shape"), [1, {}, { c: 1 }, [1, 1]], [{ a: 1 }, []]);
    for (const name of ["full", "silent", "unknown"]) expectAnswers(at(name), [5], [1, {}, { c: 1 }, [1, 1]]);
  });
});
