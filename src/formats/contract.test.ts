import { describe, expect, it } from "vitest";
import { findContract, isJsonOf, readCarrier } from "./carrier.ts";

const text = (value: string) => ({ type: "text", text: value });
const found = (result: object, options = {}) => findContract(readCarrier(result), options);

describe("where an envelope may stand", () => {
  it("X-2 is structured content, or else the JSON of the first text", () => {
    expect(found({ content: [text("{}")], structuredContent: null })).toEqual({
      value: null,
      obtained: "structured-content",
    });
    expect(found({ content: [text('{"a":1}')] })).toEqual({ value: { a: 1 }, obtained: "contract-json" });
    expect(found({ content: [text("x"), text("{}")] })).toBeUndefined();
    expect(found({ content: [text(" {}")] })).toBeUndefined();
    expect(found({ content: [text("{")] })).toBeUndefined();
    expect(found({ content: [text("[]")] })).toBeUndefined();
    expect(found({ content: [] })).toBeUndefined();
  });

  it("X-2 is not looked for in text over the size cap, at one character over", () => {
    expect(found({ content: [text("{}")] }, { maxBytes: 2 })).toBeDefined();
    expect(found({ content: [text("{} ")] }, { maxBytes: 2 })).toBeUndefined();
  });
});

describe("the JSON of a value", () => {
  it("X-1 is its compact text and nothing else", () => {
    expect(isJsonOf(text('{"a":1}'), { a: 1 })).toBe(true);
    expect(isJsonOf(text('{"a": 1}'), { a: 1 })).toBe(false);
    expect(isJsonOf({ ...text('{"a":1}'), annotations: {} }, { a: 1 })).toBe(false);
    expect(isJsonOf({ type: "image" }, { a: 1 })).toBe(false);
    expect(isJsonOf(text("null"), { a: Number.NaN })).toBe(false);
  });
});
