import { describe, expect, it } from "vitest";
import { WaitingCalls } from "./gateway.ts";

const NEVER = new Promise<void>(() => {});

describe("calls that wait for a source", () => {
  it("wait until it has started, or until nothing would come of it", async () => {
    const calls = new WaitingCalls();
    let isLeftOut = false;
    const over: string[] = [];
    let start = (): void => {};
    const started = new Promise<void>((resolve) => {
      start = resolve;
    });
    void calls.wait(NEVER, () => false).then(() => over.push("never"));
    const left = calls.wait(NEVER, () => isLeftOut).then(() => over.push("left"));
    calls.review();
    isLeftOut = true;
    calls.review();
    await left;
    const last = calls.wait(started, () => false).then(() => over.push("started"));
    start();
    await last;
    expect(over).toEqual(["left", "started"]);
  });

  it("are at most a thousand, and make room when they are over", async () => {
    const calls = new WaitingCalls();
    let isLeftOut = false;
    const all = Array.from({ length: 999 }, () => calls.wait(NEVER, () => isLeftOut));
    expect(calls.isFull).toBe(false);
    all.push(calls.wait(NEVER, () => isLeftOut));
    expect(calls.isFull).toBe(true);
    isLeftOut = true;
    calls.review();
    await Promise.all(all);
    expect(calls.isFull).toBe(false);
  });
});
