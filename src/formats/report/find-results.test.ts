import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seededRuns } from "../../../test/runs.ts";
import { envelope, STATUS, TIERED, text } from "../../../test/sample-results.ts";
import { isFormatError } from "../format-error.ts";
import { transcode } from "../transcode.ts";
import { type ResultReport, reportResult } from "./describe-result.ts";
import { findResults } from "./find-results.ts";
import { ResultTextError } from "./found-result.ts";

const WHAT = "The text";
const json = (value: unknown): string => JSON.stringify(value);
const ENVELOPE = envelope({ hits: 2 });
const BLOCK = (ENVELOPE.content[1] as { text: string }).text;

const RPC = json({ jsonrpc: "2.0", id: 1, result: ENVELOPE });
const FORGOTTEN = json({ waybill: "fixture/1", outcome: "ok", omitted: { envelopes: ["too-long"] } });
const FIXTURE = {
  waybill: "fixture/1",
  recordedAt: "2026-10-14T19:05:12.000Z",
  operation: "desk.find",
  outcome: "ok",
  envelope: transcode(ENVELOPE, "response-envelope"),
};

function reportsOf(given: string): readonly ResultReport[] {
  return findResults(given, WHAT).map((found) => reportResult(found, WHAT, { losses: true }));
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
    ["a stream of events", `event: message\ndata: ${RPC}\n\n`, "tool-envelope", "event-stream"],
    ["a fixture", json(FIXTURE), "response-envelope", "fixture"],
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
    ["a stream without data", "event: ping\nid: 1", "it looks like a stream of events without data"],
    ["a fixture of a call that runs", '{"waybill":"fixture/1"}', "the call was still running"],
    ["a fixture of a later version", '{"waybill":"fixture/2"}', "another version (fixture/2)"],
    ["a fixture whose result is gone", FORGOTTEN, "what came back was not kept"],
    [
      "a fixture in which there is no envelope",
      '{"waybill":"fixture/1","envelope":{"data":1}}',
      "cannot be used",
    ],
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
      seededRuns(200),
    );
  });

  it("say what they were taken out of", () => {
    expect(reportsOf(RPC)[0]?.notes).toEqual(["Taken out of the JSON-RPC answer to request 1."]);
    expect(reportsOf(json({ result: ENVELOPE }))[0]?.notes).toEqual(['Taken out of the member "result".']);
    const note = "Taken out of a fixture of desk.find, recorded 2026-10-14T19:05:12.000Z.";
    expect(reportsOf(json(FIXTURE))[0]?.notes).toEqual([note]);
    expect(reportsOf(json(ENVELOPE))[0]?.notes).toBeUndefined();
  });

  it("are all the values of a subscription in a fixture, and the error it ended with", () => {
    const { envelope: value, ...rest } = FIXTURE;
    const error = { code: "TIMEOUT", message: "Too late.", retryable: true, details: { after: 5 } };
    const reports = reportsOf(json({ ...rest, envelopes: [value, value], error }));
    expect(reports.map(({ format }) => format)).toEqual([
      "response-envelope",
      "response-envelope",
      "call-error",
    ]);
    expect(reports[2]).toMatchObject({ isError: true, error, text: "Too late.", wrapping: "fixture" });
  });

  it("keep the error of the format as the cause", () => {
    const thrown = thrownBy(() => reportResult({ value: 1, wrapping: "none" }, WHAT, {}));
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
