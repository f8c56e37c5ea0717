import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { jsonFaultAt } from "./json-fault.ts";

describe("finding where JSON is broken", () => {
  it("RE-25 finds the place", () => {
    const cases: [string, number][] = [
      ['{"a": }', 6],
      ['{"a":1,}', 7],
      ["[1,]", 3],
      ["[1 2]", 3],
      ['{"a" 1}', 5],
      ["[01]", 2],
      ['["\\x"]', 1],
      ["{}{}", 2],
      ["[}", 1],
      ['{"a":', 5],
      ["{1:2}", 1],
    ];
    for (const [text, at] of cases) expect([text, jsonFaultAt(text)]).toEqual([text, at]);
  });

  it("RE-25 finds none where there is none, and never beyond a letter that was put in", () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(), (json, seed) => {
        expect(jsonFaultAt(json)).toBe(json.length);
        const at = seed % (json.length + 1);
        const broken = `${json.slice(0, at)}\u0001${json.slice(at)}`;
        expect(jsonFaultAt(broken)).toBeLessThanOrEqual(at);
      }),
    );
  });
});
