import { getEventListeners } from "node:events";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it, onTestFinished } from "vitest";
import { OperationRegistry } from "../src/index.ts";
import { query, sleep, stream } from "./make-operation.ts";
import { scaled } from "./runs.ts";

/** A million with `WAYBILL_RUNS=50`; never so few that what each of them keeps would not show. */
const CALLS = Math.max(20_000, scaled(20_000));
const BATCH = 500;

const registry = new OperationRegistry([
  query("leak.sync", () => 1),
  query("leak.async", async () => 1),
  query("leak.soon", () => sleep(1)),
  query("leak.throws", () => {
    throw new Error("x");
  }),
  query("leak.rejects", async (_, { signal }) => {
    signal.throwIfAborted();
    throw new Error("x");
  }),
  query("leak.obeys", (_, { signal }) => {
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  }),
  query("leak.ignores", () => sleep(2)),
  query("leak.nests", (_, { execute }) => execute("leak.obeys")),
  stream("leak.ticks", async function* (_, { signal }) {
    for (let n = 0; n < 3; n++) {
      signal.throwIfAborted();
      yield n;
      await null;
    }
  }),
]);

const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;

/** One of many kinds of call; `shared` outlives them all. */
async function callNumber(n: number, shared: AbortSignal): Promise<void> {
  const own = new AbortController();
  const both = { signal: own.signal, timeoutMs: 60_000 };
  switch (n % 12) {
    case 0:
      return void (await registry.execute("leak.sync", {}, { signal: shared, timeoutMs: 60_000 }));
    case 1:
      return void (await registry.execute("leak.async", {}, { signal: shared, timeoutMs: 60_000 }));
    case 2:
      return void (await registry.execute("leak.soon", {}, { signal: shared, timeoutMs: 60_000 }));
    case 3:
      return void (await registry.execute("leak.throws", {}, { signal: shared, timeoutMs: 60_000 }));
    case 4:
      return void (await registry.execute("leak.rejects", {}, { signal: shared, timeoutMs: 60_000 }));
    case 5:
      return void (await registry.execute("leak.obeys", {}, { signal: shared, timeoutMs: 1 }));
    case 6:
      return void (await registry.execute("leak.ignores", {}, { signal: shared, timeoutMs: 1 }));
    case 7:
      return void (await registry.execute("leak.nests", {}, { signal: shared, timeoutMs: 1 }));
    case 8:
      own.abort();
      return void (await registry.execute("leak.async", {}, both));
    case 9: {
      const pending = registry.execute(n % 24 === 9 ? "leak.nests" : "leak.ignores", {}, both);
      own.abort();
      return void (await pending);
    }
    case 10:
      await registry.execute("leak.async", {}, both);
      return own.abort();
    default:
      for await (const _ of registry.subscribe("leak.ticks", {}, { signal: shared, timeoutMs: 60_000 })) {
        if (n % 24 === 11) break;
      }
  }
}

async function runCalls(count: number, shared: AbortSignal): Promise<void> {
  for (let first = 0; first < count; first += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, count - first) }, (_, i) =>
      callNumber(first + i, shared),
    );
    await Promise.allSettled(batch);
  }
}

describe("many calls with aborts and timeouts", () => {
  it(
    "RE-10 leave no timer, no listener, no pending entry and no unhandled rejection",
    async () => {
      const unhandled: unknown[] = [];
      const record = (reason: unknown) => void unhandled.push(reason);
      process.on("unhandledRejection", record);
      onTestFinished(() => void process.off("unhandledRejection", record));
      const shared = new AbortController();
      const before = timers();
      await runCalls(CALLS, shared.signal);
      await sleep(20);
      expect(unhandled).toEqual([]);
      // The test runner may end timers of its own meanwhile.
      expect(timers()).toBeLessThanOrEqual(before);
      expect(getEventListeners(shared.signal, "abort")).toEqual([]);
    },
    CALLS + 60_000,
  );

  it("RE-10 keep one listener on a signal that thousands of pending calls share, and end together", async () => {
    const shared = new AbortController();
    const pending = Array.from({ length: 5_000 }, () =>
      registry.execute("leak.obeys", {}, { signal: shared.signal, timeoutMs: 60_000 }),
    );
    expect(getEventListeners(shared.signal, "abort")).toHaveLength(1);
    const before = timers();
    shared.abort();
    const results = await Promise.allSettled(pending);
    expect(results.every((result) => result.status === "rejected" && result.reason.code === "ABORTED")).toBe(
      true,
    );
    expect(getEventListeners(shared.signal, "abort")).toEqual([]);
    expect(before - timers()).toBe(5_000);
  });

  it(
    "RE-10 do not grow the heap under a signal that outlives them",
    async () => {
      setFlagsFromString("--expose-gc");
      const collectGarbage = runInNewContext("gc") as () => void;
      const shared = new AbortController();
      const heap = async () => {
        await sleep(5);
        collectGarbage();
        return process.memoryUsage().heapUsed;
      };
      await runCalls(CALLS / 4, shared.signal);
      const sizes = [await heap()];
      for (let round = 0; round < 3; round++) {
        await runCalls(CALLS / 2, shared.signal);
        sizes.push(await heap());
      }
      // What calls keep makes every round larger, and whatever else the process does makes one of them so: a hundred bytes kept
      // for each call would show.
      const growth = sizes.slice(1).map((size, round) => size - (sizes[round] as number));
      expect(Math.min(...growth)).toBeLessThan(Math.max(CALLS * 50, 1e6));
    },
    CALLS + 60_000,
  );
});
