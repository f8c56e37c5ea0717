import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { escapeReferences, parseReferences } from "./resolve-config.ts";

describe("parseReferences", () => {
  it.each([
    ["plain", [{ text: "plain" }]],
    ["", [{ text: "" }]],
    ["${A}", [{ env: "A" }]],
    ["${env:A_1}", [{ env: "A_1" }]],
    ["${A:-b c}", [{ env: "A", orElse: "b c" }]],
    ["${env:A:-}", [{ env: "A", orElse: "" }]],
    ["${file:/run/secrets/x}", [{ file: "/run/secrets/x" }]],
    ["Bearer ${A}!", [{ text: "Bearer " }, { env: "A" }, { text: "!" }]],
    ["${A}${B}", [{ env: "A" }, { env: "B" }]],
    ["$${A}", [{ text: "${A}" }]],
    ["$$${A}", [{ text: "$${A}" }]],
    ["${A}$${B}", [{ env: "A" }, { text: "${B}" }]],
    ["$A and $", [{ text: "$A and $" }]],
    ["${ProgramFiles(x86)}", [{ env: "ProgramFiles(x86)" }]],
  ])("takes %j apart", (text, parts) => {
    expect(parseReferences(text)).toEqual(parts);
  });

  it.each([
    ["${", "not closed"],
    ["a ${A", "not closed"],
    ["${}", "not known"],
    ["${input:token}", "not known"],
    ["${file:}", "not known"],
    ["${A-b}", "not known"],
    ["${1}", "not known"],
    ["${A:-${B}}", "within a reference"],
  ])("refuses %j: %s", (text, message) => {
    expect(() => parseReferences(text)).toThrow(message);
  });

  it("leaves any text without a reference as it is", () => {
    const text = fc
      .string({ unit: fc.constantFrom("$", "{", "}", "a", ":", "-") })
      .filter((all) => !all.includes("${"));
    fc.assert(
      fc.property(text, (all) => {
        expect(parseReferences(all)).toEqual([{ text: all }]);
      }),
    );
  });

  it("reads any text back that was escaped", () => {
    const text = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom("$", "{", "}", "a") }));
    fc.assert(
      fc.property(text, (all) => {
        expect(parseReferences(escapeReferences(all))).toEqual([{ text: all }]);
      }),
    );
  });
});
