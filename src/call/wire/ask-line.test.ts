import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { query, stream } from "../../../test/make-operation.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { serveCalls } from "../call-handler.ts";
import { PendingRequestMap } from "../pending-request-map.ts";
import { QUEUE } from "./subjects.ts";
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

/** A caller, and another connection to the same broker. */
function open() {
  const broker = new MemoryBroker();
  const [own, other] = [createMemoryTransport({ broker }), createMemoryTransport({ broker })];
  const bus = createWireBus(own, { beatMs: BEAT_MS });
  return { map: new PendingRequestMap(bus), other };
}

/** A member of the group that takes requests and is never heard of: killed before its first beat. */
function swallow({ other }: ReturnType<typeof open>) {
  const taken = vi.fn();
  const stops = vi.fn();
  other.subscribe("waybill.call.*.a.x", taken, QUEUE);
  other.subscribe("waybill.stop.*.a.x", stops);
  return { taken, stops };
}

/** How something ended, as soon as it has. */
function watched(work: Promise<unknown>) {
  const seen: { error?: unknown } = {};
  work.catch((error: unknown) => {
    seen.error = error;
  });
  return seen;
}

describe("a caller whose request was taken by somebody", () => {
  it.each(["call", "subscription"] as const)(
    "Call: a %s ends with UNAVAILABLE after five beats when whoever took it was killed before its first",
    async (kind) => {
      const bench = open();
      const { taken, stops } = swallow(bench);
      const { map } = bench;
      const seen = watched(kind === "call" ? map.call("a.x") : map.subscribe("a.x").next());
      await pass(4.5 * BEAT_MS);
      expect([seen.error, taken.mock.calls.length]).toEqual([undefined, 1]);
      await pass(BEAT_MS);
      expect(seen.error).toMatchObject({ code: "UNAVAILABLE", retryable: true });
      expect([map.size, stops.mock.calls.length]).toEqual([0, 1]);
    },
  );

  it("Call: a service that is slow and alive keeps its calls and its streams", async () => {
    const { map, other } = open();
    const slow = () => new Promise((resolve) => setTimeout(() => resolve("done"), 10 * BEAT_MS));
    const registry = new OperationRegistry([
      query("a.x", slow),
      stream("a.count", async function* () {
        yield await slow();
      }),
    ]);
    const serving = serveCalls(registry, createWireBus(other, { beatMs: BEAT_MS }));
    await pass(1);
    await serving;
    const [answer, value] = [map.call("a.x"), map.subscribe("a.count").next()];
    await pass(11 * BEAT_MS);
    expect([(await answer).data, (await value).value?.data]).toEqual(["done", "done"]);
    await map.close();
  });

  it("Call: whoever takes a subscription introduces itself at once, whoever takes a call with its next beat", async () => {
    const broker = new MemoryBroker();
    const [hand, answering] = [createMemoryTransport({ broker }), createMemoryTransport({ broker })];
    const registry = new OperationRegistry([
      query("a.x", () => new Promise(() => {})),
      stream("a.count", async function* () {
        await new Promise(() => {});
        yield 1;
      }),
    ]);
    const serving = serveCalls(registry, createWireBus(answering, { beatMs: BEAT_MS }));
    await pass(1);
    await serving;
    const heard: unknown[] = [];
    const hear = (who: string) =>
      hand.subscribe(`me.here.${who}`, ({ data }) => {
        const { taken, peer } = JSON.parse(new TextDecoder().decode(data)) as Record<string, unknown>;
        heard.push([who, taken, typeof peer]);
      });
    for (const [name, credit] of [
      ["x", undefined],
      ["count", 1],
    ] as const) {
      hear(name);
      const event = { type: "call.requested", requestId: name, operationId: `a.${name}`, credit };
      const bytes = new TextEncoder().encode(JSON.stringify({ v: 1, event }));
      hand.publish(`waybill.call._.a.${name}`, bytes, `me.here.${name}`);
    }
    await pass(1);
    expect(heard).toEqual([["count", "running", "string"]]);
    await pass(BEAT_MS);
    expect(heard).toEqual([
      ["count", "running", "string"],
      ["x", "running", "string"],
    ]);
  });
});
