import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readTrace } from "./http-handler.ts";

const WELL_FORMED = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

describe("trace context", () => {
  it("RE-30 is always well formed, whatever came", () => {
    fc.assert(
      fc.property(
        fc.option(fc.string(), { nil: undefined }),
        fc.option(fc.string(), { nil: undefined }),
        (a, b) => {
          const { traceparent, tracestate } = readTrace(a, b);
          expect(traceparent).toMatch(WELL_FORMED);
          expect(tracestate).toBeUndefined();
        },
      ),
    );
  });

  it("RE-30 never gives a span twice", () => {
    const spans = Array.from({ length: 2_000 }, () => readTrace(undefined, undefined).traceparent);
    expect(new Set(spans.map((span) => span.slice(36, 52))).size).toBe(2_000);
  });

  it("RE-30 leaves out a state that cannot be passed on", () => {
    const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    expect(readTrace(parent, "a=1,b=2").tracestate).toBe("a=1,b=2");
    expect(readTrace(parent, "x".repeat(512)).tracestate).toHaveLength(512);
    expect(readTrace(parent, "x".repeat(513)).tracestate).toBeUndefined();
    expect(readTrace(parent, "a=é").tracestate).toBeUndefined();
  });
});
