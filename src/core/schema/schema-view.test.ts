import { describe, expect, it } from "vitest";
import { findReference, viewSchema } from "./schema-view.ts";

describe("SchemaView", () => {
  it.each([
    [{ type: ["string", "null"], properties: {} }, ["string", "null"]],
    [{ const: null }, ["null"]],
    [{ enum: [1, "a", [2]] }, ["number", "string", "array"]],
    [{ properties: {} }, ["object"]],
    [{ prefixItems: [{}] }, ["array"]],
    [{ properties: {}, items: {} }, ["object", "array"]],
    [
      { anyOf: [{ properties: {} }, { $ref: "#/$defs/a" }], $defs: { a: { items: {} } } },
      ["object", "array"],
    ],
    [{}, []],
  ])("RE-32 reads the types of %j", (schema, types) => {
    expect([...viewSchema(schema).types]).toEqual(types);
  });

  it("RE-32 reads what refers to itself, each schema once", () => {
    const schema = { allOf: [{ $ref: "#" }], properties: { a: { $ref: "#" } } };
    const view = viewSchema(schema);
    expect(view.parts).toHaveLength(2);
    expect(view.member("a").member("a").has("a")).toBe(true);
  });

  const named = (...required: readonly string[]) => ({ required });
  it.each([
    [named("a", "b"), ["a", "b"]],
    [{ ...named("a"), allOf: [named("b")], $ref: "#/$defs/c", $defs: { c: named("c") } }, ["a", "b", "c"]],
    [{ ...named("a"), oneOf: [named("b", "c"), named("c", "d")] }, ["a", "c"]],
    [{ anyOf: [named("a"), { allOf: [named("a"), named("b")] }] }, ["a"]],
    [{ anyOf: [named("a"), {}] }, []],
    [{ anyOf: [named("a"), { type: "null" }] }, ["a"]],
    [{ ...named("a"), oneOf: [{ $ref: "#" }] }, ["a"]],
  ])("RE-32 reads which members every alternative of %j requires", (schema, required) => {
    expect([...viewSchema(schema).requiredAlways].sort()).toEqual(required);
  });

  it("RE-32 takes names of objects of the language for no members", () => {
    const view = viewSchema({ properties: {} });
    expect([view.has("constructor"), view.member("constructor").parts]).toEqual([false, []]);
    expect(findReference("#/constructor", {})).toBeUndefined();
  });
});
