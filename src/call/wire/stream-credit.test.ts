import { expect, it } from "vitest";
import { sleep, stream } from "../../../test/make-operation.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { serveCalls } from "../call-handler.ts";
import { PendingRequestMap } from "../pending-request-map.ts";
import { createMemoryTransport, MemoryBroker } from "./transport.ts";
import { createWireBus } from "./wire-bus.ts";

const SIZE = 50_000;

it("Call: a producer of large values runs ahead of a slow reader by the bytes that were granted and one value, and all arrive", async () => {
  const broker = new MemoryBroker();
  const open = () => createWireBus(createMemoryTransport({ broker, maxMessageBytes: 20_000 }));
  const buses = [open(), open()] as const;
  let yielded = 0;
  const large = stream("a.large", async function* () {
    for (; yielded < 40; yielded++) yield "x".repeat(SIZE);
  });
  await serveCalls(new OperationRegistry([large]), buses[0]);
  const map = new PendingRequestMap(buses[1], { limits: { streamBytes: 4 * SIZE } });
  let read = 0;
  for await (const { data } of map.subscribe("a.large")) {
    read++;
    expect(data).toHaveLength(SIZE);
    await sleep(2);
    // Four are a little more than was granted, for a message is more than its value.
    expect(yielded).toBeLessThanOrEqual(read + 4 + 1);
  }
  expect([read, map.counters.overLimit]).toEqual([40, 0]);
  for (const bus of buses) await bus.close();
});
