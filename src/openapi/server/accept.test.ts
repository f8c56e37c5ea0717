import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isCallError } from "../../core/errors/errors.ts";
import type { ResultFormat } from "../../core/result/result-reader.ts";
import { createNegotiation } from "./write-answer.ts";

const format: ResultFormat = {
  name: "Plain",
  write: () => ({ content: [] }),
  outputSchema: () => undefined,
};
const negotiation = createNegotiation([format]);
const kind = (accept: string | undefined, wanted?: string) => negotiation.choose(accept, wanted).kind;

describe("choosing a representation", () => {
  it.each([
    [undefined, "data"],
    ["*/*", "data"],
    ["application/json", "data"],
    ["application/octet-stream", "data"],
    ["application/vnd.waybill.envelope+json", "envelope"],
    ["application/vnd.waybill.plain+json", "format"],
    ["application/vnd.waybill.envelope+json, application/json", "data"],
    ["application/vnd.waybill.envelope+json, application/json;q=0.9", "envelope"],
    ["application/json;q=0.001, */*;q=0", "data"],
    [
      "*/*;q=0.5, application/json;q=0, application/vnd.waybill.data+json;q=0, application/octet-stream;q=0",
      "envelope",
    ],
    [" application/json ; charset=utf-8 ; q=1.000", "data"],
  ])("RE-30 answers %s with %s", (accept, expected) => {
    expect(kind(accept)).toBe(expected);
    // The second time it is remembered.
    expect(kind(accept)).toBe(expected);
  });

  it("RE-30 writes exactly what whoever names its media type can read", () => {
    expect(negotiation.choose("application/vnd.waybill.data+json", undefined)).toEqual({
      kind: "data",
      exact: true,
      orEnvelope: false,
    });
    expect(
      negotiation.choose("application/json, application/vnd.waybill.envelope+json;q=0.5", undefined),
    ).toEqual({
      kind: "data",
      exact: false,
      orEnvelope: true,
    });
    expect(negotiation.choose("application/vnd.waybill.data+json;q=0, */*", undefined)).toMatchObject({
      exact: false,
    });
  });

  it("RE-30 gives whoever accepts anything what is usual for them, and nobody else", () => {
    const usual = new Map([
      ["ann", "Plain"],
      ["bea", "envelope"],
      ["cid", "odd"],
    ]);
    const choosing = createNegotiation([format], (identity) => usual.get(identity?.subject ?? ""));
    const forWhom = (subject: string, accept?: string) =>
      choosing.choose(accept, undefined, { subject }).kind;
    expect(forWhom("ann")).toBe("format");
    expect(forWhom("ann", "*/*")).toBe("format");
    expect(forWhom("ann", "application/json")).toBe("data");
    expect(forWhom("bea")).toBe("envelope");
    expect(forWhom("cid")).toBe("data");
    expect(choosing.choose(undefined, "data", { subject: "ann" }).kind).toBe("data");
    expect(choosing.choose(undefined, undefined).kind).toBe("data");
  });

  it("RE-30 lets the query decide over the header", () => {
    expect(kind("application/json", "envelope")).toBe("envelope");
    expect(kind("text/html", "Plain")).toBe("format");
  });

  it("RE-30 either chooses or refuses, whatever is sent", () => {
    const piece = fc.constantFrom(
      "application",
      "/",
      "*",
      "json",
      ";",
      "q=",
      "0",
      "1",
      ".",
      ",",
      " ",
      "text/html",
    );
    const accepts = fc.oneof(
      fc.string(),
      fc.array(piece, { maxLength: 30 }).map((list) => list.join("")),
    );
    fc.assert(
      fc.property(accepts, (accept) => {
        try {
          expect(["data", "envelope", "format"]).toContain(kind(accept));
        } catch (thrown) {
          expect(isCallError(thrown) && thrown.httpStatus).toBe(406);
        }
      }),
    );
  });

  it("RE-30 asks readers of events to accept them", () => {
    for (const accept of [undefined, "*/*", "text/*", "text/event-stream, application/json"]) {
      expect(() => negotiation.checkEvents(accept)).not.toThrow();
    }
    for (const accept of ["application/json", "text/event-stream;q=0, */*"]) {
      expect(() => negotiation.checkEvents(accept)).toThrow();
    }
  });
});
