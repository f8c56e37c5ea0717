import { inspect } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CARRIERS } from "../../../test/arbitrary-result.ts";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { seededRuns } from "../../../test/runs.ts";
import { text } from "../../../test/sample-results.ts";
import { FORMAT_NAMES } from "../../core/result/tool-result.ts";
import { isFormatError } from "../format-error.ts";
import { transcode } from "../transcode.ts";
import { findContradiction } from "./describe-result.ts";

const json = (value: unknown) => text(JSON.stringify(value));
const messageOf = (value: unknown): string | undefined => findContradiction(value)?.message;

describe("text that contradicts structured content", () => {
  it.each([
    ["a member", { a: 1, b: 2 }, { a: 1, b: 3 }, "/b"],
    ["a member that is missing", { a: 1, b: 2 }, { a: 1 }, "/b"],
    ["a member too many", { a: 1 }, { a: 1, b: 3 }, "/b"],
    ["what is deeper", { a: [{ b: 1 }, { b: 2 }] }, { a: [{ b: 1 }, { b: 3 }] }, "/a/1/b"],
    ["an item that is missing", { a: [1, 2] }, { a: [1] }, "/a/1"],
    ["an item too many", [1], [1, 2], "/1"],
    ["a kind", { a: [] }, { a: {} }, "/a"],
    ["a key that is escaped", { "a/b~": 1 }, { "a/b~": 2 }, "/a~1b~0"],
    ["a wrapped list", { result: [1, 2] }, [1, 3], "/result/1"],
    ["the name of a prototype", { constructor: 1 }, {}, "/constructor"],
  ])("is told by the first pointer: %s", (_, structured, said, pointer) => {
    expect(
      findContradiction({ content: [text("Done."), json(said)], structuredContent: structured }),
    ).toEqual({
      code: "text_contradicts_data",
      message: `Text block 2 is JSON that differs from the structured content, first at ${pointer}.`,
    });
  });

  it("is told beside a text that says the same", () => {
    const content = [json({ a: 1 }), json({ a: 2 })];
    expect(messageOf({ content, structuredContent: { a: 1 } })).toMatch(/^Text block 2 .* \/a\.$/);
  });

  it("is told of the whole, of words and numbers beside their like, and in our own envelopes", () => {
    expect(messageOf({ content: [json([1])], structuredContent: { a: 1 } })).toMatch(/, as a whole\.$/);
    expect(messageOf({ content: [json(6)], structuredContent: 5 })).toMatch(/as a whole/);
    const meta = { source: "mcp", isError: false, content: [json({ a: 1 })], structuredContent: { a: 2 } };
    expect(messageOf({ data: { a: 2 }, meta })).toMatch(/first at \/a\.$/);
  });

  it.each([
    ["the same in another order", { a: 1, b: 2 }, [json({ b: 2, a: 1 })]],
    ["text for people", { a: 1 }, [text("There is one."), text("[see above]"), text("{")]],
    ["a number beside an object", { count: 3 }, [text("3")]],
    ["what is wrapped, alone", { result: [1, 2] }, [json([1, 2])]],
    [
      "what is wrapped, one block for each",
      { result: [{ a: 1 }, { a: 2 }] },
      [json({ a: 1 }), json({ a: 2 })],
    ],
    ["the data of an envelope", { meta: {}, data: { a: 1 } }, [json({ a: 1 })]],
    ["an envelope around it", { a: 1 }, [json({ meta: {}, data: { a: 1 } })]],
    ["an envelope made of another one", { meta: {}, data: 1 }, [json({ meta: {}, data: 1 }), json({ b: 1 })]],
    ["no block", { a: 1 }, []],
    ["blocks that are none", { a: 1 }, [null, 1, {}, { type: "text" }, { type: "text", text: 1 }]],
  ])("is not seen in %s", (_, structuredContent, content) => {
    expect(findContradiction({ content, structuredContent })).toBeUndefined();
  });

  it.each([undefined, null, 1, "x", [], {}, { content: [] }, { structuredContent: 1 }, { meta: 1 }])(
    "is not seen in what is no result: %j",
    (value) => {
      expect(findContradiction(value)).toBeUndefined();
    },
  );

  it("is never seen in what Waybill writes itself from a result that has none", () => {
    const arbitrary = fc.oneof(...FORMAT_NAMES.map((format) => CARRIERS[format]));
    fc.assert(
      fc.property(arbitrary, fc.constantFrom(...FORMAT_NAMES), (carrier, to) => {
        // Blocks of kinds that nobody knows become texts that are their JSON.
        fc.pre(
          findContradiction(carrier) === undefined && !inspect(carrier, { depth: 9 }).includes("hologram"),
        );
        let written: unknown;
        try {
          written = transcode(carrier, to, { residual: false });
        } catch (thrown) {
          expect(isFormatError(thrown)).toBe(true);
          return;
        }
        expect(findContradiction(written)).toBeUndefined();
      }),
      seededRuns(300),
    );
  });

  it("is found in time that grows with the length, and told in a line of bounded length", () => {
    const startedAt = cpuMs();
    const rows = Array.from({ length: 20_000 }, (_, at) => ({ at }));
    const structuredContent = { result: rows };
    expect(messageOf({ content: rows.map(json), structuredContent })).toBeUndefined();
    expect(messageOf({ content: [json({ result: rows.slice(1) })], structuredContent })).toMatch(
      /\/result\/0\/at/,
    );
    const key = "k".repeat(1_000_000);
    const told = messageOf({ content: [json({ [key]: 1 })], structuredContent: { [key]: 2 } });
    expect(told?.length).toBeLessThan(300);
    let deep: unknown = 1;
    for (let level = 0; level < 60; level++) deep = { a: deep };
    expect(messageOf({ content: [json({ b: deep })], structuredContent: { b: { a: 2 } } })).toMatch(
      /\/b\/a\.$/,
    );
    expect(cpuMs() - startedAt).toBeLessThan(10_000);
  });
});
