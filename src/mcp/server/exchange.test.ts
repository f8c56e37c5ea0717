import { describe, expect, it } from "vitest";
import { Exchange, isHeard, metadataOf } from "./exchange.ts";

type Sent = { readonly method: string; readonly params: Readonly<Record<string, unknown>> };

function contextOf(sent: Sent[], meta?: Readonly<Record<string, unknown>>) {
  const notify = (method: string, params: object): void => void sent.push({ method, params: { ...params } });
  return { meta, logLevel: undefined, notify };
}

describe("Exchange", () => {
  it("RE-30 counts what says no number, and leaves out what does not go up or is none", () => {
    const sent: Sent[] = [];
    const exchange = new Exchange();
    exchange.attach(contextOf(sent, { progressToken: 7 }));
    for (const value of ["a", { step: 2 }, Number.NaN, 1, 10, { progress: 4 }, "b", () => {}]) {
      exchange.progress(value);
    }
    expect(sent.map(({ params }) => params)).toEqual([
      { progressToken: 7, progress: 1, message: "a" },
      { progressToken: 7, progress: 2, message: '{"step":2}' },
      { progressToken: 7, progress: 10 },
      { progressToken: 7, progress: 11, message: "b" },
      { progressToken: 7, progress: 12 },
    ]);
  });

  it("RE-30 tells how much there is to do, in either of the two forms", () => {
    const sent: Sent[] = [];
    const exchange = new Exchange();
    exchange.attach(contextOf(sent, { progressToken: 7 }));
    const said = [
      { done: 1, of: 3 },
      { progress: 2, total: 3 },
      { done: 3, of: 3, message: "All." },
      { done: "4" },
    ];
    for (const value of said) exchange.progress(value);
    expect(sent.map(({ params }) => params)).toEqual([
      { progressToken: 7, progress: 1, total: 3 },
      { progressToken: 7, progress: 2, total: 3 },
      { progressToken: 7, progress: 3, total: 3, message: "All." },
      { progressToken: 7, progress: 4, message: '{"done":"4"}' },
    ]);
  });

  it("RE-30 tells nothing to a request that asked for no progress, or is over", () => {
    const sent: Sent[] = [];
    const exchange = new Exchange();
    exchange.attach(contextOf(sent));
    exchange.progress(1);
    exchange.attach(undefined);
    exchange.log({ level: "error", message: "late" }, "a.b");
    expect(sent).toEqual([]);
  });

  it("RE-30 compares levels by importance", () => {
    expect(isHeard("warning", "warning")).toBe(true);
    expect(isHeard("notice", "warning")).toBe(false);
    expect(isHeard("emergency", "off")).toBe(false);
    expect(isHeard("debug", undefined)).toBe(true);
  });

  it("RE-30 takes the trace of a request over, and nothing else of its meta", () => {
    const meta = { traceparent: "00-a-b-01", tracestate: 7, baggage: "x".repeat(8_193), identity: "root" };
    expect(metadataOf(contextOf([], meta))).toEqual({ traceparent: "00-a-b-01" });
    expect(metadataOf(contextOf([], { baggage: "x".repeat(8_192) }))).toEqual({ baggage: "x".repeat(8_192) });
    expect(metadataOf(contextOf([]))).toBeUndefined();
  });
});
