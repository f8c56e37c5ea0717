import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../../test/cpu-ms.ts";
import { runs } from "../../../../test/runs.ts";
import { parseJson } from "./form-json.ts";

function faultOf(text: string): string | undefined {
  const parsed = parseJson(text);
  return "problem" in parsed ? parsed.problem : undefined;
}

describe("parseJson", () => {
  it.each([
    ['{\n  "a": 1,\n  b: 2\n}', "line 3, column 3: "],
    ['{"a" 1}', "line 1, column 6: "],
    ['{"a": 1 "b": 2}', "line 1, column 9: "],
    ["[1, 2", "line 1, column 6: "],
    ["[1, ]", "line 1, column 5: Unexpected token ']'"],
    ['{"a": 1,}', "line 1, column 9: "],
    ["'a'", "line 1, column 1: "],
    ['"a\nb"', "line 1, column 3: "],
    ["1 2", "line 1, column 3: "],
    ["nul", "line 1, column 4: Unexpected end"],
    ['{ "to": \n  nothing }', "line 2, column 3: Unexpected token 'o'"],
    [`[\n\n{"long": "${"x".repeat(100)}", "a": nothing}]`, "line 3, column 119: "],
  ])("tells where %j is wrong", (text, fault) => {
    expect(faultOf(text)).toContain(fault);
  });

  it("finds a fault exactly where the browser finds one", () => {
    const piece = fc.constantFrom(
      ...'{}[],:"\\ \n019.-+eEtrufalsn/bx'.split(""),
      "true",
      "null",
      '"a"',
      "\\u00e4",
      "\u0001",
    );
    const texts = fc.oneof(
      fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join("")),
      fc.json().chain((json) => fc.nat(json.length).map((at) => json.slice(0, at) + json.slice(at + 1))),
    );
    fc.assert(
      fc.property(texts, (text) => {
        if (text.trim() === "") return;
        let value: unknown;
        try {
          value = JSON.parse(text);
        } catch {
          expect(faultOf(text)).toBeDefined();
          return;
        }
        const parsed = parseJson(text);
        if ("value" in parsed) expect(parsed.value).toEqual(value);
        else expect(parsed.problem).toMatch(/: This number/);
      }),
      runs(2_000),
    );
  });

  it("refuses numbers that would change, but not digits in texts", () => {
    expect(faultOf('{"id": 12345678901234567890}')).toMatch(
      /^line 1, column 8: This number would be sent as/,
    );
    expect(faultOf("[1e999]")).toMatch(/sent as Infinity/);
    expect(faultOf('{"id": "12345678901234567890", "pi": 3.14159265358979323846}')).toBeUndefined();
  });

  it("takes nothing for no value, and __proto__ for a name", () => {
    expect(parseJson(" \n")).toEqual({ value: undefined });
    const parsed = parseJson('{"__proto__": {"x": 1}}');
    expect("value" in parsed && Object.keys(parsed.value as object)).toEqual(["__proto__"]);
  });

  it("is quick with long and deep texts", () => {
    const start = cpuMs();
    expect(faultOf(JSON.stringify({ file: "A".repeat(10_000_000) }))).toBeUndefined();
    expect(faultOf("[".repeat(200_000))).toBeDefined();
    expect(cpuMs() - start).toBeLessThan(3_000);
  });
});
