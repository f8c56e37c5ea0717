import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findHeaderFault } from "./header-fault.ts";

const named = (name: unknown, type: unknown = "string") => ({ type, "x-mcp-header": name });
const input = (properties: object) => ({ type: "object", properties });

describe("the headers that an input schema names", () => {
  it.each([
    input({ a: named("Region"), b: named("Count", "integer"), c: named("Dry-Run", "boolean") }),
    input({ a: input({ b: named("Region") }) }),
    input({ "x-mcp-header": { type: "number" } }),
    {
      ...input({ a: { type: "string" } }),
      default: { "x-mcp-header": "" },
      examples: [{ "x-mcp-header": 1 }],
    },
    true,
    undefined,
    [],
  ])("Mcp: are right in %j", (schema) => {
    expect(findHeaderFault(schema)).toBeUndefined();
  });

  it.each(["", "a b", "a:b", "Ré", "a\r\nb", "a\u0000", "a/b", 1, null, {}])(
    "Mcp: are wrong where the name is %j",
    (name) => {
      expect(findHeaderFault(input({ a: named(name) }))).toMatch(
        /^The x-mcp-header of its property "a" is no name/,
      );
    },
  );

  it.each(["object", "array", "null", "number", undefined, ["string", "null"]])(
    "Mcp: are wrong where the type is %j",
    (type) => {
      const schema = input({ a: { "x-mcp-header": "A", ...(type !== undefined && { type }) } });
      expect(findHeaderFault(schema)).toMatch(/no string, integer or boolean/);
    },
  );

  it("Mcp: are wrong where two are the same, in whatever case and however deep", () => {
    expect(findHeaderFault(input({ a: named("Region"), b: input({ c: named("rEGION") }) }))).toBe(
      'The x-mcp-header of its property "b.c" is that of another property too.',
    );
  });

  it.each([
    named("A"),
    { items: named("A") },
    { additionalProperties: named("A") },
    { anyOf: [{}, named("A")] },
    { $defs: { d: named("A") } },
    { if: input({ a: named("A") }) },
    input({ a: { type: "array", items: input({ b: named("A") }) } }),
  ])("Mcp: are wrong where not every input has that place: %j", (schema) => {
    expect(findHeaderFault(schema)).toMatch(/stands where no property is/);
  });

  it("Mcp: are looked for in any JSON without harm", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (schema) => {
        expect(["string", "undefined"]).toContain(typeof findHeaderFault(schema));
      }),
    );
  });
});
