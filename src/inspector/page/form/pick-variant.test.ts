import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../../test/cpu-ms.ts";
import type { VariantsField } from "./field.ts";
import { isOfKind, pickVariant, switchVariant } from "./initial-value.ts";
import { readSchema } from "./read-schema.ts";

function variantsOf(schema: unknown): VariantsField {
  const field = readSchema(schema, schema);
  if (field.kind !== "variants") throw new Error(field.kind);
  return field;
}

const speed = {
  oneOf: [
    {
      type: "object",
      properties: { kind: { const: "standard" }, note: { type: "string" } },
      required: ["kind"],
    },
    {
      type: "object",
      properties: { kind: { const: "date" }, on: { type: "string" }, note: { type: "string" } },
      required: ["kind", "on"],
    },
  ],
};

describe("pickVariant", () => {
  it.each<[unknown, number]>([
    [{ kind: "standard" }, 0],
    [{ kind: "date", on: "x" }, 1],
    [{ kind: "date" }, 1],
    [{ on: "x" }, 1],
    [{}, 0],
    [{ kind: "unheard-of" }, 0],
    ["text", -1],
    [undefined, -1],
    [null, -1],
  ])("takes %j for variant %s", (value, index) => {
    expect(pickVariant(variantsOf(speed), value, speed)).toBe(index);
  });

  it("tells types apart", () => {
    const field = variantsOf({ type: ["string", "number", "integer", "boolean", "array", "object"] });
    const names = ["a", 1.5, true, [], {}].map(
      (value) => field.variants[pickVariant(field, value, {})]?.label,
    );
    expect(names).toEqual(["String", "Number", "Boolean", "Array", "Object"]);
    expect(pickVariant(field, { base64: "AA==", filename: "a" }, {})).toBe(field.variants.length - 1);
  });

  it("looks into lists and nested alternatives", () => {
    const schema = {
      anyOf: [
        { type: "array", items: { type: "string" } },
        { type: "array", items: { type: "object" } },
      ],
    };
    expect(pickVariant(variantsOf(schema), [{ a: 1 }], schema)).toBe(1);
  });

  it("ends although alternatives nest without end", () => {
    const schema = { oneOf: Array.from({ length: 100 }, () => ({ oneOf: [{ $ref: "#" }, { $ref: "#" }] })) };
    const start = cpuMs();
    pickVariant(variantsOf(schema), { a: { b: 1 } }, schema);
    expect(cpuMs() - start).toBeLessThan(3_000);
  });
});

describe("switchVariant", () => {
  it("keeps members that both have, and sets what tells them apart", () => {
    const { variants } = variantsOf(speed);
    const value = { kind: "standard", note: "hi", odd: 1 };
    const options = { value, before: undefined, root: speed };
    expect(switchVariant(variants[1]?.schema, options)).toEqual({ kind: "date", note: "hi" });
  });

  it("brings back what was there before", () => {
    const { variants } = variantsOf(speed);
    const before = { kind: "date", on: "2026-01-01", note: "old" };
    const value = { kind: "standard", note: "new" };
    expect(switchVariant(variants[1]?.schema, { value, before, root: speed })).toEqual({
      kind: "date",
      on: "2026-01-01",
      note: "new",
    });
  });

  it("drops members of another kind", () => {
    const value = JSON.parse('{"a":1,"__proto__":{"x":1}}') as unknown;
    const schema = { type: "object", properties: { a: { type: "string" } } };
    expect(switchVariant(schema, { value, before: undefined, root: schema })).toEqual({});
    expect(isOfKind(schema, value, schema)).toBe(true);
    expect(isOfKind({ type: "string" }, value, schema)).toBe(false);
  });
});
