import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { query, rejection } from "../../test/make-operation.ts";
import { CallError } from "../core/errors/errors.ts";
import { OperationRegistry } from "../core/registry/registry.ts";
import type { Delivery } from "./bus.ts";
import { serveCalls } from "./call-handler.ts";
import { createMemoryBus } from "./memory-bus.ts";
import { PendingRequestMap } from "./pending-request-map.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** An operation that fails in this way, and what is asked of it. */
async function failing(code: string, idempotent = true) {
  const bus = createMemoryBus();
  const seen: Delivery[] = [];
  const operation = query(
    "a.x",
    () => {
      throw new CallError(code as "UNAVAILABLE");
    },
    { annotations: { idempotent } },
  );
  const authenticate = (delivery: Delivery) => void seen.push(delivery);
  await serveCalls(new OperationRegistry([operation]), bus, { authenticate: authenticate as never });
  return { map: new PendingRequestMap(bus), seen };
}

const attemptsOf = (seen: readonly Delivery[]) => seen.map(({ request }) => request.attempt ?? 1);

describe("retries", () => {
  it.each([1, 2, 5])(
    "Call: tries %i times in all, under one request id, and numbers the tries",
    async (attempts) => {
      const { map, seen } = await failing("UNAVAILABLE");
      const error = rejection(map.call("a.x", 1, { retry: { attempts } }));
      await vi.advanceTimersByTimeAsync(20_000);
      expect(await error).toMatchObject({ code: "UNAVAILABLE" });
      expect(attemptsOf(seen)).toEqual(Array.from({ length: attempts }, (_, n) => n + 1));
      expect(new Set(seen.map(({ request }) => request.requestId)).size).toBe(1);
      expect(map.size).toBe(0);
    },
  );

  it.each(["CONFLICT", "VALIDATION_ERROR", "ACCESS_DENIED", "EXECUTION_ERROR"])(
    "Call: does not try again after %s",
    async (code) => {
      const { map, seen } = await failing(code);
      const error = rejection(map.call("a.x", 1, { retry: { attempts: 5 } }));
      await vi.advanceTimersByTimeAsync(20_000);
      expect(await error).toMatchObject({ code });
      expect(seen).toHaveLength(1);
    },
  );

  it("Call: tries no longer than the deadline of the whole call", async () => {
    const { map, seen } = await failing("UNAVAILABLE");
    const start = performance.now();
    let took = 0;
    const error = rejection(map.call("a.x", 1, { retry: { attempts: 100 }, timeoutMs: 500 })).finally(() => {
      took = performance.now() - start;
    });
    await vi.advanceTimersByTimeAsync(20_000);
    expect(await error).toMatchObject({ code: "UNAVAILABLE" });
    expect(took).toBeLessThanOrEqual(500);
    expect(seen.length).toBeGreaterThan(2);
  });

  it("Call: a map that was closed is not tried again", async () => {
    const { map } = await failing("UNAVAILABLE");
    await map.close();
    let isOver = false;
    const error = rejection(map.call("a.x", 1, { retry: { attempts: 100 } })).finally(() => {
      isOver = true;
    });
    await vi.advanceTimersByTimeAsync(1);
    expect(isOver).toBe(true);
    expect(await error).toMatchObject({ code: "UNAVAILABLE", retryable: false });
  });

  it("Call: a handler that itself says NO_RESPONDER has run, and no other member runs it again", async () => {
    const bus = createMemoryBus();
    const ran = vi.fn(() => {
      throw new CallError("NO_RESPONDER");
    });
    for (let n = 0; n < 2; n++) await serveCalls(new OperationRegistry([query("a.x", ran)]), bus);
    const error = rejection(new PendingRequestMap(bus).call("a.x", 1, { retry: { attempts: 5 } }));
    await vi.advanceTimersByTimeAsync(20_000);
    expect(await error).toMatchObject({ code: "NO_RESPONDER" });
    expect(ran).toHaveBeenCalledOnce();
  });

  it("Call: a try that nobody took is none, so that what is not idempotent runs afterwards as the first", async () => {
    const bus = createMemoryBus();
    const seen: Delivery[] = [];
    const answer = new PendingRequestMap(bus).call("a.x", 1, { retry: { attempts: 20 } });
    await vi.advanceTimersByTimeAsync(200);
    const authenticate = (delivery: Delivery) => void seen.push(delivery);
    await serveCalls(new OperationRegistry([query("a.x", () => "here")]), bus, {
      authenticate: authenticate as never,
    });
    await vi.advanceTimersByTimeAsync(2_000);
    expect((await answer).data).toBe("here");
    expect(attemptsOf(seen)).toEqual([1]);
  });

  it("Call: keeps its one place in the map between tries, and another call is the one refused", async () => {
    const bus = createMemoryBus();
    const map = new PendingRequestMap(bus, { limits: { pendingCalls: 1 } });
    const answer = map.call("a.x", 1, { retry: { attempts: 20 }, requestId: "mine" });
    await vi.advanceTimersByTimeAsync(100);
    expect(map.size).toBe(1);
    expect(await rejection(map.call("a.x"))).toMatchObject({ code: "RESOURCE_EXHAUSTED" });
    await serveCalls(new OperationRegistry([query("a.x", () => "here")]), bus);
    await vi.advanceTimersByTimeAsync(2_000);
    expect((await answer).data).toBe("here");
    expect(map.size).toBe(0);
  });

  it("Call: closing the map ends the pause between two tries", async () => {
    const map = new PendingRequestMap(createMemoryBus());
    const error = rejection(map.call("a.x", 1, { retry: { attempts: 100 } }));
    await vi.advanceTimersByTimeAsync(500);
    await map.close();
    expect(await error).toMatchObject({ code: "ABORTED" });
    expect([map.size, vi.getTimerCount()]).toEqual([0, 0]);
  });

  it("Call: what may not run again ends with the error of the try that may have run", async () => {
    const { map, seen } = await failing("UNAVAILABLE", false);
    const error = rejection(map.call("a.x", 1, { retry: { attempts: 5 } }));
    await vi.advanceTimersByTimeAsync(20_000);
    expect(await error).toMatchObject({ code: "UNAVAILABLE" });
    expect(seen).toHaveLength(1);
  });

  it.each([0, 101, 1.5, Number.NaN, "2"])("Call: %s tries are the caller's mistake", async (attempts) => {
    const { map } = await failing("UNAVAILABLE");
    const error = await rejection(map.call("a.x", 1, { retry: { attempts: attempts as number } }));
    expect(error).toBeInstanceOf(TypeError);
  });

  it("Call: a time for one try that makes no sense is the caller's mistake", async () => {
    const { map } = await failing("UNAVAILABLE");
    const retry = { attempts: 2, attemptTimeoutMs: -1 };
    expect(await rejection(map.call("a.x", 1, { retry }))).toBeInstanceOf(TypeError);
    expect(map.size).toBe(0);
  });

  it("Call: a map that is closed between two tries tries no more", async () => {
    const bus = createMemoryBus();
    const map = new PendingRequestMap(bus);
    const error = rejection(map.call("a.x", 1, { retry: { attempts: 50 } }));
    await map.close();
    const ran = vi.fn();
    await serveCalls(new OperationRegistry([query("a.x", ran)]), bus);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await error).toMatchObject({ code: "ABORTED" });
    expect([ran.mock.calls.length, map.size]).toEqual([0, 0]);
  });

  it("Call: a call that was aborted before it is made says so, however full its map is", async () => {
    const map = new PendingRequestMap(createMemoryBus(), { limits: { pendingCalls: 1 } });
    const other = rejection(map.call("a.x", 1, { retry: { attempts: 50 } }));
    const signal = AbortSignal.abort();
    const error = await rejection(map.call("a.x", 1, { signal, retry: { attempts: 2 } }));
    expect([error, map.counters.overLimit]).toMatchObject([{ code: "ABORTED" }, 0]);
    await map.close();
    await other;
  });
});
