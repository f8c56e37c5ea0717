import { afterAll, beforeAll } from "vitest";
import { connectNatsBus } from "../src/call/nats/index.ts";
import { CONTRACT_OPTIONS, CONTRACT_SIZES, describeBus, pairOf } from "./bus-contract.ts";
import { type NatsServer, natsSuite, startNats } from "./nats-server.ts";

natsSuite("NATS", () => {
  let server: NatsServer | undefined;
  beforeAll(async () => {
    server = await startNats({ config: `max_payload: ${CONTRACT_SIZES.message}` });
  });
  afterAll(async () => {
    await server?.stop();
  });
  describeBus("NATS", {
    sizes: CONTRACT_SIZES,
    connect: () => pairOf(() => connectNatsBus({ servers: server?.url ?? "" }, CONTRACT_OPTIONS)),
  });
});
