import { describe, expect, it } from "vitest";
import { compileSchema } from "./compile-schema.ts";
import { splitLeadingLookAheads } from "./pattern.ts";

const check = (pattern: string, text: string) => compileSchema({ pattern }).check(text);

describe("look-aheads right at the start", () => {
  it.each([
    ["^(?=.*\\d)(?=.*[a-z]).{8,}$", ["abcdefg1"], ["abcdefgh", "1234567", "12345678", "abcdef1"]],
    ["^(?!x).*$", ["", "yx"], ["x", "xy"]],
    ["^(?!.*--)[a-z-]+$", ["a-b"], ["a--b", ""]],
    ["^(?=[)])\\)$", [")"], ["("]],
    ["^(?=\\))[)a]$", [")"], ["a"]],
    ["^(?=a(b))a", ["ab"], ["ac"]],
  ])("RE-32 runs %s", (pattern, good, bad) => {
    for (const text of good) expect(check(pattern, text)).toBe(true);
    for (const text of bad) expect(check(pattern, text)).toBe(false);
  });

  it.each([
    ["^(?=a)(?!b)c", ["^(?:a)", "!^(?:b)", "^c"]],
    ["^abc", ["^abc"]],
    ["^(?=[)\\]])\\(", ["^(?:[)\\]])", "^\\("]],
    ["^(?=a)", ["^(?:a)", "^"]],
    ["^(?=(?:a)(b))(?:c)(d|e)", ["^(?:(?:a)(b))", "^(?:c)(d|e)"]],
    ["^(?=a|b)[|]\\|", ["^(?:a|b)", "^[|]\\|"]],
    ...["^(?=a)b|c", "^a|b"].map((s) => [s, undefined]),
    ...["abc", "(?=a)b", "^(?=a", "^(?=a)*b", "^(?=a)+b", "^(?=a)?b", "^(?=a){2}b"].map((s) => [
      s,
      undefined,
    ]),
    ...["^a(?=b)", "^(?<=a)b", "^(?=(?!a))b", "^(?=a)\\1", "^(?=a)\\k<n>"].map((s) => [s, undefined]),
  ] as [string, string[] | undefined][])("RE-32 takes %s apart", (source, parts) => {
    const shown = splitLeadingLookAheads(source)?.map((part) => `${part.negated ? "!" : ""}${part.source}`);
    expect(shown).toEqual(parts);
  });
});
