import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { query, rejection } from "../../test/make-operation.ts";
import type { AnyOperation } from "../core/operation/operation-types.ts";
import { OperationRegistry } from "../core/registry/registry.ts";
import type { Bus } from "./bus.ts";
import { CallHandler, serveCalls } from "./call-handler.ts";
import type { ServiceNotice } from "./discovery/service-notice.ts";
import { createMemoryBus } from "./memory-bus.ts";
import { PendingRequestMap } from "./pending-request-map.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

/** The bus within a process, with some of it done in another way. */
function busWith(changed: Partial<Bus>): Bus {
  const bus = createMemoryBus();
  return {
    request: (request, asker, identity) => bus.request(request, asker, identity),
    join: (route, take) => bus.join(route, take),
    announce: (notice) => bus.announce(notice),
    watch: (watcher) => bus.watch(watcher),
    flush: () => bus.flush(),
    close: () => bus.close(),
    counters: bus.counters,
    carriesIdentity: true,
    ...changed,
  };
}

/** Something slow that can be told to end, and tells when it is aborted. */
function slow() {
  let end: (value: string) => void = () => {};
  const aborted = vi.fn();
  const operation: AnyOperation = query("a.slow", (_, { signal }) => {
    signal.addEventListener("abort", aborted);
    return new Promise((resolve) => {
      end = resolve;
    });
  });
  return { operation, aborted, end: () => end("done") };
}

/** Whether a promise has settled by now. */
function settling(promise: Promise<unknown>) {
  const state = { isOver: false };
  const over = () => {
    state.isOver = true;
  };
  promise.then(over, over);
  return state;
}

describe("CallHandler.drain", () => {
  it("RE-29 ends only after what was said last has left this process", async () => {
    let flushed: () => void = () => {};
    const flush = () => new Promise<void>((resolve) => (flushed = resolve));
    const handler = await serveCalls(new OperationRegistry([slow().operation]), busWith({ flush }));
    const drained = settling(handler.drain());
    await pass(1_000);
    expect(drained.isOver).toBe(false);
    flushed();
    await pass(0);
    expect(drained.isOver).toBe(true);
  });

  it("Call: does not wait for ever for a connection that is lost, nor for one that fails", async () => {
    const serve = (flush: Bus["flush"]) =>
      serveCalls(new OperationRegistry([slow().operation]), busWith({ flush }));
    const stuck = settling((await serve(() => new Promise(() => {}))).drain());
    const failed = (await serve(() => Promise.reject(new Error("closed")))).drain();
    await expect(failed).resolves.toBeUndefined();
    await pass(4_999);
    expect(stuck.isOver).toBe(false);
    await pass(1);
    expect(stuck.isOver).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("Call: without end waits for what runs, and does not abort it", async () => {
    const bus = createMemoryBus();
    const { operation, aborted, end } = slow();
    const handler = await serveCalls(new OperationRegistry([operation]), bus);
    const answer = new PendingRequestMap(bus).call("a.slow", 1, { timeoutMs: 300_000 });
    const drained = settling(handler.drain({ timeoutMs: Number.POSITIVE_INFINITY }));
    await pass(250_000);
    expect([drained.isOver, aborted.mock.calls.length, handler.running]).toEqual([false, 0, 1]);
    end();
    await pass(0);
    expect((await answer).data).toBe("done");
    expect([drained.isOver, aborted.mock.calls.length]).toEqual([true, 0]);
  });

  it("Call: asked for twice ends both times as soon as nothing runs any more", async () => {
    const bus = createMemoryBus();
    const { operation, end } = slow();
    const handler = await serveCalls(new OperationRegistry([operation]), bus);
    const answer = new PendingRequestMap(bus).call("a.slow");
    const drains = [settling(handler.drain()), settling(handler.drain({ timeoutMs: 10_000 }))];
    await pass(100);
    expect(drains.map(({ isOver }) => isOver)).toEqual([false, false]);
    end();
    await pass(0);
    expect(drains.map(({ isOver }) => isOver)).toEqual([true, true]);
    expect((await answer).data).toBe("done");
    await expect(handler.drain()).resolves.toBeUndefined();
  });

  it.each([-1, Number.NaN, "5", null])(
    "Call: a time of %s is a mistake, and nothing is left",
    async (timeoutMs) => {
      const bus = createMemoryBus();
      const handler = await serveCalls(new OperationRegistry([query("a.x", () => 1)]), bus);
      expect(() => handler.drain({ timeoutMs: timeoutMs as number })).toThrow(TypeError);
      expect((await new PendingRequestMap(bus).call("a.x")).data).toBe(1);
    },
  );
});

describe("CallHandler.start", () => {
  it("Call: works once, and not after a drain", async () => {
    const registry = new OperationRegistry([query("a.x", () => 1)]);
    const bus = createMemoryBus();
    const started = await serveCalls(registry, bus);
    await expect(started.start()).rejects.toThrow("started once");
    await started.drain();
    await expect(started.start()).rejects.toThrow("started once");
    const drained = new CallHandler(registry, bus);
    await drained.drain();
    await expect(drained.start()).rejects.toThrow("started once");
    const error = await rejection(new PendingRequestMap(bus).call("a.x"));
    expect(error).toMatchObject({ code: "NO_RESPONDER" });
  });

  it("Call: that cannot announce rejects with the reason, and answers nothing, later operations neither", async () => {
    const reason = new Error("no room");
    const bus = busWith({ announce: () => Promise.reject(reason) });
    const registry = new OperationRegistry([query("a.x", () => 1)]);
    expect(await rejection(serveCalls(registry, bus))).toBe(reason);
    registry.register(query("a.later", () => 1));
    await pass(1);
    const map = new PendingRequestMap(bus);
    for (const id of ["a.x", "a.later"]) {
      expect(await rejection(map.call(id))).toMatchObject({ code: "NO_RESPONDER" });
    }
  });

  it("Call: on a bus that is closed rejects with UNAVAILABLE", async () => {
    const bus = createMemoryBus();
    await bus.close();
    const error = await rejection(serveCalls(new OperationRegistry([query("a.x", () => 1)]), bus));
    expect(error).toMatchObject({ code: "UNAVAILABLE" });
  });
});

describe("what a CallHandler offers", () => {
  it("Discovery: an operation that is replaced by an internal one is withdrawn, and cannot be called", async () => {
    const bus = createMemoryBus();
    const registry = new OperationRegistry([query("a.x", () => 1), query("a.y", () => 1)]);
    const notices: ServiceNotice[] = [];
    bus.watch({ found: (notice) => void notices.push(notice), gone: () => {} });
    await serveCalls(registry, bus);
    registry.register(
      query("a.x", () => 1, { visibility: "internal" }),
      { replace: true },
    );
    await pass(1);
    const offered = notices.map(({ operations }) => operations.map(({ name }) => name));
    expect(offered).toEqual([["x", "y"], ["y"]]);
    const error = await rejection(new PendingRequestMap(bus).call("a.x"));
    expect(error).toMatchObject({ code: "NO_RESPONDER" });
  });

  it("Call: a namespace passes on what was imported only when it was told to", async () => {
    const bus = createMemoryBus();
    const imported: AnyOperation = { ...query("a.far", () => "far"), source: "call" };
    const registry = new OperationRegistry([query("a.near", () => "near"), imported]);
    const map = new PendingRequestMap(bus);
    const own = await serveCalls(registry, bus, { group: "namespace" });
    expect((await map.call("a.near")).data).toBe("near");
    expect(await rejection(map.call("a.far"))).toMatchObject({ code: "NO_RESPONDER" });
    await own.drain();
    await serveCalls(registry, bus, { group: "namespace", forward: true });
    expect((await map.call("a.far")).data).toBe("far");
  });
});
