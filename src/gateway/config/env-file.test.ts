import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { parseEnvFile } from "./env-files.ts";

const read = (text: string) => Object.fromEntries(parseEnvFile(text));

describe("parseEnvFile", () => {
  it("reads names and values, with quotes, export, comments and either kind of line end", () => {
    const lines = [
      "\uFEFF# a comment = 1",
      "A=1",
      "  export B = two words  # and a comment",
      "C='single # ${A} \\n'",
      'D="double \\"quoted\\"\\nline \\x"  # comment',
      "E=`back 'tick'`",
      "F=",
      "G=#nothing",
      "H=a#b",
      "",
      "not a line",
      "1X=no",
      'I="two',
      'lines"',
      "A=last wins",
      "J=it's",
      "K=end",
    ];
    const expected = {
      A: "last wins",
      B: "two words",
      C: "single # ${A} \\n",
      D: 'double "quoted"\nline \\x',
      E: "back 'tick'",
      F: "",
      G: "",
      H: "a#b",
      I: "two\nlines",
      J: "it's",
      K: "end",
    };
    expect(read(lines.join("\n"))).toEqual(expected);
    expect(read(lines.join("\r\n"))).toEqual({ ...expected, I: "two\r\nlines" });
  });

  it("takes a quote that is never closed for part of the value", () => {
    expect(read("A='open\nB=2")).toEqual({ A: "'open", B: "2" });
  });

  it("keeps any value that stands in single quotes", () => {
    const value = fc.string().filter((text) => !text.includes("'"));
    fc.assert(
      fc.property(value, (text) => {
        expect(read(`X=1\nA='${text}'\nB=2`)).toEqual({ X: "1", A: text, B: "2" });
      }),
    );
  });

  it("takes time by the length of the text", () => {
    const start = cpuMs();
    parseEnvFile(`A="${"\\".repeat(300_000)}`);
    parseEnvFile(`${"A".repeat(300_000)}\n${" ".repeat(300_000)}`);
    parseEnvFile("A='\n".repeat(20_000));
    expect(cpuMs() - start).toBeLessThan(5_000);
  });
});
