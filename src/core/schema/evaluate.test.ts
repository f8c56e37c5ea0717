import { describe, expect, it } from "vitest";
import { compileSchema, type SchemaOptions } from "./compile-schema.ts";
import { SCHEMA_LIMITS } from "./limits.ts";

const $defs = { s: { type: "string" } };

describe.each([{ codegen: true }, { codegen: false }])("evaluation (codegen: $codegen)", (options) => {
  const compile = (schema: unknown, limits?: SchemaOptions["limits"]) =>
    compileSchema(schema, limits === undefined ? options : { ...options, limits });
  const check = (schema: unknown, value: unknown) => compile(schema).check(value);

  it.each([8, 64, 65, 200])("RE-32 checks each of %i known properties, and no other", (count) => {
    const names = Array.from({ length: count }, (_, n) => `p/${n}`);
    const properties = Object.fromEntries(names.map((name) => [name, { type: "integer" }]));
    const [first = "", last = ""] = [names[0], names.at(-1)];
    const known = compile({ type: "object", properties });
    for (const value of [{}, { [last]: 1 }, { [first]: 1, other: "x" }, { [first]: undefined }]) {
      expect([known.check(value), known.errors(value)]).toEqual([true, []]);
    }
    const wrong = { [first]: "x", other: "x", [last]: "x" };
    expect(known.check(wrong)).toBe(false);
    expect(known.errors(wrong).map(({ pointer }) => pointer)).toEqual(["/p~10", `/p~1${count - 1}`]);
    expect(known.check({ [first]: 1, [last]: "x" })).toBe(false);
    const closed = compile({ allOf: [{ properties }], unevaluatedProperties: false });
    expect([closed.check({ [first]: 1, [last]: 1 }), closed.check({ [last]: 1, other: 1 })]).toEqual([
      true,
      false,
    ]);
    expect(closed.errors({ [last]: 1, other: 1 }).map(({ pointer }) => pointer)).toEqual(["/other"]);
  });

  it.each<[schema: unknown, value: unknown]>([
    [true, undefined],
    [{ type: "undefined" }, undefined],
    [{ type: "bigint" }, 1n],
    [{ minLength: 1, maxLength: 1 }, "😀"],
    [{ minLength: 2, maxLength: 2 }, "\ud83d\ud83d"],
    [{ minLength: 3, maxLength: 3 }, "\ude00a\ud83d"],
    [{ minLength: 2, maxLength: 2, pattern: "^b" }, "ba"],
    [{ minimum: 2, maximum: 2 }, 2],
    [{ exclusiveMinimum: 1, exclusiveMaximum: 3 }, 2],
    [{ minItems: 1, maxItems: 1 }, [1]],
    [
      { minProperties: 1, maxProperties: 1 },
      { a: 1, b: undefined },
    ],
    [{ contains: { type: "string" }, minContains: 1, maxContains: 1 }, [1, "a"]],
    [{ contains: false, minContains: 0 }, []],
    [{ prefixItems: [{ type: "string" }, {}] }, ["a"]],
    [{ prefixItems: [{ type: "string" }] }, ["a", 1]],
    [
      { dependentRequired: { a: ["b"] }, dependentSchemas: { a: false } },
      { c: 1, a: undefined },
    ],
    [{ if: { type: "number" }, then: { minimum: 1 } }, "a"],
    [{ if: { type: "number" }, else: { type: "string" } }, 1],
    [
      { anyOf: [{ properties: { a: {} } }, { properties: { b: {} } }], unevaluatedProperties: false },
      { a: 1, b: 1 },
    ],
    [{ oneOf: [{ required: ["a"], properties: { a: {} } }, false], unevaluatedProperties: false }, { a: 1 }],
    [
      { if: { properties: { a: {} } }, then: { properties: { b: {} } }, unevaluatedProperties: false },
      { a: 1, b: 1 },
    ],
    [{ patternProperties: { a: {} }, unevaluatedProperties: false }, { a: 1 }],
    [{ additionalProperties: {}, unevaluatedProperties: false }, { a: 1 }],
    [{ allOf: [{ unevaluatedProperties: true }], unevaluatedProperties: false }, { a: 1 }],
    [{ dependentSchemas: { a: { properties: { a: {} } } }, unevaluatedProperties: false }, { a: 1 }],
    [{ allOf: [{ prefixItems: [{}] }], prefixItems: [{}, {}], unevaluatedItems: false }, [1, 2]],
    [{ allOf: [{ items: {} }], unevaluatedItems: false }, [1]],
    [{ allOf: [{ unevaluatedItems: true }], unevaluatedItems: false }, [1]],
    [{ contains: { type: "string" }, unevaluatedItems: false }, ["a"]],
    [{ anyOf: [{ contains: { const: 1 } }, { contains: { const: 2 } }], unevaluatedItems: false }, [1, 2]],
    [{ unevaluatedItems: false, unevaluatedProperties: false }, "a"],
  ])("RE-32 accepts what %j allows", (schema, value) => {
    expect(compile(schema).check(value)).toBe(true);
    expect(compile(schema).errors(value)).toEqual([]);
  });

  it.each<[schema: unknown, value: unknown]>([
    [{ not: { properties: { a: {} } }, unevaluatedProperties: false }, { a: 1 }],
    [{ anyOf: [{ properties: { a: {} }, required: ["b"] }, {}], unevaluatedProperties: false }, { a: 1 }],
    [{ if: { properties: { a: {} }, required: ["b"] }, unevaluatedProperties: false }, { a: 1 }],
    [{ contains: { type: "string" }, unevaluatedItems: false }, ["a", 1]],
    [{ prefixItems: [{}], unevaluatedItems: false }, [1, 2]],
  ])("RE-32 counts parts as looked at only where %j really looked", (schema, value) => {
    expect(check(schema, value)).toBe(false);
  });

  it("RE-12 lists the shortest pointers first and at most 20, even of more than 500", () => {
    const list = compile({ items: { type: "string" } });
    expect(list.errors(Array(20).fill(1))).toHaveLength(20);
    expect(list.errors(Array(21).fill(1)).map(({ pointer }) => pointer)).toEqual(
      [...Array(20).keys()].map((i) => `/${i}`),
    );
    const two = compile({ properties: { a: { items: { type: "string" } }, b: { type: "string" } } });
    const pointers = two.errors({ a: Array(600).fill(1), b: 1 }).map(({ pointer }) => pointer);
    expect(pointers.slice(0, 3)).toEqual(["/b", "/a/0", "/a/1"]);
    expect(pointers).toHaveLength(20);
  });

  it("RE-12 says the same thing of one place once", () => {
    expect(
      compile({ allOf: [{ type: "string" }, { type: "string" }, { $ref: "#/$defs/s" }], $defs }).errors(1),
    ).toHaveLength(1);
  });

  it("RE-12 never repeats the text of a value", () => {
    const compiled = compile({
      properties: { a: { const: 1 }, b: { items: false } },
      additionalProperties: false,
    });
    const issues = compiled.errors({ a: "hunter2", b: ["hunter2"], c: { d: "hunter2" } });
    expect(issues).toHaveLength(3);
    expect(JSON.stringify(issues)).not.toContain("hunter2");
  });

  it("RE-12 sees own properties alone, and takes an undefined one for absent", () => {
    for (const key of ["constructor", "toString", "__proto__"]) {
      expect(check({ required: [key] }, {})).toBe(false);
      expect(check({ properties: JSON.parse(`{"${key}":{"type":"string"}}`) }, {})).toBe(true);
      expect(
        check({ properties: JSON.parse(`{"${key}":{"type":"string"}}`) }, JSON.parse(`{"${key}":1}`)),
      ).toBe(false);
      expect(
        check({ required: [key], additionalProperties: { type: "number" } }, JSON.parse(`{"${key}":1}`)),
      ).toBe(true);
    }
    class Point {
      x = 1;
      get y() {
        return 2;
      }
    }
    expect(check({ required: ["x"], additionalProperties: false, properties: { x: {} } }, new Point())).toBe(
      true,
    );
    expect(check({ required: ["y"] }, new Point())).toBe(false);
    expect(
      check({ properties: { a: false }, additionalProperties: false }, Object.create({ a: 1, b: 1 })),
    ).toBe(true);
    expect(check({ required: ["a"] }, Object.create({ a: 1 }))).toBe(false);
    expect(check({ required: ["a"] }, Object.assign(Object.create(null), { a: 1 }))).toBe(true);
    expect(check({ required: ["a"] }, { a: undefined })).toBe(false);
    expect(
      check(
        { additionalProperties: false, properties: { a: false }, propertyNames: false },
        { a: undefined, b: undefined },
      ),
    ).toBe(true);
    expect(check({ items: { type: "string" } }, Array(1))).toBe(false);
    expect(check({ items: {} }, Array(1))).toBe(true);
  });

  it("RE-12 refuses an inherited hidden property that stands in for an own one", () => {
    const prototype = Object.create(Object.prototype, { a: { value: 1 }, constructor: { value: Object } });
    const forged = Object.assign(Object.create(prototype), { zzz: 1 });
    const compiled = compile({ type: "object", properties: { a: { type: "integer" } }, required: ["a"] });
    expect([compiled.check(forged), compiled.isClean(forged)]).toEqual([false, false]);
  });

  it("RE-12 never throws on a value that refuses to be read", () => {
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    const throwing = () => {
      throw new Proxy({}, { getPrototypeOf: () => throwing() });
    };
    const traps = {
      get: throwing,
      ownKeys: throwing,
      getPrototypeOf: throwing,
      getOwnPropertyDescriptor: throwing,
    };
    const hostile = [
      revoked.proxy,
      new Proxy({}, traps),
      new Proxy([], traps),
      Object.defineProperty({}, "a", { get: throwing, enumerable: true }),
    ];
    const schemas = [
      { type: "string" },
      { properties: { a: { type: "string", default: "x" } }, minProperties: 1 },
      { items: { type: "string" }, minItems: 1, maxProperties: 0 },
    ];
    for (const schema of schemas) {
      for (const value of hostile) {
        for (const [wrapped, outer] of [
          [schema, value],
          [{ required: ["w"], properties: { w: schema } }, { w: value }],
        ] as const) {
          const compiled = compile(wrapped);
          const issues = compiled.errors(outer);
          const normalized = compiled.normalize(outer);
          expect(Object.is(normalized.value, outer)).toBe(true);
          expect([normalized.valid, normalized.issues]).toEqual([issues.length === 0, issues]);
          expect(compiled.check(outer)).toBe(issues.length === 0);
          expect(() => [compiled.isClean(outer), compiled.fillDefaults(outer)]).not.toThrow();
        }
      }
    }
    expect(compile({ properties: { a: { type: "string" } } }).errors(hostile[3])).toEqual([
      { pointer: "", expected: "a value whose properties can be read", found: "object" },
    ]);
  });

  it("RE-32 looks down into a value as many levels as allowed and not one more", () => {
    const compiled = compile({ properties: { a: { $ref: "#" } }, items: { $ref: "#" } }, { valueDepth: 3 });
    expect([
      compiled.check({ a: [{}] }),
      compiled.check({ a: { a: { a: 1 } } }),
      compiled.check({ a: [{ a: {} }] }),
    ]).toEqual([true, true, false]);
    expect(compiled.errors({ a: [[[]]] })).toEqual([
      { pointer: "", expected: "at most 3 levels of nesting", found: "object" },
    ]);
    expect(compiled.check({ a: [{}] })).toBe(true);
    expect(compile({ properties: { a: { type: "object" } } }, { valueDepth: 1 }).check({ a: {} })).toBe(true);
  });

  it("RE-32 ends on values that are deep or grow by doubling", () => {
    const compiled = compile({ properties: { a: { $ref: "#" }, b: { $ref: "#" } } });
    let chain: object = {};
    for (let i = 1; i < 100_000; i++)
      chain = i === SCHEMA_LIMITS.valueDepth ? { a: chain, b: {} } : { a: chain };
    expect(compiled.errors(chain)).toEqual([
      { pointer: "", expected: "at most 512 levels of nesting", found: "object" },
    ]);
    let doubled: object = {};
    for (let i = 0; i < 60; i++) doubled = { a: doubled, b: doubled };
    const bounded = compile({ properties: { a: { $ref: "#" }, b: { $ref: "#" } } }, { steps: 10_000 });
    expect([bounded.check(doubled), bounded.errors(doubled)]).toEqual([true, []]);
    const { value, valid } = bounded.normalize(doubled);
    expect([value === doubled, valid, bounded.fillDefaults(doubled) === doubled]).toEqual([true, true, true]);
  });
});
