import { describe, expect, it } from "vitest";
import { plainPattern } from "./pattern.ts";

const words = (text: string) => text.split(" ");

describe("plain patterns", () => {
  it.each([
    ...[
      "",
      "^",
      "^$",
      "abc",
      "^a*$",
      "^a+$",
      "^a*?$",
      "^a{2,}",
      "a?",
      "a|b",
      "(a)",
      "(?:a)",
      "(a|b)c",
      "[a-z]{3}",
    ],
    ...words("\\p{L} \\P{L} \\u{61} \\u0061 \\x61 \\cA \\d \\b \\. [^\\]] [(*] ^[a]+$"),
    ...words("^a{100000}$ a{500} ^a*b{500}$ ^a{500,}$ a{125}|b{125} a{1,22} a?b{249} ^a?b{49999}"),
    ...["a{3,3}b{497}", "^a{1,2}?$"],
  ])("RE-32 leaves %s to the native engine", (source) => {
    expect(plainPattern(source)).toBeDefined();
  });

  it.each([
    ...words("a* a+ a{2,} ^a*b*$ ^a+b{2,} ^a|b* ^a*|b (a)* (a)? (?:a){2} (?=a) (?<n>a)"),
    ...words("\\1 \\k \\u \\p a{ ] *"),
    ...words("^a{100001}$ a{501} ^a*b{501}$ ^a{501,}$ a{125}|b{126} a{1,23} a?b{250} ^a?b{50000}"),
    ...["^a|b{501}", "(^a{501})"],
  ])("RE-32 does not leave %s to the native engine unseen", (source) => {
    expect(plainPattern(source)).toBeUndefined();
  });
});
