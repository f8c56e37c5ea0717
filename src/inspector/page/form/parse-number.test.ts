import { describe, expect, it } from "vitest";
import { parseNumber } from "./form-json.ts";

describe("parseNumber", () => {
  it.each([
    ["12", 12],
    ["-0.5", -0.5],
    [" 1e6 ", 1_000_000],
    [".5", 0.5],
    ["+3", 3],
    ["9007199254740991", 9_007_199_254_740_991],
    ["9007199254740992", 9_007_199_254_740_992],
    ["100000000000000000000", 1e20],
    ["0.000", 0],
    ["0e-999", 0],
  ])("reads %j", (text, value) => {
    expect(parseNumber(text)).toEqual({ value });
  });

  it("takes nothing for no number", () => {
    expect(parseNumber("  ")).toEqual({ value: undefined });
    expect(parseNumber("  ", true)).toHaveProperty("problem");
  });

  it.each(["a", "1,5", "0x10", "--1", "1e", "NaN", "Infinity", "1 2", "9".repeat(500)])(
    "refuses %j",
    (text) => {
      expect(parseNumber(text)).toHaveProperty("problem");
    },
  );

  it.each(["9007199254740993", "-12345678901234567890", "1e999", "-1e999", "1e-999"])(
    "refuses %j, which would be sent as another number",
    (text) => {
      expect(parseNumber(text)).toHaveProperty("problem");
    },
  );

  it("says what a number of too many digits would become", () => {
    expect(parseNumber("9007199254740993")).toEqual({ problem: expect.stringContaining("9007199254740992") });
  });
});
