import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { query, rejection } from "../../test/make-operation.ts";
import { CallError } from "../core/errors/errors.ts";
import { OperationRegistry } from "../core/registry/registry.ts";
import { serveCalls } from "./call-handler.ts";
import { Circuits } from "./circuits.ts";
import { createMemoryBus } from "./memory-bus.ts";
import { PendingRequestMap, type PendingRequestMapOptions } from "./pending-request-map.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe("Circuits", () => {
  const make = (failures = 1) => new Circuits<string>({ failures, openMs: 100, longestMs: 400 });
  const wait = (ms: number) => vi.advanceTimersByTimeAsync(ms);

  it.each([1, 3])("Call: open after %i failures in a row, no sooner", (failures) => {
    const circuits = make(failures);
    for (let n = 1; n < failures; n++) circuits.failed("a");
    expect(circuits.passes("a")).toBe(true);
    circuits.failed("a");
    expect([circuits.passes("a"), circuits.opened()]).toEqual([false, ["a"]]);
  });

  it("Call: a success in between begins to count anew", () => {
    const circuits = make(2);
    circuits.failed("a");
    circuits.succeeded("a");
    circuits.failed("a");
    expect([circuits.passes("a"), circuits.size]).toEqual([true, 1]);
  });

  it("Call: one call tries it when time is up, and its success closes the circuit", async () => {
    const circuits = make();
    circuits.failed("a");
    await wait(99);
    expect(circuits.stateOf("a")).toBe("open");
    await wait(1);
    expect([circuits.passes("a"), circuits.passes("a"), circuits.stateOf("a")]).toEqual([
      true,
      false,
      "half-open",
    ]);
    circuits.succeeded("a");
    expect([circuits.passes("a"), circuits.size]).toEqual([true, 0]);
  });

  it("Call: a call that tries it and fails opens the circuit for twice as long, up to the longest time", async () => {
    const circuits = make();
    circuits.failed("a");
    for (const openMs of [100, 200, 400, 400]) {
      await wait(openMs - 1);
      expect(circuits.passes("a")).toBe(false);
      await wait(1);
      expect(circuits.passes("a")).toBe(true);
      circuits.failed("a");
    }
  });

  it("Call: what ends while the circuit is open was sent before, and changes nothing", async () => {
    const circuits = make();
    circuits.failed("a");
    await wait(50);
    circuits.failed("a");
    circuits.succeeded("a");
    expect(circuits.stateOf("a")).toBe("open");
    await wait(50);
    expect(circuits.stateOf("a")).toBe("half-open");
  });

  it("Call: a circuit that no call tries is forgotten, and so are the oldest of too many", async () => {
    const circuits = new Circuits<string>({ failures: 1, openMs: 100, longestMs: 100, most: 2 });
    for (const key of ["a", "b", "c"]) circuits.failed(key);
    expect(circuits.opened()).toEqual(["b", "c"]);
    await wait(2_100);
    expect([circuits.opened(), circuits.size]).toEqual([[], 0]);
  });
});

describe("the circuit breaker of operations", () => {
  async function sick(options?: PendingRequestMapOptions) {
    const bus = createMemoryBus();
    const run = vi.fn((): string => {
      throw new CallError("UNAVAILABLE");
    });
    await serveCalls(new OperationRegistry([query("a.x", run), query("a.y", () => "y")]), bus);
    return { run, map: new PendingRequestMap(bus, options) };
  }
  const fail = async (map: PendingRequestMap, times: number) => {
    for (let n = 0; n < times; n++) await rejection(map.call("a.x"));
  };

  it("Call: after 50 failures in a row calls are refused and not sent, then one tries it", async () => {
    const { map, run } = await sick();
    await fail(map, 50);
    expect([run.mock.calls.length, map.openCircuits, map.counters.circuitOpen]).toEqual([50, ["a.x"], 0]);
    const error = await rejection(map.call("a.x"));
    expect(error).toMatchObject({ code: "UNAVAILABLE", retryable: true });
    expect((error as Error).message).toContain("was not sent");
    expect([run.mock.calls.length, map.counters.circuitOpen]).toEqual([50, 1]);
    expect((await map.call("a.y")).data).toBe("y");
    await vi.advanceTimersByTimeAsync(1_000);
    run.mockReturnValue("well");
    expect((await map.call("a.x")).data).toBe("well");
    expect(map.openCircuits).toEqual([]);
  });

  it("Call: only UNAVAILABLE counts, and it never opens where it is turned off", async () => {
    const other = await sick({ circuitBreaker: { failures: 2 } });
    other.run.mockImplementation(() => {
      throw new CallError("EXECUTION_ERROR");
    });
    await fail(other.map, 5);
    expect(other.run).toHaveBeenCalledTimes(5);
    const off = await sick({ circuitBreaker: false });
    await fail(off.map, 60);
    expect(off.run).toHaveBeenCalledTimes(60);
  });

  it.each([{ failures: 0 }, { openMs: -1 }, { longestMs: 1.5 }, { often: 1 }, 3])(
    "Call: %j is the caller's mistake",
    (circuitBreaker) => {
      const options = { circuitBreaker } as PendingRequestMapOptions;
      expect(() => new PendingRequestMap(createMemoryBus(), options)).toThrow(TypeError);
    },
  );
});
