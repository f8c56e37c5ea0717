import { describe, expect, it } from "vitest";
import type { CallRow } from "../../protocol.ts";
import { byOperation, sortFigures } from "./by-operation.ts";

const call = (operation: string, durationMs: number, part: Partial<CallRow> = {}): CallRow => ({
  seq: 1,
  requestId: "r",
  operation,
  startedAt: 1_000,
  outcome: "ok",
  durationMs,
  ...part,
});

describe("byOperation", () => {
  it("counts calls and errors, and has exact percentiles", () => {
    const rows = Array.from({ length: 100 }, (_, index) =>
      call("a", 100 - index, { startedAt: index, ...(index < 7 && { outcome: "tool_error" }) }),
    );
    expect(byOperation(rows)).toEqual([["a", 100, 7, 50, 90, 95, 99, 100]]);
  });

  it("leaves out calls that run", () => {
    const { outcome: _outcome, ...running } = call("a", 0);
    expect(byOperation([running])).toEqual([]);
  });

  it("counts subscriptions, and leaves out how long somebody listened", () => {
    const none = [undefined, undefined, undefined, undefined, undefined];
    expect(byOperation([call("a", 9_000, { type: "subscription" })])).toEqual([["a", 1, 0, ...none]]);
  });

  it("takes any name for an operation", () => {
    const names = ["__proto__", "constructor", "toString", ""];
    expect(byOperation(names.map((name) => call(name, 1))).map(([operation]) => operation)).toEqual(names);
  });
});

describe("sortFigures", () => {
  const figures = byOperation([
    call("b", 5),
    call("a", 5),
    call("c", 50),
    call("d", 1, { type: "subscription" }),
  ]);
  const names = (column: number): string =>
    sortFigures(figures, column)
      .map(([operation]) => operation)
      .join("");

  it("sorts by a column, equal ones by name, and what has no figure last", () => {
    expect(names(3)).toBe("cabd");
    expect(names(0)).toBe("abcd");
  });
});
