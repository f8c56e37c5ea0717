import { describe, expect, it } from "vitest";
import { localEnvelope } from "../../../core/envelope/envelope.ts";
import { toFixture } from "../../page/calls/call-detail.tsx";
import type { EnvelopeView } from "../../protocol.ts";
import { decodeText } from "./decode-results.ts";

const json = (value: unknown): string => JSON.stringify(value);
const result = { content: [{ type: "text", text: "hello" }] };
const members = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, at]));
const ENVELOPE = localEnvelope({ hits: 2 }, "desk.find");
const fixtureOf = (count: number): string =>
  json({ waybill: "fixture/1", outcome: "ok", envelopes: Array.from({ length: count }, () => ENVELOPE) });

describe("a text that is decoded for a page", () => {
  it("is read in what it comes in, with an envelope and notes", () => {
    const stream = `data: ${json({ jsonrpc: "2.0", id: 1, result })}\n\n`;
    expect(decodeText(stream).results).toMatchObject([
      {
        format: "mcp",
        wrapping: "event-stream",
        notes: [{}, {}].map(() => expect.any(String)),
        envelope: {},
      },
    ]);
    expect(decodeText(fixtureOf(1)).results).toMatchObject([
      { wrapping: "fixture", notes: ["Taken out of a fixture."], data: { hits: 2 }, envelope: ENVELOPE },
    ]);
  });

  it("may be what the page exports of a call", () => {
    const row = { seq: 1, requestId: "r", operation: "desk.find", startedAt: 0, outcome: "ok" } as const;
    const results = [{ envelope: ENVELOPE as unknown as EnvelopeView }];
    const fixture = toFixture({ row, input: { value: {} }, results, earlier: 0, family: [] });
    expect(decodeText(json(fixture)).results).toMatchObject([
      {
        wrapping: "fixture",
        data: { hits: 2 },
        notes: ["Taken out of a fixture of desk.find, recorded 1970-01-01T00:00:00.000Z."],
      },
    ]);
  });

  it("may hold a failure in place of a result, which has no envelope", () => {
    const problem = { title: "Gone", status: 410, parcel: "P-9" };
    expect(decodeText(json(problem)).results).toEqual([
      {
        format: "problem",
        wrapping: "none",
        isError: true,
        data: problem,
        obtained: "body",
        text: "Gone",
        error: { code: "410", message: "Gone" },
        odd: [],
      },
    ]);
    const error = { code: "TIMEOUT", message: "Too late.", details: { afterMs: 5 } };
    const [failed] = decodeText(json({ waybill: "fixture/1", outcome: "call_error", error })).results;
    expect(failed).toMatchObject({ format: "call-error", error });
    expect(failed).not.toHaveProperty("envelope");
  });

  it("may hold two hundred results, and not one more, in a fixture too", () => {
    expect(decodeText(fixtureOf(200)).results).toHaveLength(200);
    expect(() => decodeText(fixtureOf(201))).toThrow("holds 201 results; at most 200");
  });

  it("may hold so many answers as it likes in a stream, of which one is shown", () => {
    const stream = `data: ${json({ jsonrpc: "2.0", id: 1, result })}\n\n`.repeat(500);
    expect(decodeText(stream).results).toHaveLength(1);
  });

  it.each([
    ["a problem", (count: number) => json({ title: "Gone", status: 410, ...members(count - 4) })],
    [
      "an error of JSON-RPC",
      (count: number) => json({ jsonrpc: "2.0", id: 1, error: { code: 1, data: members(count - 4) } }),
    ],
    [
      "a stream of events",
      (count: number) => `data: ${json({ content: [], structuredContent: members(count - 4) })}`,
    ],
  ])("may hold twenty-five thousand values, and not one more: %s", (_, textOf) => {
    expect(decodeText(textOf(25_000)).results).toHaveLength(1);
    expect(() => decodeText(textOf(25_001))).toThrow("more than 25,000 values");
  });
});
