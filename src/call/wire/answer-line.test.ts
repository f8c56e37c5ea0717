import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { query } from "../../../test/make-operation.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { serveCalls } from "../call-handler.ts";
import { toChunks } from "./chunks.ts";
import { createMemoryTransport, MemoryBroker } from "./transport.ts";
import { createWireBus } from "./wire-bus.ts";

const BEAT_MS = 100;
const CHUNK = 300;
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Announces an input and sends a chunk of it now and then; gives what was heard, and how often the handler ran. */
async function upload(fields: { timeLeftMs?: number }, chunks: number, everyMs: number) {
  const broker = new MemoryBroker();
  const [hand, answering] = [createMemoryTransport({ broker }), createMemoryTransport({ broker })];
  const ran = vi.fn();
  const bus = createWireBus(answering, { beatMs: BEAT_MS });
  const serving = serveCalls(new OperationRegistry([query("a.x", ran)]), bus);
  await pass(1);
  await serving;
  const heard: Record<string, unknown>[] = [];
  const to = "me.here.now";
  hand.subscribe(to, ({ data }) => void heard.push(JSON.parse(new TextDecoder().decode(data))));
  const input = new TextEncoder().encode(JSON.stringify("x".repeat(CHUNK * chunks - 2)));
  const event = { type: "call.requested", requestId: "r", operationId: "a.x", ...fields };
  const head = new TextEncoder().encode(JSON.stringify({ v: 1, event, inputBytes: input.length }));
  hand.publish("waybill.call._.a.x", head, to);
  await pass(1);
  const peer = `waybill.peer.${heard[0]?.["peer"]}`;
  for (const chunk of toChunks(to, input, CHUNK + 200)) {
    hand.publish(peer, chunk);
    await pass(everyMs);
  }
  return { heard, ran, bus };
}

const REFUSED = { event: { type: "call.error", error: { code: "UNAVAILABLE" } } };

describe("an input on its way", () => {
  it("Call: is refused once its call has no time left, though chunks keep coming", async () => {
    const { heard, ran, bus } = await upload({ timeLeftMs: 1_000 }, 20, 200);
    expect(heard[1]).toMatchObject(REFUSED);
    expect([heard.length, ran.mock.calls.length, bus.counters.gaps]).toEqual([2, 0, 1]);
  });

  it("Call: is refused after 30 seconds where the call says nothing, or more", async () => {
    for (const fields of [{}, { timeLeftMs: 60_000 }]) {
      const { heard, ran } = await upload(fields, 200, 300);
      expect(heard[1]).toMatchObject(REFUSED);
      expect([heard.length, ran.mock.calls.length]).toEqual([2, 0]);
    }
  });

  it("Call: that is there in time runs, with what is left of its time", async () => {
    const { heard, ran } = await upload({ timeLeftMs: 10_000 }, 20, 200);
    expect(heard[1]).toMatchObject({ event: { type: "call.responded" } });
    expect(ran).toHaveBeenCalledOnce();
  });
});
