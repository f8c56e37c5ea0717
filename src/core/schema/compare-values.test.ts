import { describe, expect, it } from "vitest";
import { compileSchema } from "./compile-schema.ts";

describe.each([{ codegen: true }, { codegen: false }])("JSON values (codegen: $codegen)", (options) => {
  const check = (schema: unknown, value: unknown) => compileSchema(schema, options).check(value);

  it.each([
    [0.3, 0.1, true],
    [1.1, 0.1, true],
    [0.35, 0.1, false],
    [1e308, 1e-8, true],
    [1e300, 7, false],
    [12e-7, 4e-7, true],
    [1.5e-7, 1e-7, false],
    [2 ** 60, 2, true],
    [-4.2, 0.7, true],
    [-3, 2, false],
    [0, 3, true],
    [7.5, 2.5, true],
    [1e22, 3, false],
  ])("RE-32 takes %d by multiples of %d exactly: %s", (value, multipleOf, expected) => {
    expect(check({ multipleOf }, value)).toBe(expected);
  });

  it("RE-32 counts 1.0 as an integer and no non-finite number as a number", () => {
    expect([1.0, -0, 1e300, 1.5, "1", Number.NaN].map((n) => check({ type: "integer" }, n))).toEqual([
      true,
      true,
      true,
      false,
      false,
      false,
    ]);
    for (const n of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      expect(check({ type: "number" }, n)).toBe(false);
      expect(
        check({ minimum: 5, maximum: 5, multipleOf: 2, exclusiveMinimum: 4, exclusiveMaximum: 6 }, n),
      ).toBe(true);
    }
  });

  const now = new Date(0);
  it.each<[a: unknown, b: unknown, equal: boolean]>([
    [{ a: 1, b: [2] }, { b: [2], a: 1 }, true],
    [1, true, false],
    ["1", 1, false],
    [[1], [true], false],
    [["1"], [1], false],
    [[null], ["null"], false],
    [{}, { a: undefined }, true],
    [{ a: 1 }, { b: 1 }, false],
    [{ a: 1 }, { a: 1, b: 1 }, false],
    [[], {}, false],
    [[1, 2], [2, 1], false],
    [[1], [1, 2], false],
    [[1n], [2n], false],
    [[1n], [1n], true],
    [now, now, true],
    [now, new Date(0), false],
    [[now], [new Date(1)], false],
    [new Map(), {}, false],
    [[Number.NaN], [null], false],
    ['{"a":1}', { a: 1 }, false],
    ["[]", [], false],
    [0, -0, true],
    [null, {}, false],
    [["a,b"], ["a", "b"], false],
    [{ a: { b: 1 } }, { a: { b: 1 } }, true],
    [{ a: { b: 1 } }, { a: { b: 2 } }, false],
  ])("RE-32 compares %o and %o as JSON does: %s", (a, b, equal) => {
    expect(check({ uniqueItems: true }, [a, b])).toBe(!equal);
  });

  it.each<[allowed: unknown, value: unknown, equal: boolean]>([
    [{ a: 1, b: [{}] }, { b: [{}], a: 1 }, true],
    [1, true, false],
    ["1", 1, false],
    [1, 1n, false],
    [{}, { a: undefined }, true],
    [{}, [], false],
    [[], {}, false],
    [[1], [1, 2], false],
    [[1], [2], false],
    [{}, now, false],
    [{}, new Map(), false],
    [{ a: 1 }, Object.create({ a: 1 }), false],
    [{ a: 1 }, { b: 1 }, false],
    [null, undefined, false],
    [0, -0, true],
    [{}, null, false],
  ])("RE-32 allows by const and enum of %j the value %o: %s", (allowed, value, equal) => {
    expect(check({ const: allowed }, value)).toBe(equal);
    expect(check({ enum: ["other", allowed] }, value)).toBe(equal);
    expect(check({ enum: [allowed, ...Array.from({ length: 9 }, (_, i) => `o${i}`)] }, value)).toBe(equal);
  });
});
