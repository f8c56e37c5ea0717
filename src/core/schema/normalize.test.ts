import { describe, expect, it } from "vitest";
import { compileSchema } from "./compile-schema.ts";

type Row = readonly [schema: unknown, value: unknown, result: unknown, ...stripped: string[]];

const a = { properties: { a: {} } };
const b = { properties: { b: {} } };
const $defs = { a, b };
const abz = { a: 1, b: 2, z: 3 };
const kind = (k: number, name: string) => ({ properties: { k: { const: k }, [name]: {} }, required: ["k"] });
const ab = { a: 1, b: 2 };
const tree = { properties: { v: {}, kids: { items: { $ref: "#" } } } };

/** A schema, a value, what is left of it, and the pointers of what was stripped. */
const STRIPS: readonly Row[] = [
  [a, abz, { a: 1 }, "/b", "/z"],
  [{ properties: {} }, { z: 1 }, {}, "/z"],
  [{ properties: { a: {} }, patternProperties: { "^b": {} } }, abz, ab, "/z"],
  [{ patternProperties: { "^b": a } }, { b1: { a: 1, z: 1 }, z: 1 }, { b1: { a: 1 }, z: 1 }, "/b1/z"],
  [{ ...a, additionalProperties: true }, abz, abz],
  [{ ...a, additionalProperties: {} }, abz, abz],
  [{ ...a, additionalProperties: a }, { a: 1, x: { a: 1, z: 1 } }, { a: 1, x: { a: 1 } }, "/x/z"],
  [{ ...a, additionalProperties: a }, { a: { z: 1 } }, { a: { z: 1 } }],
  [{ ...a, unevaluatedProperties: true }, abz, abz],
  [{ ...a, unevaluatedProperties: a }, { a: 1, x: { a: 1, z: 1 } }, { a: 1, x: { a: 1 } }, "/x/z"],
  [{ ...a, additionalProperties: false }, abz, { a: 1 }, "/b", "/z"],
  [{ ...a, unevaluatedProperties: false }, abz, { a: 1 }, "/b", "/z"],
  [{ $ref: "#/$defs/a", $defs }, abz, { a: 1 }, "/b", "/z"],
  [{ $ref: "#/$defs/a", ...b, $defs }, abz, ab, "/z"],
  [{ $dynamicRef: "#x", $defs: { x: { $dynamicAnchor: "x", ...a } } }, abz, { a: 1 }, "/b", "/z"],
  [{ allOf: [a, b] }, abz, ab, "/z"],
  [{ allOf: [a, { additionalProperties: true }] }, abz, abz],
  [{ allOf: [a, { minProperties: 1 }] }, abz, { a: 1 }, "/b", "/z"],
  [{ anyOf: [a, b] }, abz, ab, "/z"],
  [{ anyOf: [{ ...a, required: ["q"] }, b] }, abz, { b: 2 }, "/a", "/z"],
  [{ anyOf: [{ type: "object" }, { properties: { x: {} } }] }, { y: 1 }, {}, "/y"],
  [
    { anyOf: [{ properties: { a: { type: "object" } } }, { properties: { a } }] },
    { a: { y: 1 } },
    { a: {} },
    "/a/y",
  ],
  [{ oneOf: [kind(1, "a"), kind(2, "b")] }, { k: 2, ...abz }, { k: 2, b: 2 }, "/a", "/z"],
  [
    { oneOf: [{ ...a, additionalProperties: false, required: ["a"] }, { type: "null" }] },
    abz,
    { a: 1 },
    "/b",
    "/z",
  ],
  [{ ...a, if: { required: ["b"] }, then: b, else: { properties: { z: {} } } }, abz, ab, "/z"],
  [{ ...a, if: { required: ["q"] }, then: b, else: { properties: { z: {} } } }, abz, { a: 1, z: 3 }, "/b"],
  [{ ...a, if: { ...b, required: ["b"] } }, abz, ab, "/z"],
  [{ ...a, if: { ...b, required: ["q"] } }, abz, { a: 1 }, "/b", "/z"],
  [{ ...a, not: { ...b, required: ["q"] } }, abz, { a: 1 }, "/b", "/z"],
  [{ ...a, dependentSchemas: { a: b, q: { properties: { z: {} } } } }, abz, ab, "/z"],
  [{ ...a, dependentSchemas: { q: b } }, abz, { a: 1 }, "/b", "/z"],
  [
    tree,
    { v: 1, kids: [{ kids: [{ z: 1 }] }], z: 1 },
    { v: 1, kids: [{ kids: [{}] }] },
    "/kids/0/kids/0/z",
    "/z",
  ],
  [{ prefixItems: [a], items: b }, [abz, abz], [{ a: 1 }, { b: 2 }], "/0/b", "/0/z", "/1/a", "/1/z"],
  [{ prefixItems: [a] }, [{ a: 1 }, abz], [{ a: 1 }, abz]],
  [{ prefixItems: [{}], unevaluatedItems: a }, [abz, abz], [abz, { a: 1 }], "/1/b", "/1/z"],
  [{ properties: { "x/~": a } }, { "x/~": { "z/~": 1 } }, { "x/~": {} }, "/x~1~0/z~1~0"],
  [{ properties: { n: {} } }, { n: Number.NaN, z: 1 }, { n: Number.NaN }, "/z"],
  [{ items: a }, [Number.NaN, -0, { z: 1 }], [Number.NaN, -0, {}], "/2/z"],
  [a, { a: undefined, z: undefined }, { a: undefined }, "/z"],
  [{ type: "object" }, abz, abz],
  [{ required: ["a"], minProperties: 1 }, abz, abz],
  [{ properties: { o: { type: "object" } } }, { o: abz }, { o: abz }],
  [{ contains: a }, [abz], [abz]],
  [{}, abz, abz],
  [true, abz, abz],
  [a, "text", "text"],
  [a, [abz], [abz]],
];

describe.each([{ codegen: true }, { codegen: false }])("normalising (codegen: $codegen)", (options) => {
  const normalize = (schema: unknown, value: unknown) => compileSchema(schema, options).normalize(value);

  it.each(STRIPS)("RE-13 strips by %j what no schema names", (schema, value, result, ...stripped) => {
    const before = structuredClone(value);
    const normalized = normalize(schema, value);
    const report = { report: { stripped, defaulted: [], converted: [] } };
    expect(normalized).toStrictEqual({
      value: result,
      valid: true,
      issues: [],
      ...(stripped.length > 0 ? report : {}),
    });
    expect(normalized.value === value).toBe(stripped.length === 0);
    expect(value).toStrictEqual(before);
    expect(normalize(schema, normalized.value)).toEqual({ value: result, valid: true, issues: [] });
  });

  it("RE-13 calls a schema that says nothing unknown, and no other", () => {
    const meaningful = (schema: unknown) => compileSchema(schema, options).meaningful;
    expect([{}, true, { title: "t", default: 1 }, { $defs }].map(meaningful)).toEqual([
      false,
      false,
      false,
      false,
    ]);
    expect([false, { type: "object" }, { not: {} }, a, { $ref: "#/$defs/a", $defs }].map(meaningful)).toEqual(
      Array(5).fill(true),
    );
  });

  it("RE-13 keeps the raw value whole, with its issues, where normalising does not make it pass", () => {
    const value = { a: "x", n: "7", z: 1 };
    const result = normalize(
      { properties: { a: { type: "integer" }, n: { type: "integer" }, d: { default: 1 } } },
      value,
    );
    expect(result.value).toBe(value);
    expect(result.valid).toBe(false);
    expect(result.report).toBeUndefined();
    expect(result.issues.map(({ pointer }) => pointer)).toEqual(["/a", "/n"]);
  });

  it("RE-13 keeps a valid value that normalising would break", () => {
    for (const [schema, value] of [
      [
        { ...a, minProperties: 2 },
        { a: 1, z: 1 },
      ],
      [{ properties: { a: { type: "integer", default: "x" } } }, {}],
      [{ ...a, required: ["z"] }, { z: 1 }],
    ]) {
      const result = normalize(schema, value);
      expect(result).toEqual({ value, valid: true, issues: [] });
      expect(result.value).toBe(value);
    }
  });

  it("RE-13 lists 1,000 changes and counts the rest", () => {
    const list = (length: number) => Array.from({ length }, () => ({ z: 1 }));
    const exact = normalize({ items: a }, list(1000)).report;
    expect([exact?.stripped.length, exact && "omitted" in exact]).toEqual([1000, false]);
    const more = normalize({ items: a }, list(1001));
    expect([more.report?.stripped.length, more.report?.omitted]).toEqual([1000, 1]);
    expect(more.value).toEqual(Array(1001).fill({}));
    const schema = { items: { properties: { d: { default: 1 }, n: { type: "integer" } } } };
    const mixed = normalize(
      schema,
      Array.from({ length: 400 }, () => ({ n: "7", z: 1 })),
    ).report;
    expect(
      (mixed?.stripped.length ?? 0) + (mixed?.defaulted.length ?? 0) + (mixed?.converted.length ?? 0),
    ).toBe(1000);
    expect(mixed?.omitted).toBe(200);
  });

  it("RE-13 leaves frozen input alone and shares what does not change", () => {
    const kept = Object.freeze({ a: 1 });
    const value = Object.freeze({ x: kept, list: Object.freeze([kept, Object.freeze({ z: 1 })]) });
    const result = normalize({ properties: { x: a, list: { items: a } } }, value).value as {
      x: unknown;
      list: unknown[];
    };
    expect(result).toEqual({ x: { a: 1 }, list: [{ a: 1 }, {}] });
    expect([result.x, result.list[0]].every((part) => part === kept)).toBe(true);
  });

  it("RE-13 keeps dates, maps and class instances that nothing changes, and own __proto__ properties", () => {
    const value = { d: new Date(0), m: new Map([[1, 2]]), z: 1 };
    const result = normalize({ properties: { d: a, m: a } }, value).value as typeof value;
    expect([Object.keys(result), result.d === value.d, result.m === value.m]).toEqual([
      ["d", "m"],
      true,
      true,
    ]);
    const schema = JSON.parse('{"properties":{"__proto__":{"type":"integer"}}}');
    const proto = normalize(schema, JSON.parse('{"__proto__":"7","z":1}')).value;
    expect(JSON.stringify(proto)).toBe('{"__proto__":7}');
    expect(Object.getPrototypeOf(proto)).toBe(Object.prototype);
  });

  it("RE-13 ends soon where alternatives hold alternatives", () => {
    const nest = (n: number): object =>
      n > 0 ? { anyOf: [{ type: "object", properties: { a: nest(n - 1) } }] } : { type: "integer" };
    const wrap = (n: number, last: unknown): unknown => (n > 0 ? { a: wrap(n - 1, last) } : last);
    expect(normalize(nest(40), wrap(40, "7")).value).toEqual(wrap(40, 7));
    const node = { type: "object", properties: { a: { $ref: "#" }, v: { type: "integer" } } };
    for (const keyword of ["anyOf", "oneOf"]) {
      let chain: unknown = null;
      for (let i = 0; i < 40; i++) chain = { v: "7", a: chain };
      const { valid, report } = normalize({ [keyword]: [node, { type: "null" }] }, chain);
      expect([valid, report?.converted.length]).toEqual([true, 40]);
    }
  });
});
