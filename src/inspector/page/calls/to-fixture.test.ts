import { describe, expect, it } from "vitest";
import type { CallView, EnvelopeView } from "../../protocol.ts";
import { fixtureName, toFixture as makeFixture } from "./call-detail.tsx";

/** As it is written. */
const toFixture = (call: CallView): unknown => JSON.parse(JSON.stringify(makeFixture(call)));
const envelope = (data: unknown): EnvelopeView => ({ data, meta: { source: "local" } });
const view = (part: Partial<CallView> = {}): CallView => ({
  row: {
    seq: 1,
    requestId: "r",
    operation: "parcel.send",
    startedAt: Date.UTC(2026, 0, 2, 3, 4, 5),
    outcome: "ok",
    durationMs: 12.5,
  },
  input: { value: { to: "Ada" } },
  results: [{ envelope: envelope({ id: 1 }) }],
  earlier: 0,
  family: [],
  ...part,
});

describe("toFixture", () => {
  it("holds what went in and what came out", () => {
    expect(toFixture(view())).toEqual({
      waybill: "fixture/1",
      recordedAt: "2026-01-02T03:04:05.000Z",
      operation: "parcel.send",
      input: { to: "Ada" },
      outcome: "ok",
      durationMs: 12.5,
      envelope: envelope({ id: 1 }),
    });
  });

  it("holds the values of a subscription in their order, and how many are missing", () => {
    const row = { ...view().row, type: "subscription" as const };
    const results = [{ envelope: envelope(2) }, { omitted: "too-long" as const }, { envelope: envelope(4) }];
    expect(toFixture(view({ row, results, earlier: 1 }))).toMatchObject({
      envelopes: [envelope(2), envelope(4)],
      omitted: { envelopes: ["too-long"], earlier: 1 },
    });
    expect(toFixture(view({ row, results: [] }))).toMatchObject({ envelopes: [] });
  });

  it("holds the error of a call that failed, and no envelope", () => {
    const error = { code: "TIMEOUT", message: "It took too long." };
    const fixture = toFixture(view({ results: [], error }));
    expect(fixture).toMatchObject({ error });
    expect(fixture).not.toHaveProperty("envelope");
  });

  it("says why an input is missing, and nothing where there was none", () => {
    const fixture = toFixture(view({ input: { omitted: "forgotten" } }));
    expect(fixture).toMatchObject({ omitted: { input: "forgotten" } });
    expect(fixture).not.toHaveProperty("input");
    expect(toFixture(view({ input: { omitted: "none" } }))).not.toHaveProperty("omitted");
  });

  it("keeps members of any name", () => {
    const value: unknown = JSON.parse('{"__proto__":{"a":1},"constructor":2}');
    const text = JSON.stringify(toFixture(view({ input: { value } })));
    expect(text).toContain('"input":{"__proto__":{"a":1},"constructor":2}');
  });
});

describe("fixtureName", () => {
  it("names a file after the operation", () => {
    expect(fixtureName("parcel.send")).toBe("parcel.send.fixture.json");
  });

  it("leaves out what could lead elsewhere or is no name", () => {
    expect(fixtureName("../../etc/passwd")).toBe("_.._etc_passwd.fixture.json");
    expect(fixtureName("\u202egnp.exe")).toBe("_gnp.exe.fixture.json");
    expect(fixtureName("")).toBe("call.fixture.json");
    expect(fixtureName("x".repeat(5_000))).toHaveLength(100 + ".fixture.json".length);
  });
});
