import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { query, stream } from "../../../test/make-operation.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { serveCalls } from "../call-handler.ts";
import { PendingRequestMap } from "../pending-request-map.ts";
import { createRemoteRegistry } from "../remote-registry.ts";
import type { Transport } from "./transport.ts";
import { createMemoryTransport, MemoryBroker } from "./transport.ts";
import { createWireBus } from "./wire-bus.ts";

const BEAT_MS = 100;
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A connection of a process that can stand still: it gives no sign of life then, and what comes for it waits, beats of others aside. */
function pausable(broker: MemoryBroker) {
  const transport = createMemoryTransport({ broker });
  const { publish, subscribe } = transport;
  const waiting: (() => void)[] = [];
  const state = { isPaused: false, isDeaf: false };
  const isBeat = (subject: string) => subject.startsWith("waybill.beat.");
  const own: Partial<Transport> = {
    publish: (subject, ...rest) => {
      if (!state.isPaused || !isBeat(subject)) publish.call(transport, subject, ...rest);
    },
    subscribe: (subject, listener, queue) => {
      const hear: typeof listener = (message) => {
        if (isBeat(subject) || !state.isPaused) listener(message);
        else if (!state.isDeaf) waiting.push(() => listener(message));
      };
      return subscribe.call(transport, subject, hear, queue);
    },
  };
  const resume = () => {
    state.isPaused = false;
    for (const deliver of waiting.splice(0)) deliver();
  };
  return { transport: Object.assign(transport, own), state, resume };
}

function open(asking: { beatMs?: number } = {}, answering: { beatMs?: number } = {}) {
  const broker = new MemoryBroker();
  const [caller, worker] = [pausable(broker), pausable(broker)];
  const buses = {
    asking: createWireBus(caller.transport, { beatMs: BEAT_MS, ...asking }),
    answering: createWireBus(worker.transport, { beatMs: BEAT_MS, ...answering }),
  };
  return { ...buses, map: new PendingRequestMap(buses.asking), caller, worker };
}

async function serve(bus: ReturnType<typeof createWireBus>, ...operations: ReturnType<typeof query>[]) {
  const serving = serveCalls(new OperationRegistry(operations), bus);
  await pass(1);
  return serving;
}

/** How something ended, as soon as it has. */
function watched(work: Promise<unknown>) {
  const seen: { value?: unknown; error?: unknown } = {};
  work.then(
    (value) => Object.assign(seen, { value }),
    (error: unknown) => Object.assign(seen, { error }),
  );
  return seen;
}

const hang = () =>
  query("a.hang", (_, { signal }) => new Promise((_, no) => signal.addEventListener("abort", no)));
const count = () =>
  stream("a.count", async function* () {
    for (let n = 0; ; n++) yield n;
  });

describe("an end that stands still", () => {
  it("Call: a caller whose process stood still hears that its call was given up", async () => {
    const { map, answering, caller } = open();
    const handler = await serve(answering, hang());
    const seen = watched(map.call("a.hang"));
    await pass(2 * BEAT_MS);
    caller.state.isPaused = true;
    await pass(5 * BEAT_MS);
    expect([handler.running, seen]).toEqual([0, {}]);
    caller.resume();
    await pass(1);
    expect(seen.error).toMatchObject({ code: "UNAVAILABLE", retryable: true });
    expect(map.size).toBe(0);
  });

  it("Call: a reader that blocked reads what has arrived, and then hears that the rest is lost", async () => {
    const { map, answering, caller } = open();
    const handler = await serve(answering, count());
    const values = map.subscribe("a.count");
    for (let n = 0; n < 20; n++) expect((await values.next()).value?.data).toBe(n);
    await pass(BEAT_MS);
    caller.state.isPaused = true;
    await pass(5 * BEAT_MS);
    expect(handler.running).toBe(0);
    caller.resume();
    await pass(1);
    let next = 20;
    const rest = watched(
      (async () => {
        for await (const { data } of values) expect(data).toBe(next++);
      })(),
    );
    await pass(1);
    expect(rest.error).toMatchObject({ code: "UNAVAILABLE", retryable: true });
    expect(next).toBeGreaterThanOrEqual(64);
  });

  it("Call: credit for a subscription that is gone is answered, though the word of its end was lost", async () => {
    const { map, answering, caller } = open();
    await serve(answering, count());
    const values = map.subscribe("a.count");
    expect((await values.next()).value?.data).toBe(0);
    await pass(BEAT_MS);
    Object.assign(caller.state, { isPaused: true, isDeaf: true });
    await pass(5 * BEAT_MS);
    Object.assign(caller.state, { isPaused: false, isDeaf: false });
    const reading = watched(
      (async () => {
        for await (const _ of values);
      })(),
    );
    await pass(1);
    expect(reading.error).toMatchObject({ code: "UNAVAILABLE" });
  });

  it("Call: credit that crosses the end of a subscription is answered with nothing", async () => {
    const { map, asking, answering } = open();
    await serve(
      answering,
      stream("a.many", async function* () {
        for (let n = 0; n < 64; n++) yield n;
      }),
    );
    let read = 0;
    const reading = (async () => {
      for await (const _ of map.subscribe("a.many")) read++;
    })();
    await pass(10);
    await reading;
    expect([read, asking.counters.late, asking.counters.forged]).toEqual([64, 0, 0]);
  });

  it("Call: a worker whose process stood still hears that nobody waits for its calls any more", async () => {
    const { map, answering, worker } = open();
    const handler = await serve(answering, hang(), count());
    const seen = [watched(map.call("a.hang"))];
    const values = map.subscribe("a.count");
    await values.next();
    await pass(2 * BEAT_MS);
    worker.state.isPaused = true;
    await pass(5 * BEAT_MS);
    expect(seen[0]?.error).toMatchObject({ code: "UNAVAILABLE" });
    expect(handler.running).toBe(2);
    // Something else keeps the caller beating, so that the worker does not miss it.
    const other = watched(map.call("a.hang"));
    worker.resume();
    await pass(3 * BEAT_MS);
    expect([handler.running, other]).toEqual([1, {}]);
  });

  it("Call: credit that names a subject of the protocol as its reply path is answered nowhere", async () => {
    const broker = new MemoryBroker();
    const hand = createMemoryTransport({ broker });
    const bus = createWireBus(createMemoryTransport({ broker }), { beatMs: BEAT_MS });
    await serve(bus, count());
    const heard = vi.fn();
    const told = vi.fn();
    hand.subscribe("waybill.call._.a.count", heard);
    hand.subscribe("me.here.1", told);
    const peers = new Set<string>();
    hand.subscribe("waybill.beat.*.*", ({ subject }) => void peers.add(subject.replace(".beat.", ".peer.")));
    await pass(2 * BEAT_MS);
    const event = { type: "call.credit", requestId: "r", credit: 1 };
    const send = (line: string) => {
      const bytes = new TextEncoder().encode(JSON.stringify({ v: 1, event, line }));
      for (const peer of peers) hand.publish(peer, bytes);
    };
    send("waybill.call._.a.count");
    send("me.here.1");
    await pass(1);
    expect([heard.mock.calls.length, told.mock.calls.length, bus.counters.malformed]).toEqual([0, 1, 1]);
  });
});

describe("ends whose beats differ", () => {
  it.each([
    ["a worker that beats faster", { beatMs: 1_000 }, { beatMs: 100 }],
    ["a caller that beats faster", { beatMs: 100 }, { beatMs: 1_000 }],
    ["a caller that says nothing and a faster worker", { beatMs: 2_000 }, { beatMs: 300 }],
    ["a worker that says nothing and a faster caller", { beatMs: 300 }, { beatMs: 2_000 }],
  ])("Call: a long call and a slow stream reach their end: %s", async (_, asking, answering) => {
    const bench = open(asking, answering);
    const slow = () => new Promise((resolve) => setTimeout(() => resolve("done"), 20_000));
    const ticks = stream("a.ticks", async function* () {
      yield await slow();
    });
    await serve(bench.answering, query("a.slow", slow), ticks);
    const seen = [watched(bench.map.call("a.slow")), watched(bench.map.subscribe("a.ticks").next())];
    await pass(20_001);
    expect(seen).toMatchObject([{ value: { data: "done" } }, { value: { value: { data: "done" } } }]);
  });

  it("Call: a service that beats slower than those who look for it stays known", async () => {
    const { asking, answering } = open({ beatMs: 100 }, { beatMs: 1_500 });
    await serve(
      answering,
      query("a.x", () => 1),
    );
    const finding = createRemoteRegistry(asking);
    await pass(2_000);
    const remote = await finding;
    const left = vi.fn();
    remote.onServicesChange(left);
    await pass(20_000);
    expect([remote.operations.length, left.mock.calls.length]).toEqual([1, 0]);
    await remote.close();
  });

  it("Call: an end that is gone is missed by the slower of both beats, and nobody can make that longer than 60 s", async () => {
    const bench = open({ beatMs: 100 }, { beatMs: 1_000 });
    await serve(bench.answering, hang());
    const seen = watched(bench.map.call("a.hang"));
    await pass(1_500);
    bench.worker.state.isPaused = true;
    await pass(2_500);
    expect(seen).toEqual({});
    await pass(2_000);
    expect(seen.error).toMatchObject({ code: "UNAVAILABLE" });
    const broker = new MemoryBroker();
    const hand = createMemoryTransport({ broker });
    const handler = await serve(createWireBus(createMemoryTransport({ broker })), hang(), count());
    const event = { type: "call.requested", requestId: "r", operationId: "a.count", credit: 1 };
    const bytes = new TextEncoder().encode(JSON.stringify({ v: 1, event, beats: true, beatMs: 1e300 }));
    hand.publish("waybill.call._.a.count", bytes, "me.here.1");
    await pass(200_000);
    expect(handler.running).toBe(1);
    await pass(15_000);
    expect(handler.running).toBe(0);
  });

  it.each([9, 60_001, Number.NaN, "100"])("Call: a beat of %j is a programmer's mistake", (beatMs) => {
    expect(() => createWireBus(createMemoryTransport(), { beatMs: beatMs as number })).toThrow(
      "beatMs must be a number of milliseconds from 10 to 60000.",
    );
  });
});
