import { describe, expect, it } from "vitest";
import { compileSchema } from "./compile-schema.ts";
import { plainPattern, toRe2Syntax } from "./pattern.ts";

const check = (pattern: string, text: string) => compileSchema({ pattern }).check(text);

describe("RE2 in place of RegExp", () => {
  const texts = [
    ...[
      "",
      "a",
      "A",
      "b",
      "_",
      "7",
      "٣",
      "é",
      "ß",
      "Ω",
      "漢",
      "😀",
      "-",
      "[",
      "]",
      "^",
      ":",
      ".",
      "/",
      "\\",
      "$",
      "\0",
    ],
    ...[
      "\t",
      "\n",
      "\v",
      "\f",
      "\r",
      " ",
      "\b",
      "\x01",
      "\x85",
      "\u00a0",
      "\u1680",
      "\u180e",
      "\u2000",
      "\u200a",
    ],
    ...[
      "\u200b",
      "\u2028",
      "\u2029",
      "\u202f",
      "\u205f",
      "\u3000",
      "\ufeff",
      "ab",
      "a b",
      "a\nb",
      "😀😀",
      "aé",
      "(a)",
    ],
  ];
  const patterns = [
    ...[
      ".",
      "\\s",
      "\\S",
      "\\d",
      "\\D",
      "\\w",
      "\\W",
      "a\\b",
      "\\ba",
      "\\b.",
      "a\\Bb",
      "[\\s]",
      "[^\\s]",
      "[\\d_]",
    ],
    ...[
      "[^\\d]",
      "[\\w-]",
      "[^\\W]",
      "[^a]",
      "[.]",
      "[\\b]",
      "[[:alpha:]",
      "[\\]^]",
      "[^^]",
      "[a-z[]",
      "\\t",
      "\\n",
    ],
    ...[
      "\\v",
      "\\f",
      "\\r",
      "\\0",
      "\\cA",
      "\\ca",
      "\\x61",
      "\\u0061",
      "\\u{61}",
      "\\u{1f600}",
      "\\u2028",
      "😀",
    ],
    ...[
      "[😀]",
      "[^😀]",
      "[\\u{1f600}-\\u{1f64f}]",
      "\\p{L}",
      "\\P{L}",
      "\\p{Lu}",
      "[\\p{L}\\d]",
      "[^\\p{L}]",
      "\\.",
    ],
    ...[
      "\\/",
      "\\\\",
      "\\[",
      "\\]",
      "\\^",
      "\\$",
      "\\(a\\)",
      "a|b",
      "(a)",
      "(?:a)",
      "[\\-a]",
      "a??",
      "a{1,2}?",
    ],
  ];

  it.each(patterns)("RE-32 reads (?:%s)+ as RegExp does in Unicode mode", (part) => {
    for (const pattern of [`^(?:${part})+$`, `(?:${part})+`]) {
      expect(plainPattern(pattern)).toBeUndefined();
      expect(toRe2Syntax(pattern)).toBeTypeOf("string");
      const wanted = texts.filter((text) => new RegExp(pattern, "u").test(text));
      expect(texts.filter((text) => check(pattern, text))).toEqual(wanted);
    }
  });

  it.each([
    ...["[]", "[^]", "(?=a)", "(?!a)", "(?<=a)", "\\1", "\\k<n>", "\\ud83d", "\\udfff", "\\u{d800}", "[\\B]"],
    ...["\\", "\\q", "\\p"],
  ])("RE-32 does not write %s for RE2", (source) => {
    expect(toRe2Syntax(source)).toBeUndefined();
  });

  it("RE-32 keeps the code units next to surrogates", () => {
    expect(toRe2Syntax("\\ud7ff\\ue000\\xe9\\u{1f600}")).toBe("\\x{d7ff}\\x{e000}\\x{e9}\\x{1f600}");
  });
});

it.each([
  ["(?<year>\\d+)-(?<month>\\d+)+", "2026-11", "2026/11"],
  ["^([\\s\\S]+\\n)+$", "a\u00a0b\n", "a"],
  ["^([\\S]+b)+$", "aab", "a b"],
])("RE-32 runs %s on the linear engine", (pattern, yes, no) => {
  const schema = compileSchema({ pattern });
  expect([schema.check(yes), schema.check(no)]).toEqual([true, false]);
});
