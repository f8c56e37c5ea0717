import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Expiring, monotonicNow, startTimer, toDeadline } from "./cancellation.ts";

describe("toDeadline", () => {
  it("RE-10 adds a timeout to the clock", () => {
    expect(toDeadline(50, 1000)).toBe(1050);
    expect(toDeadline(0, 1000)).toBe(1000);
    expect(toDeadline(0.5, 1000)).toBe(1000.5);
    expect(toDeadline(2 ** 40, 0)).toBe(2 ** 40);
    expect(toDeadline(Number.POSITIVE_INFINITY, 5)).toBe(Number.POSITIVE_INFINITY);
  });

  it.each([Number.NaN, -1, -0.001, Number.NEGATIVE_INFINITY, "50", null, undefined, {}, 50n, true])(
    "RE-10 refuses %s",
    (timeoutMs) => {
      expect(() => toDeadline(timeoutMs, 0)).toThrow(TypeError);
      expect(() => toDeadline(timeoutMs, 0)).toThrow(
        /^timeoutMs must be a number of milliseconds, 0 or more; it is /,
      );
    },
  );
});

describe("what toDeadline says", () => {
  it.each([
    [-1, "-1"],
    [Number.NaN, "NaN"],
    ["50", "of type string"],
    [null, "of type null"],
    [{}, "of type object"],
  ])("RE-10 names %s for what it is", (timeoutMs, shown) => {
    const message = `timeoutMs must be a number of milliseconds, 0 or more; it is ${shown}.`;
    expect(() => toDeadline(timeoutMs, 0)).toThrow(message);
  });
});

describe("startTimer", () => {
  const expire = vi.fn();
  const owner: Expiring = { deadline: 0, timer: undefined, expire };
  const start = (ms: number, remaining = ms) => {
    Object.assign(owner, { deadline: monotonicNow() + ms });
    startTimer(owner, remaining);
  };

  beforeEach(() => {
    vi.useFakeTimers();
    expire.mockClear();
  });
  afterEach(() => void vi.useRealTimers());

  it("RE-10 expires its owner once, and leaves no timer", () => {
    start(50);
    vi.advanceTimersByTime(49);
    expect(expire).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(expire).toHaveBeenCalledTimes(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("RE-10 is stopped by clearing the owner's timer", () => {
    start(50);
    clearTimeout(owner.timer);
    vi.advanceTimersByTime(100);
    expect(expire).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("RE-10 waits past the longest delay a timer takes", () => {
    start(2 ** 31 + 1000);
    vi.advanceTimersByTime(2 ** 31 - 1);
    expect(expire).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1000);
    expect(expire).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(expire).toHaveBeenCalledTimes(1);
  });

  it("RE-10 can be stopped after it was armed again", () => {
    start(2 ** 32);
    vi.advanceTimersByTime(2 ** 31);
    clearTimeout(owner.timer);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("RE-10 is not fooled by a timer that fires early, nor by the wall clock", () => {
    start(100, 10);
    vi.advanceTimersByTime(10);
    expect(expire).not.toHaveBeenCalled();
    vi.setSystemTime(Date.now() + 3_600_000);
    vi.advanceTimersByTime(89);
    expect(expire).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(expire).toHaveBeenCalledTimes(1);
  });

  it("RE-10 never fires before a deadline that lies between two milliseconds", () => {
    const timers = vi.spyOn(globalThis, "setTimeout");
    start(10.25);
    const delays = timers.mock.calls.map(([, ms]) => ms);
    timers.mockRestore();
    expect(delays).toEqual([11]);
    vi.advanceTimersByTime(11);
  });
});
