import { describe, expect, it } from "vitest";
import type { EnvelopeView } from "../../protocol.ts";
import { factsOf, obtainedWords, rawOf } from "./result-facts.ts";

function local(waybill: unknown): EnvelopeView {
  return { data: { a: 1 }, meta: { source: "local", operationId: "a.b", timestamp: 1, waybill } };
}

describe("factsOf", () => {
  it("reads what an envelope tells of itself", () => {
    const facts = factsOf(
      local({
        durationMs: 3,
        attempts: 2,
        obtained: "text-json",
        normalization: { stripped: ["/x"], defaulted: [], converted: ["/a"], omitted: 2 },
        violations: [{ pointer: "/a", expected: "a text", found: "a number" }],
        page: { next: "c1" },
        sequence: 0,
        details: null,
      }),
    );
    expect(facts).toMatchObject({
      isError: false,
      durationMs: 3,
      attempts: 2,
      changes: ["1 stripped", "1 converted", "2 more"],
      violations: 1,
      details: { value: null },
    });
    expect(facts.told).toEqual([
      ["Value no.", "1"],
      ["Next page", "c1"],
    ]);
    expect(facts.marks.get("/x")).toEqual([{ tone: "warn", word: "stripped" }]);
    expect(facts.marks.get("/a")?.map(({ word }) => word)).toEqual([
      "converted",
      "misses its schema: must be a text; it is a number",
    ]);
  });

  it("says of a member that is not there that it is missing", () => {
    const violations = [{ pointer: "/name", expected: "a required property", found: "nothing" }];
    expect(
      factsOf(local({ violations }))
        .marks.get("/name")
        ?.map(({ word }) => word),
    ).toEqual(["misses its schema: is missing"]);
  });

  it.each([
    undefined,
    null,
    5,
    "x",
    [],
    { normalization: 1, violations: { a: 1 }, page: [], durationMs: "1" },
  ])("takes nothing for what it is not: %j", (waybill) => {
    const facts = factsOf(local(waybill));
    expect(facts).toMatchObject({ changes: [], violations: 0, told: [], durationMs: undefined });
  });

  it("knows words by their own names alone", () => {
    expect(obtainedWords("constructor")).toBe("constructor");
    expect(obtainedWords("body")).toBe("from the body of the answer");
  });
});

describe("rawOf", () => {
  it("is what each source answered", () => {
    expect(rawOf({ envelope: local({}), rawData: { a: "1" } })).toEqual({ a: "1" });
    expect(rawOf({ envelope: local({}) })).toEqual({ a: 1 });
    const mcp: EnvelopeView = { data: 1, meta: { source: "mcp", isError: true, content: [], waybill: {} } };
    expect(rawOf({ envelope: mcp })).toEqual({ content: [], isError: true });
    const http: EnvelopeView = {
      data: 1,
      meta: { source: "http", statusCode: 200, headers: {}, contentType: "" },
    };
    expect(rawOf({ envelope: http })).toEqual({ statusCode: 200, headers: {}, body: 1 });
  });
});
