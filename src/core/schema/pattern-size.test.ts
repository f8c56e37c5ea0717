import fc from "fast-check";
import { RE2JS } from "re2js";
import { afterEach, describe, expect, it, vi } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { runs } from "../../../test/runs.ts";
import { refusal } from "../../../test/schema-answers.ts";
import { compileSchema } from "./compile-schema.ts";
import { SCHEMA_LIMITS } from "./limits.ts";
import { patternSize, toRe2Syntax } from "./pattern.ts";

afterEach(() => void vi.restoreAllMocks());

describe("patternSize", () => {
  it.each([
    ["^abc$", 5],
    ["^[a-z]{1,1000}$", 1_017],
    [`^${"a".repeat(31)}`, 6],
    ["^\\p{L}\\s$", 113],
    ["a*b*", 14],
    ["a*(b*)", 16],
    ["^(ab){3}$", 24],
    ["(?:(a){2}){10}", 90],
    ["(a){0}", 13],
    ["(a){5,}", 25],
    ["(a){2,1000}", 3_010],
    ["(a){2,1001}", 21],
    ["[a-z]+[a-z]+", 24],
    [".*.*", 20],
    ["\\p{L}+\\P{L}+[\\p{L}\\S]+", 333],
    ["^(?=a)(?!b)c+", 39],
    ["[[[", 13],
    ["((a*b*", 14],
  ])("RE-32 takes %s for %i", (source, size) => {
    expect(patternSize(source)).toBe(size);
  });

  it("RE-32 is never far below the instructions of a pattern", () => {
    const atom = fc.constantFrom("a", "[a-z]", "\\d", ".", "\\p{L}");
    const times = fc.constantFrom("", "*", "+", "?", "{2}", "{0,9}", "{3,}", "{1,30}");
    const { pattern } = fc.letrec<{ pattern: string; part: string }>((tie) => ({
      pattern: fc.array(tie("part"), { minLength: 1, maxLength: 4 }).map((parts) => parts.join("")),
      part: fc.oneof(
        { maxDepth: 2 },
        fc.tuple(atom, times).map(([text, count]) => text + count),
        fc.tuple(tie("pattern"), times).map(([text, count]) => `(${text}|x)${count}`),
      ),
    }));
    fc.assert(
      fc.property(pattern, (source) => {
        const program = instructions(`${source}y*z*`);
        if (program !== undefined) expect(patternSize(`${source}y*z*`) * 4).toBeGreaterThan(program);
      }),
      runs(300),
    );
  });

  it.each(["[", "\\p{", "(?=", "{1", "(", "\\"])("RE-32 reads many %s in linear time", (part) => {
    const start = cpuMs();
    patternSize(part.repeat(500_000));
    expect(cpuMs() - start).toBeLessThan(2_000);
  });
});

describe("patternSize of a schema", () => {
  const NAMED = /larger than \d+ \(patternSize\)/;
  const both = { properties: { a: { pattern: "(a){10}b*" } }, patternProperties: { "(c){20}d*": {} } };
  const size = patternSize("(a){10}b*") + patternSize("(c){20}d*");

  it("RE-32 holds the patterns of a schema to patternSize exactly", () => {
    expect(compileSchema(both, { limits: { patternSize: size } }).check({ a: "aaaaaaaaaa" })).toBe(true);
    expect(refusal(both, { limits: { patternSize: size - 1 } })).toMatchObject({
      message: expect.stringMatching(NAMED),
      pointer: expect.stringMatching(/pattern/),
    });
  });

  it("RE-32 counts a pattern once, however often it is used, and those of other documents too", () => {
    const again = { allOf: [both, both, { ...both }] };
    expect(compileSchema(again, { limits: { patternSize: size } }).check(1)).toBe(true);
    const documents = { "https://x.example/a": { pattern: "(e){3}f*" } };
    const more = { allOf: [both, { $ref: "https://x.example/a" }] };
    const limits = { patternSize: size + patternSize("(e){3}f*") };
    expect(compileSchema(more, { documents, limits }).check(1)).toBe(true);
    limits.patternSize--;
    expect(refusal(more, { documents, limits }).message).toMatch(NAMED);
  });

  it("RE-32 takes what schemas usually say", () => {
    const repeats = Array.from({ length: 12 }, (_, i) => ({ pattern: `^([a-z]{1,255}|[0-9]{0,1000})${i}$` }));
    expect(compileSchema({ anyOf: repeats }).check("x1")).toBe(true);
  });

  it("RE-32 refuses thousands of counted repetitions before it compiles the first", () => {
    const allOf = Array.from({ length: 5_000 }, (_, i) => ({ pattern: `^[a-z]{1,1000}x*${i}y*` }));
    const compiled = vi.spyOn(RE2JS, "compile");
    const start = cpuMs();
    expect(refusal({ allOf }).message).toContain(`larger than ${SCHEMA_LIMITS.patternSize} (patternSize)`);
    expect(cpuMs() - start).toBeLessThan(2_000);
    expect(compiled).not.toHaveBeenCalled();
  });

  it("RE-32 compiles each pattern of a schema once, however many there are", () => {
    const patterns = Array.from({ length: 2_100 }, (_, i) => ({ pattern: `^(once+)+${i}` }));
    const allOf = Array.from({ length: 4 }, () => ({ allOf: patterns.map((schema) => ({ ...schema })) }));
    const limits = { patternSize: Number.POSITIVE_INFINITY };
    const compiled = vi.spyOn(RE2JS, "compile");
    compileSchema({ allOf }, { limits });
    expect(compiled).toHaveBeenCalledTimes(2_100);
    expect(new Set(compiled.mock.calls.map(([source]) => source)).size).toBe(2_100);
  });
});

function instructions(source: string): number | undefined {
  try {
    return RE2JS.compile(toRe2Syntax(source) ?? "(").programSize();
  } catch {
    return undefined;
  }
}
