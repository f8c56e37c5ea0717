import { expect, test } from "vitest";
import type { JsonSchemaView } from "../../protocol.ts";
import { schemaNotes, schemaOutline, schemaType } from "./operations-view.tsx";

const lines = (schema: JsonSchemaView, limit = 100): readonly string[] =>
  schemaOutline(schema, limit).map(
    ({ depth, name, type, isRequired, notes }) =>
      `${"-".repeat(depth)}${name}${isRequired ? "!" : ""}: ${[type, ...notes].join("; ")}`,
  );

test("members, items and variants stand below what holds them", () => {
  const schema = {
    type: "object",
    required: ["to"],
    additionalProperties: false,
    properties: {
      to: { type: "object", properties: { mail: { type: "string", format: "email", minLength: 3 } } },
      items: { type: "array", items: { type: "integer", minimum: 1, default: 1 } },
      speed: { oneOf: [{ title: "Fast", const: 1 }, { enum: ["a", 2] }] },
    },
  };
  expect(lines(schema)).toEqual([
    ": object; no other members",
    "-to!: object",
    "--mail: string; at least 3 characters; format email",
    "-items: list of integer",
    "--each item: integer; at least 1; default 1",
    "-speed: one of several forms",
    "--one of · Fast: always 1",
    '--one of · 2: one of "a", 2',
  ]);
});

test("what must hold all together is put together", () => {
  const schema = {
    allOf: [{ properties: { a: { type: "string" } } }, { properties: { b: {} }, required: ["b"] }],
  };
  expect(lines(schema)).toEqual([": object", "-a: string", "-b!: anything"]);
});

test("references are followed once, and circles are named", () => {
  const schema = {
    $ref: "#/$defs/node",
    $defs: {
      node: { type: "object", properties: { next: { $ref: "#/$defs/node" }, to: { $ref: "x.json" } } },
    },
  };
  expect(lines(schema)).toEqual([": object", "-next: object; see #/$defs/node", "-to: anything; see x.json"]);
  expect(lines({ $ref: "#" })).toHaveLength(1);
});

test("a title stands in for a description, unless the name says it", () => {
  const schema = { title: "Parcel", oneOf: [{ title: "Small" }, { title: "Big", description: "Heavy." }] };
  expect(schemaOutline(schema, 10).map(({ description }) => description)).toEqual(["Parcel", "", "Heavy."]);
});

test("hostile schemas have an end: deep, wide, looping, odd", () => {
  let deep: JsonSchemaView = { type: "string" };
  for (let at = 0; at < 20_000; at += 1) deep = { properties: { a: deep } };
  expect(lines(deep).at(-1)).toContain("deeper levels are in the JSON");
  const wide = { properties: Object.fromEntries(Array.from({ length: 50_000 }, (_, at) => [`p${at}`, {}])) };
  expect(schemaOutline(wide, 100)).toHaveLength(100);
  const fan = {
    $ref: "#/$defs/a",
    $defs: {
      a: { allOf: [{ $ref: "#/$defs/b" }] },
      b: { anyOf: [{ $ref: "#/$defs/a" }, { $ref: "#/$defs/a" }] },
    },
  };
  expect(lines(fan).length).toBeLessThan(20);
  const odd = { properties: 5, required: "x", oneOf: {}, items: [true, false], type: [1, null], enum: "no" };
  expect(lines(odd)).toEqual([": object", "-item 1: anything", "-item 2: nothing"]);
});

test("names of the prototype are plain members", () => {
  const schema = JSON.parse('{"properties":{"__proto__":{"type":"string"},"toString":{"type":"null"}}}');
  expect(lines(schema)).toEqual([": object", "-__proto__: string", "-toString: null"]);
  expect(schemaType(JSON.parse('{"__proto__":{"type":"string"}}'))).toBe("anything");
});

test("words stay short, whatever is in the schema", () => {
  const long = "x".repeat(1_000_000);
  expect(schemaType({ const: long }).length).toBeLessThan(200);
  expect(schemaType({ enum: Array.from({ length: 10_000 }, () => long) }).length).toBeLessThan(2_000);
  expect(schemaNotes({ pattern: long, default: { long } }).join().length).toBeLessThan(500);
});
