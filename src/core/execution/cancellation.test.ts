import { getEventListeners } from "node:events";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { rejection } from "../../../test/make-operation.ts";
import { CallError } from "../errors/errors.ts";
import { Cancellation, monotonicNow } from "./cancellation.ts";

const NEVER = Number.POSITIVE_INFINITY;

const under = (signals: AbortSignal[], timeoutMs = NEVER) =>
  new Cancellation("a.b", signals, monotonicNow() + timeoutMs, monotonicNow());

const listenersOn = (signal: AbortSignal) => getEventListeners(signal, "abort").length;
const forever = () => new Promise<never>(() => {});

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("Cancellation.check", () => {
  it("RE-10 finds nothing while signals are quiet and time is left", () => {
    const cancellation = under([new AbortController().signal], 50);
    expect(cancellation.check()).toBeUndefined();
    expect(cancellation.ended).toBe(false);
    expect(under([]).check()).toBeUndefined();
  });

  it("RE-10 finds any signal that has aborted, with its reason as the cause", () => {
    const error = under([new AbortController().signal, AbortSignal.abort("gone")]).check();
    expect(error).toMatchObject({
      code: "ABORTED",
      cause: "gone",
      message: 'The call of "a.b" was aborted.',
    });
  });

  it("RE-10 finds a deadline that has passed, to the millisecond", () => {
    const cancellation = under([], 50);
    vi.advanceTimersByTime(49);
    expect(cancellation.check()).toBeUndefined();
    vi.advanceTimersByTime(1);
    const message = '"a.b" did not answer before its deadline.';
    expect(cancellation.check()).toMatchObject({ code: "TIMEOUT", message });
    expect(cancellation.ended).toBe(true);
  });

  it("RE-10 can be asked about a moment, and stays with its first answer", () => {
    const controller = new AbortController();
    const cancellation = under([controller.signal], 50);
    expect(cancellation.check(cancellation.deadline - 1)).toBeUndefined();
    const first = cancellation.check(cancellation.deadline);
    controller.abort();
    expect(first?.code).toBe("TIMEOUT");
    expect(cancellation.check()).toBe(first);
  });

  it.each([
    [new DOMException("late", "TimeoutError"), "TIMEOUT"],
    [new CallError("TIMEOUT"), "TIMEOUT"],
    [new DOMException("gone", "AbortError"), "ABORTED"],
    [new CallError("EXECUTION_ERROR"), "ABORTED"],
    [undefined, "ABORTED"],
  ])("RE-10 says what the reason %s of an abort stands for: %s", (reason, code) => {
    expect(under([AbortSignal.abort(reason)]).check()?.code).toBe(code);
  });
});

describe("Cancellation.guard", () => {
  it("RE-10 passes a value or an error on, and leaves nothing behind", async () => {
    const { signal } = new AbortController();
    expect(await under([signal], 50).guard(Promise.resolve(7))).toBe(7);
    const error = new Error("no");
    expect(await rejection(under([signal], 50).guard(Promise.reject(error)))).toBe(error);
    expect(vi.getTimerCount()).toBe(0);
    expect(listenersOn(signal)).toBe(0);
  });

  it("RE-10 watches while it waits", () => {
    const { signal } = new AbortController();
    const cancellation = under([signal], 50);
    cancellation.guard(forever()).catch(() => {});
    expect(vi.getTimerCount()).toBe(1);
    expect(listenersOn(signal)).toBe(1);
    cancellation.release();
    cancellation.release();
    expect(vi.getTimerCount()).toBe(0);
    expect(listenersOn(signal)).toBe(0);
  });

  it("RE-10 rejects at once on an abort, whatever the promise does, and leaves nothing behind", async () => {
    const controller = new AbortController();
    const guarded = under([controller.signal], 50).guard(forever());
    controller.abort("gone");
    expect(await rejection(guarded)).toMatchObject({ code: "ABORTED", cause: "gone" });
    expect(vi.getTimerCount()).toBe(0);
    expect(listenersOn(controller.signal)).toBe(0);
  });

  it("RE-10 rejects at the deadline and lets go of the signal", async () => {
    const { signal } = new AbortController();
    const guarded = under([signal], 50).guard(forever());
    vi.advanceTimersByTime(50);
    expect(await rejection(guarded)).toMatchObject({ code: "TIMEOUT" });
    expect(listenersOn(signal)).toBe(0);
  });

  it("RE-10 rejects at once when the call had ended before", async () => {
    const pending = under([AbortSignal.abort()]).guard(forever());
    expect(await rejection(pending)).toMatchObject({ code: "ABORTED" });
    const ended = under([]);
    ended.end(new CallError("CONFLICT"));
    expect(await rejection(ended.guard(forever()))).toMatchObject({ code: "CONFLICT" });
  });

  it("RE-10 drops an answer that is late even though no timer could fire", async () => {
    vi.useRealTimers();
    const busy = Promise.resolve().then(() => {
      const end = performance.now() + 20;
      while (performance.now() < end);
      return "late";
    });
    expect(await rejection(under([], 10).guard(busy))).toMatchObject({ code: "TIMEOUT" });
  });

  it("RE-10 never leaves a late rejection unhandled", async () => {
    const unhandled = vi.fn();
    process.on("unhandledRejection", unhandled);
    onTestFinished(() => void process.off("unhandledRejection", unhandled));
    const controller = new AbortController();
    let fail: (error: Error) => void = () => {};
    const pending = new Promise<never>((_, reject) => {
      fail = reject;
    });
    const guarded = under([controller.signal]).guard(pending);
    controller.abort();
    await rejection(guarded);
    fail(new Error("late"));
    vi.useRealTimers();
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(unhandled).not.toHaveBeenCalled();
  });
});

describe("Cancellation.race", () => {
  it("RE-10 goes on watching after a part of the call", async () => {
    const controller = new AbortController();
    const cancellation = under([controller.signal], 50);
    expect(await cancellation.race(Promise.resolve(1))).toBe(1);
    expect(await rejection(cancellation.race(Promise.reject(new Error("no"))))).toEqual(new Error("no"));
    expect(vi.getTimerCount()).toBe(1);
    const [outer, inner] = [cancellation.guard(forever()), cancellation.race(forever())];
    controller.abort();
    expect(await rejection(outer)).toBe(await rejection(inner));
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("Cancellation.signal", () => {
  it("RE-10 is one signal that aborts with the error of the call", () => {
    const controller = new AbortController();
    const cancellation = under([controller.signal]);
    const { signal } = cancellation;
    expect(cancellation.signal).toBe(signal);
    expect(signal).not.toBe(controller.signal);
    expect(signal.aborted).toBe(false);
    controller.abort("gone");
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toMatchObject({ code: "ABORTED", cause: "gone" });
  });

  it("RE-10 is aborted from the start when the call had ended before it was read", () => {
    expect(under([AbortSignal.abort()]).signal.aborted).toBe(true);
    const expired = under([], 5);
    vi.advanceTimersByTime(5);
    expect(expired.signal.reason).toMatchObject({ code: "TIMEOUT" });
  });

  it("RE-10 watches from the moment it is read, and no longer once released", () => {
    const cancellation = under([], 50);
    expect(vi.getTimerCount()).toBe(0);
    const { signal } = cancellation;
    expect(vi.getTimerCount()).toBe(1);
    cancellation.release();
    vi.advanceTimersByTime(100);
    expect(signal.aborted).toBe(false);
  });

  it("RE-10 starts no watch when it is first read after the call", () => {
    const cancellation = under([], 50);
    cancellation.release();
    expect(cancellation.signal.aborted).toBe(false);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("RE-10 is aborted before the caller hears", async () => {
    const cancellation = under([], 50);
    const order: string[] = [];
    cancellation.signal.addEventListener("abort", () => order.push("handler"));
    const guarded = cancellation.guard(forever()).catch(() => order.push("caller"));
    vi.advanceTimersByTime(50);
    await guarded;
    expect(order).toEqual(["handler", "caller"]);
  });
});

describe("Cancellation.whenEnded", () => {
  it("RE-10 calls back on an early end only, and at once when that was before", () => {
    const cancellation = under([]);
    const early = vi.fn();
    cancellation.whenEnded(early);
    cancellation.release();
    expect(early).not.toHaveBeenCalled();
    const [error, second] = [new CallError("ABORTED"), new CallError("TIMEOUT")];
    cancellation.end(error);
    cancellation.end(second);
    expect(early.mock.calls).toEqual([[error]]);
    const late = vi.fn();
    cancellation.whenEnded(late);
    expect(late.mock.calls).toEqual([[error]]);
  });
});

it("reads a clock that a test can set", () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "performance"] });
  try {
    const before = monotonicNow();
    vi.advanceTimersByTime(70);
    expect(monotonicNow() - before).toBe(70);
  } finally {
    vi.useRealTimers();
  }
});
