import { describe, expect, it } from "vitest";
import { cleanForm } from "./clean-form.ts";

describe("cleanForm", () => {
  it("Mcp: cleans what people read of a form, and leaves names and values alone", () => {
    const bad = "a\u202Eb";
    const field = { title: bad, description: bad, enum: [bad], enumNames: [bad], default: bad, const: bad };
    const clean = { ...field, title: "ab", description: "ab", enumNames: ["ab"] };
    const choice = (title: string) => ({
      oneOf: [{ const: bad, title }],
      items: { anyOf: [{ const: bad, title }] },
    });
    expect(
      cleanForm({
        type: "object",
        title: bad,
        properties: { title: field, default: field, [bad]: choice(bad) },
        required: [bad],
      }),
    ).toEqual({
      type: "object",
      title: "ab",
      properties: { title: clean, default: clean, [bad]: choice("ab") },
      required: [bad],
    });
  });

  it("X-2 a form cannot reach a prototype", () => {
    const schema = JSON.parse(
      '{"type":"object","properties":{"__proto__":{"title":"x"}},"__proto__":{"title":"y"}}',
    );
    const cleaned = cleanForm(schema);
    expect(JSON.stringify(cleaned)).toBe(JSON.stringify(schema));
    expect(Object.getPrototypeOf(cleaned)).toBe(Object.prototype);
  });
});
