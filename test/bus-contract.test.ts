import { afterAll, beforeAll } from "vitest";
import type { Bus } from "../src/call/bus.ts";
import { createMemoryBus } from "../src/call/memory-bus.ts";
import { connectNatsBus } from "../src/call/nats/nats-bus.ts";
import { createMemoryTransport, MemoryBroker } from "../src/call/wire/memory-transport.ts";
import { createWireBus } from "../src/call/wire/wire-bus.ts";
import { type BusPair, describeBus } from "./bus-contract.ts";
import { type NatsServer, natsSuite, startNats } from "./nats-server.ts";

/** Small, so that much goes in chunks; eight times the cap is what uploads may take at a time. */
const SIZES = { message: 4_096, cap: 65_536 };
const OPTIONS = { beatMs: 100, limits: { messageBytes: SIZES.cap } };

/** As many sides as a test asks for, closed together. */
async function pairOf(connect: () => Promise<Bus>): Promise<BusPair> {
  const open: Bus[] = [];
  const more = async () => {
    const bus = await connect();
    open.push(bus);
    return bus;
  };
  const close = async () => {
    for (const bus of open) await bus.close();
  };
  return { asking: await more(), answering: await more(), more, close };
}

describeBus("the in-process bus", {
  connect: () => {
    const bus = createMemoryBus();
    return pairOf(async () => bus);
  },
});

describeBus("the wire bus on an in-process transport", {
  sizes: SIZES,
  connect: () => {
    const broker = new MemoryBroker();
    const transport = () => createMemoryTransport({ broker, maxMessageBytes: SIZES.message });
    return pairOf(async () => createWireBus(transport(), OPTIONS));
  },
});

natsSuite("NATS", () => {
  let server: NatsServer | undefined;
  beforeAll(async () => {
    server = await startNats({ config: `max_payload: ${SIZES.message}` });
  });
  afterAll(async () => {
    await server?.stop();
  });
  describeBus("NATS", {
    sizes: SIZES,
    connect: () => pairOf(() => connectNatsBus({ servers: server?.url ?? "" }, OPTIONS)),
  });
});
