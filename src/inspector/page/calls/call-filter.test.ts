import { describe, expect, it } from "vitest";
import type { CallRow } from "../../protocol.ts";
import { type CallFilter, isFiltering, NO_FILTER, toTest } from "./calls-view.tsx";

const row = (part: Partial<CallRow> = {}): CallRow => ({
  seq: 1,
  requestId: "Req-77",
  operation: "parcel.send",
  source: "parcel",
  entry: "mcp",
  subject: "Ada",
  startedAt: 10_500,
  outcome: "ok",
  durationMs: 40,
  ...part,
});
const running = (part: Partial<CallRow> = {}): CallRow => {
  const { outcome: _outcome, durationMs: _durationMs, ...rest } = row(part);
  return rest;
};
const passes = (filter: Partial<CallFilter>, call: CallRow, now = 20_000): boolean =>
  toTest({ ...NO_FILTER, ...filter }, now)(call);

describe("toTest", () => {
  it("lets everything through without a filter", () => {
    expect(passes({}, row())).toBe(true);
    expect(passes({}, running())).toBe(true);
  });

  it("finds words in operation, request id, code and caller, whatever their case, all of them", () => {
    for (const text of ["SEND", "req-77", "ada", "timeout", "send ada", "  parcel   77 "])
      expect(passes({ text }, row({ code: "TIMEOUT" })), text).toBe(true);
    for (const text of ["depot", "send depot", "mcp"]) expect(passes({ text }, row()), text).toBe(false);
  });

  it("takes words as they are, not as patterns", () => {
    expect(passes({ text: ".*" }, row())).toBe(false);
    expect(passes({ text: "(" }, row({ operation: "a(b" }))).toBe(true);
  });

  it("does not find a word across two texts", () => {
    expect(passes({ text: "sendreq" }, row())).toBe(false);
  });

  it("tells outcomes apart, and calls that run from those that ended", () => {
    expect(passes({ outcome: "ok" }, row())).toBe(true);
    expect(passes({ outcome: "call_error" }, row())).toBe(false);
    expect(passes({ outcome: "running" }, running())).toBe(true);
    expect(passes({ outcome: "running" }, row())).toBe(false);
  });

  it("tells sources and ways in apart, and calls that modules made", () => {
    expect(passes({ source: "parcel" }, row())).toBe(true);
    expect(passes({ source: "__proto__" }, row())).toBe(false);
    expect(passes({ source: "__proto__" }, row({ source: "__proto__" }))).toBe(true);
    expect(passes({ entry: "http" }, row())).toBe(false);
    const { entry: _entry, ...inner } = row();
    expect(passes({ entry: "none" }, inner)).toBe(true);
  });

  it("counts how long a call runs already", () => {
    expect(passes({ slower: "39" }, row())).toBe(true);
    expect(passes({ slower: "40" }, row())).toBe(false);
    expect(passes({ slower: "9000" }, running(), 20_000)).toBe(true);
    expect(passes({ slower: "9000" }, running(), 19_000)).toBe(false);
  });
});

describe("isFiltering", () => {
  it("tells whether anything is left out", () => {
    expect(isFiltering(NO_FILTER)).toBe(false);
    expect(isFiltering({ ...NO_FILTER, text: "  " })).toBe(false);
    expect(isFiltering({ ...NO_FILTER, slower: "0" })).toBe(true);
  });
});
