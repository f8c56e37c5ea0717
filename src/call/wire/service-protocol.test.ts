import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { query } from "../../../test/make-operation.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { serveCalls } from "../call-handler.ts";
import { createMemoryTransport, MemoryBroker } from "./transport.ts";
import { createWireBus } from "./wire-bus.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("RE-29 a service answers 100 questions a second, counts one more, and answers again in the next", async () => {
  const broker = new MemoryBroker();
  const bus = createWireBus(Object.assign(createMemoryTransport({ broker }), { servicePrefix: "$SRV" }));
  const serving = serveCalls(new OperationRegistry([query("a.x", () => 1)]), bus, { name: "asked" });
  await vi.advanceTimersByTimeAsync(1);
  await serving;
  const tool = createMemoryTransport({ broker });
  let heard = 0;
  tool.subscribe("answers", () => void heard++);
  const ask = async (times: number) => {
    for (let n = 0; n < times; n++) tool.publish("$SRV.PING.asked", new Uint8Array(), "answers");
    await vi.advanceTimersByTimeAsync(0);
  };
  await ask(100);
  expect([heard, bus.counters.overLimit]).toEqual([100, 0]);
  await ask(1);
  expect([heard, bus.counters.overLimit]).toEqual([100, 1]);
  await vi.advanceTimersByTimeAsync(1_000);
  await ask(1);
  expect([heard, bus.counters.overLimit]).toEqual([101, 1]);
  await bus.close();
});
