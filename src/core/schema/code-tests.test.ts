import { describe, it } from "vitest";
import { expectPredicates } from "../../../test/schema-answers.ts";

/** Values that are clean, that are valid yet to be normalised, and that are refused. */
type Row = readonly [schema: unknown, clean: unknown[], valid: unknown[], refused: unknown[]];

const JSON_VALUES = { s: "a", i: 1, f: 1.5, t: true, n: null, a: [], o: {} };
const { s, i, f, t, n, a, o } = JSON_VALUES;
const str = { type: "string" };
const int = { type: "integer" };
const inherits = Object.assign(Object.create({ b: "" }), { a: 1 });
const bare = Object.assign(Object.create(null), { a: 1 });

const SCALARS: readonly Row[] = [
  [str, [s, ""], [], [i, f, t, n, a, o, undefined, 1n]],
  [{ type: "number" }, [i, f, -0], [], [s, t, n, a, o, Number.NaN, Number.POSITIVE_INFINITY, 1n]],
  [int, [i, 2.0], [], [s, f, t, n, a, o, Number.NaN, Number.NEGATIVE_INFINITY]],
  [{ type: ["integer", "number"] }, [i, f], [], [s]],
  [{ type: "boolean" }, [t, false], [], [s, i, n, a, o, "true"]],
  [{ type: "null" }, [n], [], [s, i, t, a, o, undefined]],
  [{ type: "array" }, [a, [1]], [], [s, i, t, n, o, { length: 0 }]],
  [{ type: "object" }, [o, { x: 1 }, inherits, bare, new Date(0)], [], [s, i, t, n, a, () => 1]],
  [{ type: ["string", "integer", "null"] }, [s, i, n], [], [f, t, a, o]],
  [{ type: ["boolean", "array", "object"] }, [t, a, o], [], [s, i, n]],
  [{ type: "undefined" }, [undefined], [], [n, o]],
  [{ type: "bigint" }, [1n], [], [i]],
  [true, [s, undefined, o], [], []],
  [{}, [s, undefined, o], [], []],
  [false, [], [], [s, undefined, o]],
  [{ const: 1 }, [1], [], ["1", true, n, [1]]],
  [{ const: null }, [n], [], [undefined, 0, ""]],
  [{ const: 'a"\n\u2028' }, ['a"\n\u2028'], [], ["a"]],
  [{ const: { x: [1] } }, [{ x: [1] }], [], [{ x: [2] }, { x: 1 }]],
  [{ enum: [] }, [], [], [s, undefined]],
  [{ enum: [1, "1", null, true, 0, 2, 3, 4] }, [1, "1", n, t, -0], [], ["2", false, 5, undefined]],
  [{ enum: [1, "1", null, true, 0, 2, 3, 4, 5] }, [1, "1", n, t, -0, 5], [], ["2", false, 6, undefined]],
  [{ type: "string", enum: [1, "1"] }, ["1"], [], [1, "2"]],
  [{ type: "string", minLength: 1 }, ["a"], [], ["", 1]],
  [{ type: "string", minLength: 2 }, ["ab", "abcd"], [], ["a", "😀"]],
  [{ type: "string", minLength: 2, maxLength: 3 }, ["😀😀", "😀😀😀", "abc"], [], ["😀", "abcd", "😀😀😀😀"]],
  [{ maxLength: 0 }, ["", 1, o], [], ["a"]],
  [{ minLength: 0 }, ["", 1], [], []],
  [{ minLength: 2 }, ["ab", 1, n, a], [], ["a"]],
  [{ pattern: "^x" }, ["x", 1], [], ["y", ""]],
  [{ type: "string", pattern: "^x", minLength: 2 }, ["xy"], [], ["x", "yx", 1]],
  [{ type: "number", minimum: 1, maximum: 2 }, [1, 1.5, 2], [], [0.9, 2.1, "1"]],
  [{ type: "integer", exclusiveMinimum: 1, exclusiveMaximum: 3 }, [2], [], [1, 3, 2.5, "2"]],
  [{ type: "number", multipleOf: 0.1 }, [0.3, 0], [], [0.35]],
  [{ minimum: 5 }, [5, "1", Number.NEGATIVE_INFINITY, Number.NaN], [], [4]],
  [{ maximum: 5 }, [5, "9", Number.POSITIVE_INFINITY], [], [6]],
  [{ multipleOf: 2 }, [4, "3", Number.NaN, Number.POSITIVE_INFINITY], [], [3]],
  [{ type: ["integer", "string"], minimum: 2, minLength: 2 }, [2, "ab"], [], [1, "a", 2.5]],
  [{ type: ["integer", "number"], minimum: 2 }, [2, 2.5], [], [1]],
  [{ anyOf: [{ const: 1 }, { const: "a" }] }, [1, "a"], [], ["1", 2]],
  [
    {
      anyOf: [
        { type: "string", const: 1 },
        { type: "number", enum: [2, "3"] },
      ],
    },
    [2],
    [],
    [1, "3"],
  ],
  [{ anyOf: [] }, [], [], [1]],
  [{ anyOf: [str, int] }, ["a", 1], [], [1.5, n]],
  [{ type: "integer", anyOf: [{ minimum: 5 }, { maximum: 1 }] }, [5, 1], [], [3, "a"]],
  [{ oneOf: [{ minimum: 5 }, { maximum: 7 }] }, [4, 8], [], [6, "a"]],
  [{ type: "number", oneOf: [{ minimum: 5 }, { maximum: 7 }] }, [4, 8], [], [6, "a"]],
  [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, [1, 2, "a"], [], [0, 3]],
  [{ not: str }, [1], [], ["a"]],
  [{ $ref: "#/$defs/x", $defs: { x: { minLength: 2 } } }, ["ab", 1], [], ["a"]],
  [{ $ref: "#/$defs/x", maxLength: 2, $defs: { x: { minLength: 2 } } }, ["ab"], [], ["a", "abc"]],
];

describe.each([{ codegen: true }, { codegen: false }])("scalar predicates (codegen: $codegen)", (options) => {
  it.each(SCALARS)("RE-32 answers the same either way for %j", (schema, clean, valid, refused) => {
    expectPredicates(schema, options, { clean, valid, refused });
  });
});
