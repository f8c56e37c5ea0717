import { describe, expect, it } from "vitest";
import { rejection, sleep } from "../../../../test/make-operation.ts";
import { CallError } from "../../../core/errors/errors.ts";
import { monotonicNow } from "../../../core/execution/cancellation.ts";
import { settleWithin } from "./durable-calls.ts";

const patience = (ms: number, signal?: AbortSignal) => ({
  until: monotonicNow() + ms,
  signal,
  expired: () => new Error("expired"),
  aborted: (reason: unknown) => new Error(`aborted: ${String(reason)}`),
});

describe("waiting for work that goes on", () => {
  it("Durable: gives what the work gives", async () => {
    expect(await settleWithin(patience(60_000), async () => 1)).toBe(1);
    const failing = settleWithin(patience(60_000), () => Promise.reject(new Error("own")));
    expect(await rejection(failing)).toMatchObject({ message: "own" });
    expect(await settleWithin(patience(Number.POSITIVE_INFINITY), async () => 2)).toBe(2);
  });

  it("Durable: ends when time is up, and a late failure of the work is nobody's", async () => {
    let fail = (_: Error) => {};
    const late = new Promise((_, reject) => (fail = reject));
    expect(await rejection(settleWithin(patience(10), () => late))).toMatchObject({ message: "expired" });
    fail(new Error("late"));
    await sleep(20);
  });

  it("Durable: tells that time is up where the work found nobody because of that", async () => {
    const { until } = patience(5);
    const spin = async (code: "UNAVAILABLE" | "NOT_FOUND"): Promise<never> => {
      while (monotonicNow() < until);
      throw new CallError(code, code);
    };
    const given = { ...patience(0), until };
    expect(await rejection(settleWithin(given, () => spin("UNAVAILABLE")))).toMatchObject({
      message: "expired",
    });
    expect(await rejection(settleWithin(given, () => spin("NOT_FOUND")))).toMatchObject({
      code: "NOT_FOUND",
    });
  });

  it("Durable: ends with the signal, and does not start under one that has aborted", async () => {
    const control = new AbortController();
    const waiting = settleWithin(patience(60_000, control.signal), () => new Promise(() => {}));
    control.abort("enough");
    expect(await rejection(waiting)).toMatchObject({ message: "aborted: enough" });
    let started = false;
    const never = settleWithin(patience(60_000, control.signal), async () => {
      started = true;
    });
    expect(await rejection(never)).toMatchObject({ message: "aborted: enough" });
    expect(started).toBe(false);
  });
});
