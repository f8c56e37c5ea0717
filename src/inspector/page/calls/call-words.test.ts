import { describe, expect, it } from "vitest";
import { notesOf, standingOf, timeOf } from "./call-words.ts";

const row = { seq: 1, requestId: "r", operation: "a", startedAt: 0 };

describe("the words of a call", () => {
  it("say how long it took, or runs already", () => {
    expect(timeOf({ ...row, durationMs: 4 }, 9_000)).toBe("4 ms");
    expect(timeOf(row, 9_000)).toBe("9 s");
    expect(timeOf(row, -5)).toBe("0 ms");
  });

  it("tell what its caller gave up from what failed, and from what a tool calls so", () => {
    const standing = (outcome?: "ok" | "tool_error" | "call_error", code = "ABORTED") =>
      standingOf({ ...row, code, ...(outcome !== undefined && { outcome }) });
    expect([standing("call_error"), standing("ok")]).toEqual(["cancelled", "cancelled"]);
    expect([standing("tool_error"), standing("call_error", "TIMEOUT")]).toEqual(["tool_error", "call_error"]);
    expect(standingOf(row)).toBe("running");
  });

  it("mark what was special about it", () => {
    expect(notesOf({ ...row, cached: true, attempts: 3, waitedMs: 4 })).toBe(
      "cached · tried 3× · waited 4 ms",
    );
    expect(notesOf({ ...row, attempts: 1, waitedMs: 0 })).toBe("");
    expect(notesOf({ ...row, type: "subscription", values: 1 })).toBe("1 value");
  });
});
