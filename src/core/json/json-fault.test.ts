import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.ts";
import { describeJsonFault, findJsonFault } from "./json-fault.ts";
import { type JsonTextError, parseJsonText } from "./json-value.ts";

/** Says what is wrong with a text that is refused. */
function faultOf(text: string): string {
  try {
    parseJsonText(text);
  } catch (error) {
    return describeJsonFault(text, error as JsonTextError);
  }
  throw new Error("It is taken.");
}

describe("finding where JSON goes wrong", () => {
  it.each([
    ["", 0],
    ["tru", 0],
    ['{"a": tru}', 6],
    ['{"a":1,}', 7],
    ["[1,]", 3],
    ["[1 2]", 3],
    ['{"a" 1}', 5],
    ["{a:1}", 1],
    ['"\n"', 1],
    ['"\\x"', 1],
    ['"open', 5],
    ["[1, 2", 5],
    ["01", 1],
    ["{} x", 3],
    ["[}", 1],
    ["{}{}", 2],
    ['{"a":', 5],
    ["{1:2}", 1],
  ])("RE-30 finds it in %j at %i", (text, position) => {
    expect(() => JSON.parse(text)).toThrow();
    expect(findJsonFault(text)).toBe(position);
  });

  it.each([
    ["", "it is empty."],
    ["[1, 2", "it ends too early."],
    ["[1,\n 2 x]", 'line 2, column 4 has "x]", which cannot stand there.'],
    ["[1e999]", "The JSON holds a number beyond the range of doubles."],
    [
      `${"[".repeat(600)}${"]".repeat(600)}`,
      expect.stringMatching(/^The JSON is nested more than \d+ levels deep\.$/),
    ],
  ])("RE-30 says of %j what is wrong with it", (text, fault) => {
    expect(faultOf(text)).toEqual(fault);
  });

  it("RE-30 finds nothing wrong with JSON, and no fault later than the first sign that is none", () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(), (text, seed) => {
        expect(findJsonFault(text)).toBe(text.length);
        const at = seed % (text.length + 1);
        expect(findJsonFault(`${text.slice(0, at)}\u0001${text.slice(at)}`)).toBeLessThanOrEqual(at);
      }),
    );
  });

  it("RE-30 calls right whatever the language does", () => {
    const signs = fc.constantFrom(
      "[",
      "]",
      "{",
      "}",
      ",",
      ":",
      '"',
      "a",
      "\\",
      "1",
      "-",
      ".",
      "e",
      " ",
      "null",
    );
    fc.assert(
      fc.property(fc.array(signs, { maxLength: 12 }), (list) => {
        const text = list.join("");
        let isJson = true;
        try {
          JSON.parse(text);
        } catch {
          isJson = false;
        }
        if (isJson) expect(findJsonFault(text)).toBe(text.length);
        else expect(findJsonFault(text)).toBeLessThanOrEqual(text.length);
      }),
      runs(2_000),
    );
  });

  it("RE-30 takes time in proportion to the text", () => {
    expect(findJsonFault(`"${"x".repeat(4_000_000)}`)).toBe(4_000_001);
    expect(findJsonFault("[".repeat(1_000_000))).toBe(1_000_000);
  });
});
