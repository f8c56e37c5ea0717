import { describe, expect, it } from "vitest";
import { text } from "../../test/sample-results.ts";
import { Type } from "../index.ts";
import { type DecodeOptions, decodeToolResult } from "./index.ts";

describe("JSON in text", () => {
  const decode = (value: string, options: DecodeOptions) => {
    const { data, obtained } = decodeToolResult({ content: [text(value)] }, options);
    return obtained === "text-json" ? { data } : obtained;
  };

  it("X-2 is data when the caller asks for it, and marked as recovered", () => {
    expect(decode('{"a":1}', { recoverJson: true })).toEqual({ data: { a: 1 } });
    expect(decode("[1]", { recoverJson: true })).toEqual({ data: [1] });
    expect(decode('{"a":1}', {})).toBe("content");
    expect(decode("{a:1}", { recoverJson: true })).toBe("content");
  });

  it.each(["42", "true", "null", '"x"'])(
    "X-2 leaves the scalar %s alone unless a schema wants it",
    (value) => {
      expect(decode(value, { recoverJson: true })).toBe("content");
    },
  );

  it("X-2 follows a schema", () => {
    expect(decode("42", { schema: Type.Number() })).toEqual({ data: 42 });
    expect(decode("42", { schema: Type.String() })).toBe("content");
    expect(decode("42", { schema: Type.Union([Type.String(), Type.Number()]) })).toBe("content");
    expect(decode('{"a":1}', { schema: Type.Object({ a: Type.Number() }) })).toEqual({ data: { a: 1 } });
    expect(decode('{"a":"1"}', { schema: Type.Object({ a: Type.Number() }) })).toBe("content");
  });

  it("X-2 never looks at text beside structured content, nor at several blocks", () => {
    const options = { recoverJson: true };
    expect(
      decodeToolResult({ content: [text('{"a":1}')], structuredContent: { b: 2 } }, options).data,
    ).toEqual({ b: 2 });
    expect(decodeToolResult({ content: [text('{"a":1}'), text("x")] }, options).obtained).toBe("content");
  });
});
