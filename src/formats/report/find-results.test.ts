import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/arbitrary-schema.ts";
import { envelope, STATUS, TIERED, text } from "../../../test/sample-results.ts";
import { isFormatError } from "../format-error.ts";
import { describeResult, type ResultReport } from "./describe-result.ts";
import { findResults } from "./find-results.ts";
import { ResultTextError } from "./result-text-error.ts";

const WHAT = "The text";
const json = (value: unknown): string => JSON.stringify(value);
const ENVELOPE = envelope({ hits: 2 });
const BLOCK = (ENVELOPE.content[1] as { text: string }).text;

function reportsOf(given: string): readonly ResultReport[] {
  return findResults(given, WHAT).map((found) => describeResult(found, WHAT, { losses: true }));
}

describe("results found in a text", () => {
  it.each([
    ["a tool result", json(ENVELOPE), "tool-envelope", "none"],
    ["a file that begins with a mark", `\uFEFF${json(ENVELOPE)}`, "tool-envelope", "none"],
    ["a JSON-RPC response", json({ jsonrpc: "2.0", id: 1, result: ENVELOPE }), "tool-envelope", "json-rpc"],
    ["an envelope block", BLOCK, "tool-envelope", "envelope-line"],
    ["a tiered envelope", json(TIERED), "tiered-envelope", "bare-envelope"],
    ["a status envelope", json(STATUS), "status-envelope", "bare-envelope"],
    ["content blocks", json([text("a"), text("b")]), "mcp", "content-list"],
  ])("are told by format and wrapping: %s", (_, given, format, wrapping) => {
    expect(reportsOf(given)).toMatchObject([{ format, wrapping, losses: expect.any(Object) }]);
  });

  it("stand in lines that are counted, or in a list", () => {
    expect(reportsOf(`${json(ENVELOPE)}\n\n${json(STATUS)}`).map(({ line }) => line)).toEqual([1, 3]);
    expect(reportsOf(json([ENVELOPE, STATUS]))).toHaveLength(2);
  });

  it.each([
    ["nothing", " ", "The text is empty; a tool result is wanted."],
    ["broken JSON", '{\n  "content": [}', "The text is not JSON: line 2, column 15"],
    ["HTML", "<!doctype html>", "The text is not JSON: it looks like HTML or XML."],
    ["other data", '{"hits":2}', "an object with hits"],
    ["the name of a prototype", '{"__proto__":{"content":[]}}', "an object with __proto__"],
    ["an unknown envelope", '{"data":1,"meta":{}}', "of no known format"],
  ])("are missed with one sentence in %s", (_, given, message) => {
    const thrown = thrownBy(() => reportsOf(given));
    expect(thrown).toBeInstanceOf(ResultTextError);
    expect((thrown as Error).message).toContain(message);
  });

  it("are reports or a ResultTextError, whatever the text", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: "binary" }), fc.json()), (given) => {
        const thrown = thrownBy(() => reportsOf(given));
        expect(thrown === undefined || thrown instanceof ResultTextError).toBe(true);
      }),
      runs(200),
    );
  });

  it("keep the error of the format as the cause", () => {
    const thrown = thrownBy(() => describeResult({ value: 1, wrapping: "none" }, WHAT, {}));
    expect(thrown).toBeInstanceOf(ResultTextError);
    expect(isFormatError((thrown as Error).cause)).toBe(true);
  });
});

function thrownBy(run: () => unknown): unknown {
  try {
    run();
    return undefined;
  } catch (thrown) {
    return thrown;
  }
}
