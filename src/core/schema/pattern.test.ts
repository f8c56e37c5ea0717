import { RE2JS } from "re2js";
import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { compileSchema } from "./compile-schema.ts";
import { MAX_PATTERN_WORK, SCHEMA_LIMITS } from "./limits.ts";
import { compilePattern, withoutNeedlessEscapes } from "./pattern.ts";
import { SchemaError } from "./schema-issue.ts";

const LONG = "a".repeat(50_000);
const TOO_LONG_TEXT = "texts short enough for the patterns they have to match";
const check = (pattern: string, text: string) => compileSchema({ pattern }).check(text);

function refusal(pattern: string): SchemaError {
  try {
    compileSchema({ properties: { a: { pattern } } });
  } catch (error) {
    if (error instanceof SchemaError) return error;
    throw error;
  }
  throw new Error(`${pattern} was accepted`);
}

const words = (text: string) => text.split(" ");

describe("which engine runs a pattern", () => {
  it.each([
    ["^(a+)+$", `${LONG}!`, false],
    ["^(a|aa)+$", `${LONG}!`, false],
    ["(a|a)*b", LONG, false],
    ["(.*)*x", LONG, false],
    ["a+b", LONG, false],
    ["a*a*a*b", LONG, false],
    ["^a*a*b", LONG, false],
    ["^(?:[a-z]+\\.)*[a-z]+$", `${LONG}.`, false],
    ["\\s+$", `${" ".repeat(50_000)}x`, false],
    ["^(a+)+$", LONG, true],
    ["^a*$", LONG, true],
    ["^(?=.*\\d)(?=.*[a-z]).{8,}$", LONG, false],
    ["^(?=(a+)+$)a", `${LONG}!`, false],
    ["^(?!(a|a)*$)b", `${LONG}!`, false],
    ["^(?=a)(a+)+$", `${LONG}!`, false],
  ])("RE-32 answers %s on 50,000 characters in bounded time", (pattern, text, expected) => {
    const compiled = compileSchema({ pattern });
    const start = cpuMs();
    expect(compiled.check(text)).toBe(expected);
    expect(cpuMs() - start).toBeLessThan(2_000);
  });

  it.each(["a{4000}b", "a{50000}b", "[ab]{30000}c"])(
    "RE-32 refuses %s, which costs its length at every character and which RE2 cannot hold",
    (pattern) => {
      expect(refusal(pattern).message).toContain("can take exponential time");
    },
  );

  it("RE-32 writes out counted repetitions up to 10,000 and no more", () => {
    const counted = (count: number) => `(?:${"(?:x{0,1000})?y".repeat(9)}z{${count - 9_000}})+`;
    expect(compileSchema({ pattern: counted(10_000) }).check("z")).toBe(false);
    expect(refusal(counted(10_001)).message).toContain("can take exponential time");
  });

  it.each([
    ["100 nested repetitions", "(?:[^x]{1,99})+".repeat(100)],
    ["500 repeated alternatives", `${"(a|aa)+".repeat(500)}$`],
    ["a fan of optional letters", "(a?){30}a{30}"],
  ])("RE-32 refuses a long text for a large program: %s", (_, pattern) => {
    const compiled = compileSchema({ pattern });
    const start = cpuMs();
    expect(compiled.check(LONG)).toBe(false);
    expect(compiled.errors(LONG)).toEqual([
      { pointer: "", expected: TOO_LONG_TEXT, found: "string of 50000 characters" },
    ]);
    expect(cpuMs() - start).toBeLessThan(2_000);
  });

  it("RE-32 tries a text up to the work allowed for its pattern, and none beyond", () => {
    const pattern = "^(?:a|aa){1,99}";
    const length = Math.floor(MAX_PATTERN_WORK / RE2JS.compile(pattern).programSize());
    expect(check(pattern, "a".repeat(length))).toBe(true);
    expect(compileSchema({ pattern }).errors("a".repeat(length + 1))[0]?.expected).toBe(TOO_LONG_TEXT);
  });

  it("RE-32 accepts a pattern of the longest length, and none longer", () => {
    const longest = SCHEMA_LIMITS.patternLength;
    expect(check("a".repeat(longest), "a")).toBe(false);
    expect(refusal("a".repeat(longest + 1))).toMatchObject({
      message: "The pattern is longer than 4096 characters. (at /properties/a/pattern of the schema)",
      pointer: "/properties/a/pattern",
    });
    const limits = { patternLength: 3 };
    expect(compileSchema({ pattern: "abc" }, { limits }).check("xabc")).toBe(true);
    expect(() => compileSchema({ patternProperties: { abcd: true } }, { limits })).toThrow(
      "longer than 3 characters. (at /patternProperties of the schema)",
    );
  });

  it("RE-32 holds a pattern seen before to the limits of each schema", () => {
    compileSchema({ pattern: "seen-before" });
    expect(() => compileSchema({ pattern: "seen-before" }, { limits: { patternLength: 10 } })).toThrow(
      "longer",
    );
  });

  it("RE-32 remembers patterns, and goes on when there are more than it remembers", () => {
    const compile = (source: string) => compilePattern(source, "", SCHEMA_LIMITS);
    const first = compile("^first$");
    expect(compile("^first$")).toBe(first);
    for (let i = 0; i <= 2_000; i++) expect(compile(`^n${i}$`).test(`n${i}`)).toBe(true);
    expect(compile("^n2000$")).toBe(compile("^n2000$"));
    expect(compile("^first$")).not.toBe(first);
    expect(compile("^first$").source).toBe("^first$");
  });

  it("RE-32 forgets patterns earlier where they are large", () => {
    const compile = (source: string) => compilePattern(source, "", SCHEMA_LIMITS);
    const large = (i: number) => `^(?:large){1,1000}x*${i}`;
    const first = compile("^before the large$");
    for (let i = 0; i < 10; i++) compile(large(i));
    expect(compile("^before the large$")).toBe(first);
    expect(compile(large(9))).toBe(compile(large(9)));
    for (let i = 10; i < 40; i++) compile(large(i));
    expect(compile("^before the large$")).not.toBe(first);
  });
});

describe("patterns that are refused", () => {
  it.each(["(", "[a", "a**", "\\"])("RE-32 says that %s is not a regular expression", (pattern) => {
    expect(refusal(pattern)).toMatchObject({
      message: `"${pattern}" is not a regular expression. (at /properties/a/pattern of the schema)`,
      pointer: "/properties/a/pattern",
    });
  });

  it.each([
    ...["(a+)+(?=c)", "^(a+)+(?=c)", "(a+)+(?<=c)", "(a+)+\\b(?=c)", "(a{1,20}){1,20}(?=c)"],
    ...["(?=a)a*(?=c)", "[\\S]*(?=c)", "^(?=a)b|(c+)+"],
    ...words("^(?=a)+b ^(?=a){2}a ^a(?=b)b a(?!b) (?=a)a ^(?<=a)b ^(?=a(?=b))ab"),
    ...["^(a)\\1$", "^(?<n>a)\\k<n>$", "(a+)+\\1"],
  ])("RE-32 refuses %s, which no engine can bound", (pattern) => {
    const { message, pointer } = refusal(pattern);
    expect(message).toContain(`The pattern "${pattern}" can take exponential time, and no linear engine`);
    expect(message).toContain("write it without back-references, counts above 1,000, and look-around");
    expect(pointer).toBe("/properties/a/pattern");
    expect(refusal(pattern).message).toBe(message);
  });
});

describe("older patterns", () => {
  it.each([
    ["\\@\\-\\#", "@-#"],
    ["[\\@\\-]\\-", "[@\\-]-"],
    ["[a\\]\\-]\\-", "[a\\]\\-]-"],
    ["\\.\\*\\+\\?\\(\\)\\[\\]\\{\\}\\|\\/\\^\\$\\\\", "\\.\\*\\+\\?\\(\\)\\[\\]\\{\\}\\|\\/\\^\\$\\\\"],
    ["\\d\\_\\ \\1", "\\d\\_\\ \\1"],
    ["a\\", "a\\"],
  ])("RE-32 drops the backslashes of %s that say nothing", (source, plain) => {
    expect(withoutNeedlessEscapes(source)).toBe(plain);
  });

  it.each([
    ["^\\p{L}\\-$", "é-", "p{L}-"],
    ["^(\\p{L}\\-)+$", "é-é-", "p{L}-"],
    ["^\\u{61}\\-$", "a-", "u-"],
    ["^😀{2}\\-$", "😀😀-", "😀-"],
    ["^.\\-$", "😀-", "ab-"],
    ["^[\\w\\.\\-]+\\@[\\w\\.\\-]+$", "a.b-c@d.e", "a@b@c"],
  ])("RE-32 keeps the meaning of %s whichever engine runs it", (pattern, good, bad) => {
    expect(check(pattern, good)).toBe(true);
    expect(check(pattern, bad)).toBe(false);
  });

  it("RE-32 reads what Unicode mode cannot as older engines did, if that is bounded", () => {
    expect(check("^\\_$", "_")).toBe(true);
    expect(["\0", "-", "9", ":"].map((text) => check("^[\\00-9]$", text))).toEqual([true, true, true, false]);
    expect(refusal("^(\\_+)+$").message).toContain("can take exponential time");
  });
});
