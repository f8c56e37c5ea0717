import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countValues } from "./decode/decode-results.ts";
import { countJsonValues } from "./read-posted.ts";

/** As above, without what is in texts. */
const withoutTexts = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_, member: unknown) => (typeof member === "string" ? "x" : member)));

describe("counting the values of JSON text", () => {
  it.each([
    ["1", 1],
    [' "a,[{\\",[" ', 1],
    ["[]", 1],
    [" { } ", 1],
    ["[[],{}]", 3],
    ['{"a":[1,null],"b":"x"}', 5],
    ['{"a,":"\\\\","b":[ [ ] ]}', 4],
  ])("finds those of %s", (text, count) => {
    expect(countJsonValues(text, 100)).toBe(count);
  });

  it("finds as many as reading it does", () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom(undefined, 2), (json, space) => {
        const value: unknown = JSON.parse(json);
        const text = JSON.stringify(value, undefined, space);
        expect(countJsonValues(text, 10_000)).toBe(countValues(withoutTexts(value), 10_000));
      }),
    );
  });

  it("stops beyond what is allowed, and at the end of what is no JSON", () => {
    expect(countJsonValues(`[${"0,".repeat(8)}0]`, 10)).toBe(10);
    expect(countJsonValues(`[${"0,".repeat(1_000)}0]`, 10)).toBe(11);
    expect(countJsonValues('["a\\', 10)).toBe(2);
    expect(countJsonValues("", 10)).toBe(1);
  });
});
