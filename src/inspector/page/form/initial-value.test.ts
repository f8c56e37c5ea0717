import { describe, expect, it } from "vitest";
import { firstValue, initialValue } from "./initial-value.ts";

describe("initialValue", () => {
  it("starts with what is required and what has a default", () => {
    const schema = {
      type: "object",
      required: ["to", "kind", "size", "name", "list"],
      properties: {
        to: {
          type: "object",
          required: ["country"],
          properties: { country: { enum: ["DE", "FR"] }, zip: {} },
        },
        kind: { const: "parcel" },
        size: { type: "string", enum: ["s", "m"], default: "m" },
        name: { type: "string" },
        list: { type: "array", items: { type: "string" }, minItems: 1 },
        count: { type: "integer", default: 1 },
        optional: { type: "object", properties: { a: { default: 1 } } },
        colour: { enum: ["red", "blue"] },
      },
    };
    expect(initialValue(schema)).toEqual({
      to: {},
      kind: "parcel",
      size: "m",
      list: [],
      count: 1,
    });
  });

  it("makes the items that a list needs, when they are objects", () => {
    const items = { type: "object", properties: { count: { default: 1 } } };
    expect(initialValue({ type: "array", minItems: 2, items })).toEqual([{ count: 1 }, { count: 1 }]);
    expect(initialValue({ type: "array", minItems: 1e9, items })).toHaveLength(20);
  });

  it("follows references, and chooses only where there is nothing else to choose", () => {
    const a = { $ref: "#/$defs/a" };
    const schema = {
      $defs: { a: { type: "object", required: ["kind"], properties: { kind: { const: "a" } } } },
      type: "object",
      required: ["one", "two", "only", "of", "maybe", "said"],
      properties: {
        one: { oneOf: [a] },
        two: { oneOf: [a, { type: "string" }] },
        only: { enum: ["x"] },
        of: { enum: ["x", "y"] },
        maybe: { enum: ["x", null] },
        said: { enum: ["x", "y"], default: "y" },
      },
    };
    expect(initialValue(schema)).toEqual({ one: { kind: "a" }, only: "x", said: "y" });
  });

  it("is nothing where nothing is needed", () => {
    expect(
      [true, {}, { type: "string" }, { type: "boolean" }, undefined].map((schema) => initialValue(schema)),
    ).toEqual(Array(5).fill(undefined));
    expect(initialValue({ type: "object" })).toEqual({});
    expect(initialValue({ type: "string", default: null })).toBeNull();
  });

  it("ends although a schema requires itself", () => {
    const chain = { type: "object", required: ["next"], properties: { next: { $ref: "#" } } };
    expect(JSON.stringify(initialValue(chain)).length).toBeLessThan(200);
    const names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    const levels = Object.fromEntries(
      Array.from({ length: 20 }, (_, level) => [
        `l${level}`,
        {
          type: "object",
          required: names,
          properties: Object.fromEntries(names.map((name) => [name, { $ref: `#/$defs/l${level + 1}` }])),
        },
      ]),
    );
    expect(JSON.stringify(initialValue({ $ref: "#/$defs/l0", $defs: levels })).length).toBeLessThan(100_000);
  });

  it("defines members of any name", () => {
    const schema: unknown = JSON.parse(
      '{"properties":{"__proto__":{"default":{"x":1}},"constructor":{"default":2}}}',
    );
    expect(JSON.stringify(initialValue(schema))).toBe('{"__proto__":{"x":1},"constructor":2}');
    expect(Reflect.get({}, "x")).toBeUndefined();
  });
});

it("makes a first value where there has to be one", () => {
  const kinds = [
    { type: "string" },
    { type: "number", minimum: 3 },
    { type: "boolean" },
    { type: "object" },
    { type: "array" },
    {},
    { type: "null" },
    { enum: ["a", "b"] },
    { type: ["string", "number"] },
  ];
  expect(kinds.map((schema) => firstValue(schema, schema))).toEqual([
    "",
    3,
    false,
    {},
    [],
    "",
    null,
    null,
    "",
  ]);
});
