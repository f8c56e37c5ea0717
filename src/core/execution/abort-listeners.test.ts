import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import {
  type AbortListener,
  addAbortListener,
  isAbortSignal,
  LightSignal,
  removeAbortListener,
} from "./cancellation.ts";

const recorder = (seen: AbortSignal[] = []): AbortListener & { readonly seen: AbortSignal[] } => ({
  seen,
  onAbort: (signal) => void seen.push(signal),
});

const listenersOn = (signal: AbortSignal) => getEventListeners(signal, "abort").length;

describe("addAbortListener", () => {
  it("RE-10 tells every listener of its signal, in order, once", () => {
    const controller = new AbortController();
    const other = new AbortController();
    const seen: AbortSignal[] = [];
    const [first, second] = [recorder(seen), recorder()];
    addAbortListener(controller.signal, first);
    addAbortListener(controller.signal, second);
    addAbortListener(other.signal, second);
    controller.abort();
    controller.abort();
    expect(seen).toEqual([controller.signal]);
    expect(second.seen).toEqual([controller.signal]);
    removeAbortListener(other.signal, second);
  });

  it("RE-10 puts one listener on the signal for any number of waiters, and none when nobody waits", () => {
    const { signal } = new AbortController();
    const waiters = Array.from({ length: 100 }, () => recorder());
    for (const waiter of waiters) addAbortListener(signal, waiter);
    expect(listenersOn(signal)).toBe(1);
    for (const waiter of waiters.slice(1)) removeAbortListener(signal, waiter);
    expect(listenersOn(signal)).toBe(1);
    removeAbortListener(signal, waiters[0] as AbortListener);
    removeAbortListener(signal, waiters[0] as AbortListener);
    expect(listenersOn(signal)).toBe(0);
  });

  it("RE-10 tells nobody who has stopped waiting, and takes new waiters after", () => {
    const controller = new AbortController();
    const [gone, there] = [recorder(), recorder()];
    addAbortListener(controller.signal, gone);
    removeAbortListener(controller.signal, gone);
    addAbortListener(controller.signal, there);
    controller.abort();
    expect(gone.seen).toEqual([]);
    expect(there.seen).toEqual([controller.signal]);
    expect(listenersOn(controller.signal)).toBe(0);
  });

  it("RE-10 lets a listener stop waiting for others while it is told", () => {
    const controller = new AbortController();
    const second = recorder();
    const first: AbortListener = { onAbort: (signal) => removeAbortListener(signal, second) };
    addAbortListener(controller.signal, first);
    addAbortListener(controller.signal, second);
    expect(() => controller.abort()).not.toThrow();
    expect(listenersOn(controller.signal)).toBe(0);
  });

  it("RE-10 does nothing when a signal that nobody knows is let go", () => {
    expect(() => removeAbortListener(new AbortController().signal, recorder())).not.toThrow();
  });
});

describe("isAbortSignal", () => {
  it("RE-10 knows a signal by what can be done with it", () => {
    expect(isAbortSignal(new AbortController().signal)).toBe(true);
    expect(isAbortSignal(AbortSignal.abort())).toBe(true);
    expect(isAbortSignal({ aborted: false, addEventListener() {}, removeEventListener() {} })).toBe(true);
  });

  it.each([
    null,
    undefined,
    "signal",
    {},
    new AbortController(),
    { aborted: false },
    { aborted: false, addEventListener() {} },
    { aborted: false, removeEventListener() {} },
    { addEventListener() {}, removeEventListener() {} },
  ])("RE-10 does not take %s for one", (value) => {
    expect(isAbortSignal(value)).toBe(false);
  });
});

describe("LightSignal", () => {
  it("RE-10 tells every listener once, and nobody who has left", () => {
    const light = new LightSignal();
    const [first, second, left] = [recorder(), recorder(), recorder()];
    for (const listener of [first, second, left]) addAbortListener(light, listener);
    removeAbortListener(light, left);
    light.abort("reason");
    light.abort("again");
    expect(first.seen).toEqual([light]);
    expect(second.seen).toEqual([light]);
    expect(left.seen).toEqual([]);
    expect(light).toMatchObject({ aborted: true, reason: "reason" });
  });

  it("RE-10 the first to leave makes room for the next", () => {
    const light = new LightSignal();
    const [first, second] = [recorder(), recorder()];
    addAbortListener(light, first);
    removeAbortListener(light, first);
    addAbortListener(light, second);
    light.abort(undefined);
    expect(first.seen).toEqual([]);
    expect(second.seen).toEqual([light]);
  });

  it("RE-10 counts as a signal", () => {
    expect(isAbortSignal(new LightSignal())).toBe(true);
  });
});
