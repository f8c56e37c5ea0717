import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { query, rejection } from "../../test/make-operation.ts";
import { CallError } from "../core/errors/errors.ts";
import { OperationRegistry } from "../core/registry/registry.ts";
import { serveCalls } from "./call-handler.ts";
import { createMemoryBus } from "./memory-bus.ts";
import { PendingRequestMap, type PendingRequestMapOptions } from "./pending-request-map.ts";
import { RetryBudget } from "./retry-budget.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const spendAll = (budget: RetryBudget): number => {
  let spent = 0;
  while (spent < 10_000 && budget.spend()) spent++;
  return spent;
};

describe("RetryBudget", () => {
  it("Call: has 1,000 at first, a fifth of the calls and 10 a second, never more than 1,000", async () => {
    const budget = new RetryBudget();
    expect(spendAll(budget)).toBe(1_000);
    for (let n = 0; n < 52; n++) budget.earn();
    expect(spendAll(budget)).toBe(10);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(spendAll(budget)).toBe(20);
    await vi.advanceTimersByTimeAsync(1_000_000);
    expect(spendAll(budget)).toBe(1_000);
  });
});

describe("the retry budget of calls", () => {
  async function sick(options?: PendingRequestMapOptions) {
    const bus = createMemoryBus();
    const run = vi.fn(() => {
      throw new CallError("UNAVAILABLE");
    });
    const operation = query("a.x", run, { annotations: { idempotent: true } });
    await serveCalls(new OperationRegistry([operation]), bus);
    const map = new PendingRequestMap(bus, { circuitBreaker: false, ...options });
    const call = async () => {
      const error = rejection(map.call("a.x", 1, { retry: { attempts: 3, delayMs: 0 } }));
      await vi.advanceTimersByTimeAsync(10);
      return await error;
    };
    return { map, run, call };
  }

  it("Call: the last retry of the budget is sent, one more is not, and the call ends with its failure", async () => {
    const { map, run, call } = await sick({ retryBudget: { ratio: 0, perSecond: 0, burst: 3 } });
    expect(await call()).toMatchObject({ code: "UNAVAILABLE" });
    expect([run.mock.calls.length, map.counters.retried, map.counters.overBudget]).toEqual([3, 2, 0]);
    expect(await call()).toMatchObject({ code: "UNAVAILABLE" });
    expect([run.mock.calls.length, map.counters.retried, map.counters.overBudget]).toEqual([5, 3, 1]);
  });

  it("Call: calls are retried as often as they ask for where it is turned off", async () => {
    const { run, call } = await sick({ retryBudget: false });
    for (let n = 0; n < 600; n++) await call();
    expect(run).toHaveBeenCalledTimes(1_800);
  });

  it.each([{ ratio: -1 }, { burst: Number.NaN }, { perSecond: "1" }, { often: 1 }, 3])(
    "Call: %j is the caller's mistake",
    (retryBudget) => {
      const options = { retryBudget } as unknown as PendingRequestMapOptions;
      expect(() => new PendingRequestMap(createMemoryBus(), options)).toThrow(TypeError);
    },
  );

  it("Call: what a service refused for want of room is tried at another, declared idempotent or not", async () => {
    const bus = createMemoryBus();
    const ran: string[] = [];
    const held = query(
      "a.held",
      (_, { signal }) => new Promise((_, no) => signal.addEventListener("abort", no)),
    );
    const work = (member: string) => query("a.x", () => void ran.push(member));
    const full = await serveCalls(new OperationRegistry([held, work("full")]), bus, {
      limits: { runningCalls: 1 },
    });
    const map = new PendingRequestMap(bus);
    const controller = new AbortController();
    const holding = rejection(map.call("a.held", 1, { signal: controller.signal }));
    await vi.advanceTimersByTimeAsync(1);
    await serveCalls(new OperationRegistry([work("free")]), bus);
    for (let n = 0; n < 4; n++) {
      const answer = map.call("a.x", 1, { retry: { attempts: 2 } });
      await vi.advanceTimersByTimeAsync(30);
      await answer;
    }
    expect([ran, full.counters.overLimit, bus.counters.ejected]).toEqual([Array(4).fill("free"), 1, 1]);
    controller.abort();
    await holding;
  });

  it("Call: what a handler refused for want of room has run, and runs again only where it is idempotent", async () => {
    const bus = createMemoryBus();
    const run = vi.fn(() => {
      throw new CallError("RESOURCE_EXHAUSTED", undefined, { details: { limit: "runningCalls" } });
    });
    for (let n = 0; n < 2; n++) await serveCalls(new OperationRegistry([query("a.x", run)]), bus);
    const error = rejection(new PendingRequestMap(bus).call("a.x", 1, { retry: { attempts: 3 } }));
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await error).toMatchObject({ code: "RESOURCE_EXHAUSTED" });
    expect(run).toHaveBeenCalledTimes(1);
  });
});
