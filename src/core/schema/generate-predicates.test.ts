import { describe, expect, it } from "vitest";
import { expectPredicates } from "../../../test/schema-answers.ts";
import { compileSchema } from "./compile-schema.ts";

/** Values that are clean, that are valid yet to be normalised, and that are refused. */
type Row = readonly [schema: unknown, clean: unknown[], valid: unknown[], refused: unknown[]];

const [s, n, a, o] = ["a", null, [], {}];
const str = { type: "string" };
const int = { type: "integer" };
const many = Object.fromEntries(Array.from({ length: 201 }, (_, k) => [`p${k}`, int]));
const p0 = { p0: 1 };
const hostileNames = [..."\"'\n\\`\u2028\u2029", "];", "${x}", "*/", "", "a b", "0", "</script>"];
const own = (json: string): unknown => JSON.parse(json);
const inherits = Object.assign(Object.create({ b: "" }), { a: 1 });
const bare = Object.assign(Object.create(null), { a: 1 });

const PARTS: readonly Row[] = [
  [{ type: "array", minItems: 1, maxItems: 2 }, [[1], [1, 2]], [], [[], [1, 2, 3]]],
  [{ minItems: 1 }, [[1], o, s], [], [[]]],
  [{ type: "array", items: str }, [[], ["a", "b"]], [], [["a", 1], [undefined], Array(1), o]],
  [{ items: { type: "array", items: int } }, [[[1], []], s], [], [[[1], ["a"]], [1]]],
  [{ items: false }, [[], s], [], [[1]]],
  [{ items: true }, [[], [undefined]], [], []],
  [{ prefixItems: [str], items: int }, [["a", 1], []], [], [[1], ["a", "b"]]],
  [{ contains: str }, [["a"], o], [], [[], [1]]],
  [{ uniqueItems: true }, [[1, "1"]], [], [[1, 1]]],
  [
    { properties: { a: int } },
    [o, { a: 1 }, bare, inherits, s],
    [{ b: 1 }, { a: 1, b: undefined }],
    [{ a: "" }],
  ],
  [
    { type: "object", properties: { a: int }, required: ["a"] },
    [{ a: 1 }],
    [{ a: 1, b: 1 }],
    [o, { a: undefined }, { b: 1 }, a],
  ],
  [
    { properties: { a: {} }, required: ["a"] },
    [{ a: n }],
    [{ a: n, b: n }],
    [o, { a: undefined }, Object.create({ a: 1 })],
  ],
  [{ required: ["a"] }, [{ a: 1 }, { a: 1, b: 2 }, s], [], [o, { b: 1 }]],
  [
    { properties: { a: int }, additionalProperties: false },
    [o, { a: 1 }],
    [{ a: 1, b: undefined }],
    [{ b: 1 }, { a: 1, b: 1 }],
  ],
  [
    { properties: { a: int }, required: ["a", "b"], additionalProperties: false },
    [],
    [],
    [{ a: 1 }, { a: 1, b: 1 }],
  ],
  [{ additionalProperties: false }, [o], [], [{ a: 1 }]],
  [{ properties: { a: int }, additionalProperties: true }, [{ a: 1, b: 1 }, { b: 1 }], [], [{ a: "" }]],
  [
    { properties: { a: int }, additionalProperties: str },
    [
      { a: 1, b: "" },
      { b: "", c: undefined },
    ],
    [],
    [{ a: "" }, { a: 1, b: 1 }],
  ],
  [{ additionalProperties: str }, [{ b: "" }, o], [], [{ b: 1 }, { b: "", c: 1 }]],
  [{ type: "object", properties: {} }, [o], [{ a: 1 }], [s]],
  [
    { properties: { a: { properties: { b: int } } } },
    [{ a: { b: 1 } }, { a: s }],
    [{ a: { c: 1 } }],
    [{ a: { b: "" } }],
  ],
  [{ properties: { a: { default: 1 } } }, [{ a: 2 }], [o, { a: undefined }], []],
  [{ properties: { a: { default: 1 } }, required: ["a"] }, [{ a: 2 }], [], [o]],
  [{ properties: { a: { $ref: "#/$defs/d" } }, $defs: { d: { default: 1 } } }, [{ a: 2 }], [o], []],
  [{ properties: { a: false } }, [o], [{ b: 1 }], [{ a: 1 }]],
  [{ properties: { constructor: int } }, [o, { constructor: 1 }], [{ b: 1 }], [{ constructor: "" }]],
  [{ properties: { toString: int }, required: ["toString"] }, [{ toString: 1 }], [], [o]],
  [{ required: ["valueOf"] }, [{ valueOf: 1 }], [], [o]],
  [
    { properties: own('{"__proto__":{"type":"integer"}}') },
    [o, own('{"__proto__":1}')],
    [],
    [own('{"__proto__":""}')],
  ],
  [{ required: ["__proto__"] }, [own('{"__proto__":1}')], [], [o]],
  [{ patternProperties: { "^x": int } }, [{ x: 1 }, { y: "" }], [], [{ x: "" }]],
  [{ propertyNames: { maxLength: 1 } }, [{ x: 1 }], [], [{ xy: 1 }]],
  [{ minProperties: 1, maxProperties: 2 }, [{ x: 1 }, { x: 1, y: 1 }], [], [o, { x: 1, y: 1, z: 1 }]],
  [{ minProperties: 1 }, [{ x: 1 }], [], [o]],
  [{ maxProperties: 0 }, [o], [], [{ x: 1 }]],
  [{ dependentRequired: { a: ["b"] } }, [{ b: 1 }, { a: 1, b: 1 }], [], [{ a: 1 }]],
  [{ dependentSchemas: { a: { required: ["b"] } } }, [{ b: 1 }, { a: 1, b: 1 }], [], [{ a: 1 }]],
  [{ properties: many }, [p0, o], [{ x: 1 }], [{ p0: "" }, { p200: "" }]],
  [{ required: Object.keys(many) }, [Object.fromEntries(Object.keys(many).map((key) => [key, 1]))], [], [p0]],
  [
    { properties: { v: int, next: { $ref: "#" } } },
    [{ v: 1, next: { next: {} } }],
    [{ next: { x: 1 } }],
    [{ next: { v: "" } }],
  ],
  [
    { anyOf: [str, { $ref: "#/$defs/l" }], $defs: { l: { items: { $ref: "#" } } } },
    ["a", ["a", [1, "b"]]],
    [],
    [],
  ],
];

const one = { type: "object", properties: { k: { const: 1 }, x: int }, required: ["k"] };
const two = { type: "object", properties: { k: { const: 2 }, y: str }, required: ["k"] };
const UNIONS: readonly Row[] = [
  [
    { anyOf: [one, two] },
    [{ k: 1 }, { k: 2, y: "" }],
    [
      { k: 1, y: 1 },
      { k: 2, x: "" },
    ],
    [{ k: 3 }, { k: 2, y: 1 }, o, s],
  ],
  [{ oneOf: [one, two] }, [{ k: 1, x: 1 }, { k: 2 }], [{ k: 1, y: 1 }], [{ k: 3 }, { k: 1, x: "" }]],
  [
    { oneOf: [{ properties: { a: int } }, { properties: { a: str } }] },
    [{ a: 1 }, { a: "" }],
    [{ a: 1, b: 1 }],
    [o, { a: n }],
  ],
  [{ anyOf: [{ type: "object" }, { properties: { x: {} } }] }, [{ x: 1 }, o], [{ y: 1 }], []],
  [
    { anyOf: [{ properties: { a: { type: "object" } } }, { properties: { a: { properties: { x: {} } } } }] },
    [{ a: { x: 1 } }],
    [{ a: { y: 1 } }],
    [],
  ],
  [{ anyOf: [{ properties: { a: {} } }, { properties: { a: { default: 1 } } }] }, [{ a: 1 }], [o], []],
  [{ anyOf: [true, { properties: { x: {} } }] }, [{ x: 1 }, s], [{ y: 1 }], []],
];

describe.each([{ codegen: true }, { codegen: false }])("predicates (codegen: $codegen)", (options) => {
  it.each([...PARTS, ...UNIONS])(
    "RE-32 answers the same either way for %j",
    (schema, clean, valid, refused) => {
      expectPredicates(schema, options, { clean, valid, refused });
    },
  );

  it.each(hostileNames)("RE-32 takes the property name %j for a name and nothing else", (key) => {
    const compiled = compileSchema(
      { properties: { [key]: int }, required: [key], additionalProperties: false },
      options,
    );
    expect(
      [{ [key]: 1 }, { [key]: "" }, {}, { [key]: 1, other: 1 }].map((value) => compiled.check(value)),
    ).toEqual([true, false, false, false]);
    expect(compiled.isClean({ [key]: 1 })).toBe(true);
    expect(compileSchema({ enum: [key], pattern: "" }, options).check(key)).toBe(true);
    expect(
      compileSchema({ properties: { [key]: {} }, additionalProperties: int }, options).check({
        [key]: "",
        b: 1,
      }),
    ).toBe(true);
  });

  it("RE-32 keeps to the depth limit inside generated code and across to the interpreter", () => {
    const at = (schema: unknown, valueDepth: number, value: unknown) => {
      const compiled = compileSchema(schema, { ...options, limits: { valueDepth } });
      return [compiled.check(value), compiled.isClean(value)];
    };
    const objects = { properties: { a: { properties: { b: int } } } };
    const handed = { properties: { a: { minProperties: 1, properties: { b: int } } } };
    const arrays = { items: { items: int } };
    const mixed = { additionalProperties: { items: int } };
    for (const [schema, value] of [
      [objects, { a: { b: 1 } }],
      [handed, { a: { b: 1 } }],
      [arrays, [[1]]],
      [mixed, { a: [1] }],
    ]) {
      expect(at(schema, 2, value)).toEqual([true, true]);
      expect(at(schema, 1, value)).toEqual([false, false]);
    }
    expect(at({ anyOf: [objects, str] }, 2, { a: { b: 1 } })).toEqual([true, true]);
    expect(at({ oneOf: [objects, str] }, 1, { a: { b: 1 } })).toEqual([false, false]);
  });

  it("RE-32 counts work inside generated code and starts anew for each value", () => {
    const branches = Array.from({ length: 40 }, (_, i) => ({ type: "integer", minimum: 100 - i }));
    const compiled = compileSchema({ items: { anyOf: branches } }, { ...options, limits: { steps: 60 } });
    for (let round = 0; round < 2; round++) {
      expect([compiled.check([61, 61]), compiled.check([61, 61, 61, 61])]).toEqual([true, false]);
      expect(compiled.isClean([61, 61, 61, 61])).toBe(false);
    }
  });

  it("RE-32 answers for dynamic references that only the way through the schema decides", () => {
    const tree = {
      $id: "https://x.test/tree",
      $dynamicAnchor: "node",
      properties: { kids: { items: { $dynamicRef: "#node" } } },
    };
    const strict = {
      $id: "https://x.test/strict",
      $dynamicAnchor: "node",
      $ref: "tree",
      unevaluatedProperties: false,
      $defs: { tree },
    };
    const compiled = compileSchema(strict, options);
    expect([{ kids: [{ kids: [] }] }, { kids: [{ x: 1 }] }].map((value) => compiled.check(value))).toEqual([
      true,
      false,
    ]);
    const either = compileSchema(
      { anyOf: [{ required: ["q"] }, { $ref: "https://x.test/strict" }], $defs: { strict } },
      options,
    );
    expect([{ kids: [{}] }, { kids: [{ x: 1 }] }, { q: 1 }].map((value) => either.check(value))).toEqual([
      true,
      false,
      true,
    ]);
  });

  it("RE-32 answers where the platform refuses to generate code", () => {
    const original = globalThis.Function;
    globalThis.Function = class {
      constructor() {
        throw new EvalError("Code generation from strings disallowed");
      }
    } as unknown as FunctionConstructor;
    try {
      const compiled = compileSchema({ properties: { a: int } }, options);
      expect([
        compiled.check({ a: 1 }),
        compiled.check({ a: "" }),
        compiled.isClean({ a: 1 }),
        compiled.isClean({ b: 1 }),
      ]).toEqual([true, false, true, false]);
    } finally {
      globalThis.Function = original;
    }
  });
});
