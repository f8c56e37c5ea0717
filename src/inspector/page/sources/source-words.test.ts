import { describe, expect, it } from "vitest";
import type { SourceView } from "../../protocol.ts";
import { errorWords, retryWord, stateWords, summaryOf } from "./source-state.ts";

const NOW = 1_000_000_000;
const SOURCE: SourceView = {
  name: "depot",
  kind: "mcp",
  state: { status: "up", since: NOW - 180_000 },
  operations: 9,
  unusable: [],
  notes: [],
  calls: { count: 0, errors: 0 },
};
const DOWN = { status: "down", since: NOW - 5_000, reason: "It is gone." } as const;

describe("the words about sources", () => {
  it("sum up how many are which way", () => {
    const sources: readonly SourceView[] = [
      SOURCE,
      { ...SOURCE, state: DOWN, operations: 0 },
      { ...SOURCE, state: { status: "disabled" }, operations: 1 },
    ];
    expect(summaryOf(sources)).toBe("1 of 3 up · 1 down · 1 disabled · 10 operations");
    expect(summaryOf([{ ...SOURCE, operations: 1 }])).toBe("1 of 1 up · 1 operation");
  });

  it("say since when a source is up or down, and when it is tried again", () => {
    expect(stateWords(SOURCE.state, NOW)).toBe("for 3 min");
    expect(stateWords(DOWN, NOW)).toBe("for 5 s");
    expect(stateWords({ ...DOWN, retryAt: NOW + 12_000 }, NOW)).toBe("for 5 s, tries again in 12 s");
    expect(stateWords({ ...DOWN, retryAt: NOW - 1 }, NOW)).toBe("for 5 s, trying again now");
    expect(stateWords({ status: "connecting" }, NOW)).toBe("it has not answered yet");
  });

  it("name what the button does, and nothing where there is nothing to try", () => {
    expect(retryWord(SOURCE)).toBe("Restart");
    expect(retryWord({ ...SOURCE, kind: "local" })).toBe("Load again");
    expect(retryWord({ ...SOURCE, state: DOWN })).toBe("Try now");
    expect(retryWord({ ...SOURCE, state: { status: "disabled" } })).toBeUndefined();
  });

  it("give the share of errors", () => {
    expect(errorWords({ count: 120, errors: 3 })).toBe("3 (2.5%)");
    expect(errorWords({ count: 0, errors: 0 })).toBe("0");
  });
});
