import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { query, rejection } from "../../../test/make-operation.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { serveCalls } from "../call-handler.ts";
import { PendingRequestMap } from "../pending-request-map.ts";
import { toChunks } from "./chunks.ts";
import type { TransportMessage } from "./transport.ts";
import { createMemoryTransport, MemoryBroker } from "./transport.ts";
import { createWireBus, type WireBusOptions } from "./wire-bus.ts";

const BEAT_MS = 100;
const CAP = 8_192;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Two sides and a third that speaks the protocol by hand. */
async function open(options: WireBusOptions = {}) {
  const broker = new MemoryBroker();
  const transport = () => createMemoryTransport({ broker, maxMessageBytes: 1_024 });
  const own = { beatMs: BEAT_MS, limits: { messageBytes: CAP }, ...options };
  const transports = [transport(), transport(), transport()] as const;
  const [asking, answering] = [createWireBus(transports[0], own), createWireBus(transports[1], own)];
  const stopped = vi.fn();
  const registry = new OperationRegistry([
    query("a.echo", (input) => input),
    query("a.length", (input) => (input as string).length),
    query("a.hang", (_, { signal }) => new Promise(() => signal.addEventListener("abort", stopped))),
  ]);
  const serving = serveCalls(registry, answering);
  await vi.advanceTimersByTimeAsync(1);
  const handler = await serving;
  return {
    asking,
    answering,
    handler,
    map: new PendingRequestMap(asking),
    hand: transports[2],
    transports,
    stopped,
  };
}

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
const say = (message: object) => new TextEncoder().encode(JSON.stringify({ v: 1, ...message }));
const said = ({ data }: TransportMessage) => JSON.parse(new TextDecoder().decode(data));
const request = (operationId = "a.echo") => ({
  type: "call.requested",
  requestId: crypto.randomUUID(),
  operationId,
});

/** What needs timers to run, under timers that stand still. */
async function serveSoon<T>(work: Promise<T>): Promise<T> {
  await pass(5);
  return work;
}

/** Everything that arrives for somebody who asks by hand. */
function listen({ hand }: Awaited<ReturnType<typeof open>>) {
  const heard: ReturnType<typeof said>[] = [];
  hand.subscribe("me.here.now", (message) => void heard.push(said(message)));
  return heard;
}

describe("createWireBus", () => {
  it("Call: a caller that falls silent has its calls aborted where they run", async () => {
    const bench = await open();
    const lost = rejection(bench.map.call("a.hang"));
    await pass(10 * BEAT_MS);
    expect([bench.handler.running, bench.stopped.mock.calls.length]).toEqual([1, 0]);
    await bench.transports[0].close();
    expect(await lost).toMatchObject({ code: "UNAVAILABLE" });
    await pass(6 * BEAT_MS);
    expect([bench.handler.running, bench.stopped.mock.calls.length]).toEqual([0, 1]);
  });

  it("Call: a service that falls silent loses the calls it runs, UNAVAILABLE at the caller", async () => {
    const { map, transports } = await open();
    const lost = rejection(map.call("a.hang"));
    await pass(3 * BEAT_MS);
    await transports[1].close();
    await pass(6 * BEAT_MS);
    expect(await lost).toMatchObject({ code: "UNAVAILABLE", retryable: true });
    expect(map.size).toBe(0);
  });

  it("Call: an input that stops arriving is refused after a few beats, and its room is free again", async () => {
    const bench = await open();
    const heard = listen(bench);
    bench.hand.publish("waybill.call._.a.echo", say({ event: request(), inputBytes: CAP }), "me.here.now");
    await pass(1);
    expect(heard).toMatchObject([{ taken: "send input", peer: expect.any(String) }]);
    await pass(10 * BEAT_MS);
    expect(heard[1]).toMatchObject({ event: { type: "call.error", error: { code: "UNAVAILABLE" } } });
    expect(heard).toHaveLength(2);
    expect(bench.answering.counters.gaps).toBe(1);
  });

  it("Call: an input that arrives slowly is waited for", async () => {
    const bench = await open();
    const heard = listen(bench);
    const input = new TextEncoder().encode(JSON.stringify("x".repeat(3_000)));
    bench.hand.publish(
      "waybill.call._.a.length",
      say({ event: request("a.length"), inputBytes: input.length }),
      "me.here.now",
    );
    await pass(1);
    for (const chunk of toChunks("me.here.now", input, 300)) {
      bench.hand.publish(`waybill.peer.${heard[0].peer}`, chunk);
      await pass(2 * BEAT_MS);
    }
    expect(heard.at(-1)).toMatchObject({ event: { type: "call.responded", output: { data: 3_000 } } });
    expect(bench.answering.counters).toMatchObject({ malformed: 0, oversized: 0 });
  });

  it("Call: a chunk that comes twice, after the last one, does not end the call that runs", async () => {
    const bench = await open();
    const heard = listen(bench);
    bench.hand.publish(
      "waybill.call._.a.hang",
      say({ event: request("a.hang"), inputBytes: 1 }),
      "me.here.now",
    );
    await pass(1);
    const [only] = toChunks("me.here.now", new TextEncoder().encode("1"), 1_024);
    for (let n = 0; n < 2; n++) bench.hand.publish(`waybill.peer.${heard[0].peer}`, only as Uint8Array);
    await pass(1);
    expect([heard.length, bench.handler.running, bench.answering.counters.duplicate]).toEqual([1, 1, 1]);
  });

  it("Call: inputs on their way take eight times the cap at most, small ones count for more than they are", async () => {
    const bench = await open();
    const heard = listen(bench);
    for (let n = 0; n < 20; n++) {
      bench.hand.publish("waybill.call._.a.echo", say({ event: request(), inputBytes: 1 }), `me.here.${n}`);
    }
    await pass(1);
    expect(bench.answering.counters.overLimit).toBe(4);
    bench.hand.publish(
      "waybill.call._.a.echo",
      say({ event: request(), inputBytes: CAP + 1 }),
      "me.here.now",
    );
    await pass(1);
    expect(heard).toMatchObject([{ event: { error: { code: "RESOURCE_EXHAUSTED" } } }]);
  });

  it("Call: a request that names another operation than its subject is dropped and counted", async () => {
    const bench = await open();
    for (const operationId of ["a.hang", "echo", "b.echo", "a.echo.x", ""]) {
      bench.hand.publish("waybill.call._.a.echo", say({ event: request(operationId) }), "me.here.now");
    }
    await pass(1);
    expect([bench.answering.counters.forged, bench.handler.running]).toEqual([5, 0]);
  });

  it("Call: a request that cannot be read is answered as such, where it says who asks", async () => {
    const bench = await open();
    const heard = listen(bench);
    bench.hand.publish(
      "waybill.call._.a.echo",
      say({ event: { ...request(), credit: -1, requestId: "mine" } }),
      "me.here.now",
    );
    bench.hand.publish("waybill.call._.a.echo", say({ event: {} }), "me.here.now");
    await pass(1);
    expect(heard).toMatchObject([
      { event: { type: "call.error", requestId: "mine", error: { code: "VALIDATION_ERROR" } } },
    ]);
    expect(bench.answering.counters).toMatchObject({ malformed: 1, unexpected: 1 });
  });

  it("Call: buses with different prefixes do not meet, and users are told apart", async () => {
    const { map, hand } = await open({ prefix: "one" });
    expect((await map.call("a.echo", 1)).data).toBe(1);
    const other = new PendingRequestMap(createWireBus(hand, { prefix: "two" }));
    expect(await rejection(other.call("a.echo", 1))).toMatchObject({ code: "NO_RESPONDER" });
  });

  it("Call: the limits of a bus are checked when it is made", () => {
    expect(() => createWireBus(createMemoryTransport(), { limits: { messageBytes: 0 } })).toThrow(TypeError);
    expect(() => createWireBus(createMemoryTransport(), { user: "a.b" })).toThrow(TypeError);
    for (const beatMs of [0, -1, 9, Number.NaN, Number.POSITIVE_INFINITY, "100"]) {
      expect(() => createWireBus(createMemoryTransport(), { beatMs: beatMs as number })).toThrow(/beatMs/);
    }
    expect(vi.getTimerCount()).toBe(0);
    expect(() => createWireBus(createMemoryTransport(), { beatMs: 10 })).not.toThrow();
  });

  it("Call: a bus that is closed takes part in nothing any more", async () => {
    const bus = createWireBus(createMemoryTransport());
    await bus.close();
    const serving = serveCalls(new OperationRegistry([query("a.x", () => 1)]), bus);
    expect(await rejection(serving)).toMatchObject({ code: "UNAVAILABLE" });
    expect(await rejection(new PendingRequestMap(bus).call("a.x"))).toMatchObject({ code: "UNAVAILABLE" });
    expect(() => bus.watch({ found() {}, gone() {} })).toThrow("closed");
  });

  it("Call: an operation that leaves a busy service is not listened for any longer than its calls run", async () => {
    const broker = new MemoryBroker();
    const transport = createMemoryTransport({ broker });
    const open = new Set<string>();
    const watched = Object.defineProperties(transport, {
      subscribe: {
        value: (...given: Parameters<typeof transport.subscribe>) => {
          const made = Object.getPrototypeOf(transport).subscribe.apply(transport, given);
          open.add(given[0]);
          const stop = () => {
            open.delete(given[0]);
            made.stop();
          };
          return { ...made, stop };
        },
      },
    });
    const bus = createWireBus(watched, { beatMs: BEAT_MS });
    const registry = new OperationRegistry([query("a.slow", () => new Promise(() => {}))]);
    const handler = await serveSoon(serveCalls(registry, bus));
    const map = new PendingRequestMap(createWireBus(createMemoryTransport({ broker }), { beatMs: BEAT_MS }));
    const slow = rejection(map.call("a.slow"));
    await pass(5);
    registry.register(query("a.brief", () => 1));
    await pass(5);
    registry.remove("a.brief");
    await pass(5);
    expect([...open].filter((subject) => subject === "waybill.stop.*.a.brief")).toHaveLength(1);
    await map.close();
    await slow;
    await pass(5);
    expect([...open].filter((subject) => subject === "waybill.stop.*.a.brief")).toEqual([]);
    await serveSoon(handler.drain({ timeoutMs: 0 }));
  });
});
