import { describe, expect, it } from "vitest";
import { compileSchema } from "./compile-schema.ts";

const integer = { type: "integer" };
const number = { type: "number" };
const string = { type: "string" };
const boolean = { type: "boolean" };
const big = 2n ** 60n;

/** A schema, a value it refuses, and what that becomes without loss. */
const CONVERSIONS: readonly (readonly [schema: unknown, value: unknown, result: unknown])[] = [
  [integer, "7", 7],
  [integer, "-7", -7],
  [integer, "0", 0],
  [number, "7", 7],
  [number, "7.5", 7.5],
  [number, "1e+21", 1e21],
  [string, 7, "7"],
  [string, 7.5, "7.5"],
  [string, -1, "-1"],
  [string, 0, "0"],
  [string, true, "true"],
  [string, false, "false"],
  [boolean, "true", true],
  [boolean, "false", false],
  [integer, 7n, 7],
  [number, 7n, 7],
  [string, 7n, "7"],
  [string, big, String(big)],
  [string, new Date(0), "1970-01-01T00:00:00.000Z"],
  [{ type: ["integer", "null"] }, "7", 7],
  [{ type: ["boolean", "integer"] }, "true", true],
  [{ type: ["boolean", "integer"] }, "7", 7],
  [{ type: ["object", "string"], required: ["x"] }, 7, "7"],
  [{ allOf: [integer, number] }, "7", 7],
  [{ allOf: [number, integer] }, "7", 7],
  [{ $ref: "#/$defs/i", $defs: { i: integer } }, "7", 7],
  [{ anyOf: [integer, { type: "null" }] }, "7", 7],
  [{ oneOf: [integer, { type: "null" }] }, "7", 7],
  [{ anyOf: [integer, number] }, "7", 7],
  [{ type: "integer", const: 7 }, "7", 7],
  [
    {
      anyOf: [
        { type: "number", const: 7 },
        { type: "number", const: 8 },
      ],
    },
    "7",
    7,
  ],
  [{ type: "integer", minimum: 5 }, "7", 7],
];

const KEPT: readonly (readonly [schema: unknown, value: unknown])[] = [
  ...[
    "007",
    "7.0",
    "1e3",
    "",
    " 7",
    "7 ",
    "0x10",
    "-0",
    "+7",
    ".5",
    "7n",
    "NaN",
    "Infinity",
    "9007199254740993",
    "7,0",
  ].map((text) => [number, text] as const),
  [integer, "7.5"],
  [boolean, "True"],
  [boolean, "1"],
  [boolean, 1],
  [boolean, ""],
  [integer, true],
  [integer, null],
  [string, null],
  [integer, [7]],
  [string, Number.NaN],
  [string, Number.POSITIVE_INFINITY],
  [string, -0],
  [string, {}],
  [string, [7]],
  [string, undefined],
  [string, Symbol.iterator],
  [integer, big],
  [number, new Date(0)],
  [string, new Date(Number.NaN)],
  [{ type: "null" }, "null"],
  [{ type: "array" }, "[]"],
  [{ type: ["integer", "string"] }, 7n],
  [{ enum: ["low", "high"] }, "medium"],
  [{ enum: [7, 8] }, "7"],
  [{ type: "string", enum: ["low"] }, "Low"],
  [{ const: 7 }, "7"],
  [{ anyOf: [integer, string] }, 7n],
  [{ anyOf: [boolean, { type: "null" }] }, "7"],
  [{ allOf: [integer, boolean] }, "7"],
  [{ type: "integer", minimum: 8 }, "7"],
];

describe.each([{ codegen: true }, { codegen: false }])(
  "converting and filling (codegen: $codegen)",
  (options) => {
    const normalize = (schema: unknown, value: unknown) => compileSchema(schema, options).normalize(value);

    it.each(CONVERSIONS)("RE-13 brings by %j the value %o to its declared type", (schema, value, result) => {
      const report = { stripped: [], defaulted: [], converted: [""] };
      expect(normalize(schema, value)).toStrictEqual({ value: result, valid: true, issues: [], report });
      const { $defs = {} } = schema as { $defs?: object };
      const inside = normalize({ items: schema, $defs }, [value]);
      expect([inside.value, inside.report?.converted]).toEqual([[result], ["/0"]]);
    });

    it.each(KEPT)("RE-13 does not guess by %j what %o might mean", (schema, value) => {
      const result = normalize(schema, value);
      expect(result.value).toBe(value);
      expect([result.valid, result.report, result.issues.length > 0]).toEqual([false, undefined, true]);
    });

    it("RE-13 converts nothing that already passes", () => {
      for (const value of ["7", 7, "true"]) {
        expect(normalize({ type: ["string", "integer"] }, value)).toStrictEqual({
          value,
          valid: true,
          issues: [],
        });
      }
      expect(normalize({}, "7").value).toBe("7");
    });

    const d = (value: unknown) => ({ default: value });
    it.each<[schema: unknown, value: unknown, result: unknown, ...pointers: string[]]>([
      [{ properties: { a: d(1) } }, {}, { a: 1 }, "/a"],
      [{ properties: { a: d(1) } }, { a: undefined }, { a: 1 }, "/a"],
      [{ properties: { a: d(1) } }, { a: null }, { a: null }],
      [{ properties: { a: d(1) }, required: ["a"] }, {}, { a: 1 }, "/a"],
      [
        { properties: { a: d(null), b: d(false), c: d(0), e: d("") } },
        {},
        { a: null, b: false, c: 0, e: "" },
        "/a",
        "/b",
        "/c",
        "/e",
      ],
      [{ properties: { a: { ...d({}), properties: { b: d(1) } } } }, {}, { a: { b: 1 } }, "/a", "/a/b"],
      [{ properties: { a: { properties: { b: d(1) } } } }, {}, {}],
      [{ properties: { a: { properties: { b: d(1) } } } }, { a: {} }, { a: { b: 1 } }, "/a/b"],
      [{ items: { properties: { a: d(1) } } }, [{}, 1], [{ a: 1 }, 1], "/0/a"],
      [{ properties: { a: { $ref: "#/$defs/x" } }, $defs: { x: d(1) } }, {}, { a: 1 }, "/a"],
      [{ properties: { a: { $ref: "#/$defs/x", ...d(2) } }, $defs: { x: d(1) } }, {}, { a: 2 }, "/a"],
      [{ properties: { a: { allOf: [d(1), {}] } } }, {}, { a: 1 }, "/a"],
      [{ properties: { a: { allOf: [d(1), d(2)] } } }, {}, {}],
      [{ properties: { a: { $ref: "#/$defs/x", allOf: [d(2)] } }, $defs: { x: d(1) } }, {}, {}],
      [{ allOf: [{ properties: { a: d([1]) } }, { properties: { a: d([1]) } }] }, {}, { a: [1] }, "/a"],
      [{ allOf: [{ properties: { a: d(1) } }, { properties: { a: d(2) } }] }, {}, {}],
      [
        { anyOf: [{ properties: { a: d(1) }, required: ["k"] }, { type: "null" }] },
        { k: 1, a: 2 },
        { k: 1, a: 2 },
      ],
      [{ items: d(1) }, [undefined], [undefined]],
      [{ default: {} }, undefined, undefined],
      [{ $ref: "#/$defs/q", default: {}, $defs: { q: {} } }, undefined, undefined],
    ])("RE-13 fills by %j the declared defaults of %j", (schema, value, result, ...defaulted) => {
      const open = compileSchema(schema, options);
      const filled = open.fillDefaults(value);
      expect(filled).toStrictEqual(result);
      expect(Object.is(filled, value)).toBe(defaulted.length === 0);
      expect(open.hasDefaults).toBe(true);
      if ("anyOf" in (schema as object)) return;
      expect(open.normalize(value).value).toStrictEqual(result);
      expect(open.normalize(value).report?.defaulted ?? []).toEqual(defaulted);
    });

    it("RE-13 hands out a new copy of a default each time", () => {
      const compiled = compileSchema({ properties: { a: { default: { list: [{}] } } } }, options);
      const [one, two] = [compiled.fillDefaults({}), compiled.fillDefaults({})] as [
        { a: { list: object[] } },
        { a: { list: object[] } },
      ];
      one.a.list.push({});
      expect([two.a.list.length, Object.isFrozen(two.a.list[0]), two.a.list[0] === one.a.list[0]]).toEqual([
        1,
        false,
        false,
      ]);
    });

    it("RE-13 fills defaults without stripping or converting where only filling is asked for", () => {
      const schema = { properties: { a: { default: 1 }, n: {}, m: { type: "string" } } };
      const compiled = compileSchema(schema, options);
      expect(compiled.fillDefaults({ z: 1, n: "7" })).toEqual({ z: 1, n: "7", a: 1 });
      const wrong = { m: 7 };
      expect(compiled.fillDefaults(wrong)).toBe(wrong);
      const plain = compileSchema({ properties: { n: integer } }, options);
      expect([plain.hasDefaults, plain.fillDefaults(wrong) === wrong]).toEqual([false, true]);
    });

    it("RE-13 reports strips, defaults and conversions each by their pointers", () => {
      const schema = { properties: { "a/b": integer, o: { properties: { d: { default: 1 } } } } };
      expect(normalize(schema, { "a/b": "7", o: { z: 1 }, y: 1 })).toStrictEqual({
        value: { "a/b": 7, o: { d: 1 } },
        valid: true,
        issues: [],
        report: { stripped: ["/o/z", "/y"], defaulted: ["/o/d"], converted: ["/a~1b"] },
      });
    });
  },
);
