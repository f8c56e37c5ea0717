import { describe, expect, it } from "vitest";
import type { CallRow } from "../../protocol.ts";
import { Api } from "../connection/api.ts";
import { Live } from "../connection/live.ts";
import { summarize } from "./call-buckets.ts";
import { CallHistory, historyOf, MOST_SEEN } from "./call-history.ts";

const ended = (seq: number, part: Partial<CallRow> = {}): CallRow => ({
  seq,
  requestId: `r${seq}`,
  operation: "a.b",
  startedAt: 50_000 + seq,
  outcome: "ok",
  durationMs: 0,
  ...part,
});

const callsOf = (history: CallHistory): number => summarize(history.buckets.until(100_000)).calls;

describe("CallHistory", () => {
  it("counts a call once, though it is told again after the connection was lost", () => {
    const history = new CallHistory();
    for (let turn = 0; turn < 3; turn += 1)
      for (let seq = 1; seq <= 50; seq += 1) history.take(ended(seq), 60_000);
    expect(callsOf(history)).toBe(50);
  });

  it("counts calls of a gateway that started again and counts from the start", () => {
    const history = new CallHistory();
    history.take(ended(1), 60_000);
    history.take(ended(1, { startedAt: 55_000 }), 60_000);
    expect(callsOf(history)).toBe(2);
  });

  it("remembers a bounded number of calls", () => {
    const history = new CallHistory();
    for (let seq = 1; seq <= MOST_SEEN + 1; seq += 1) history.take(ended(seq, { startedAt: 50_000 }), 60_000);
    // The first is forgotten, the second is not.
    history.take(ended(2, { startedAt: 50_000 }), 60_000);
    expect(callsOf(history)).toBe(MOST_SEEN + 1);
    history.take(ended(1, { startedAt: 50_000 }), 60_000);
    expect(callsOf(history)).toBe(MOST_SEEN + 2);
  });

  it("trusts the clock of the page when it agrees with the gateway's", () => {
    const history = new CallHistory();
    history.take(ended(1, { startedAt: 1_000 }), 100_000);
    history.take(ended(2, { startedAt: 109_800 }), 110_000);
    expect(history.clock(120_000)).toBe(120_000);
  });

  it("goes by the gateway's clock when that is behind or ahead", () => {
    const behind = new CallHistory();
    behind.take(ended(1, { startedAt: 1_000 }), 1_000_000);
    behind.take(ended(2, { startedAt: 402_000 }), 1_002_000);
    behind.take(ended(3, { startedAt: 404_000 }), 1_004_100);
    expect(behind.clock(1_010_000)).toBe(410_000);
    const ahead = new CallHistory();
    ahead.take(ended(1, { startedAt: 900_000 }), 300_000);
    expect(ahead.clock(310_000)).toBe(910_000);
  });

  it("is one for each page, and the same whenever it is asked for", () => {
    const live = new Live(new Api());
    expect(historyOf(live)).toBe(historyOf(live));
    expect(historyOf(new Live(new Api()))).not.toBe(historyOf(live));
  });
});
