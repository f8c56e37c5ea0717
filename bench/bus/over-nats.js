// @ts-check
import { fork } from "node:child_process";
import { once } from "node:events";
import { connect } from "@nats-io/transport-node";
import { ServiceBroker } from "moleculer";
import { connectNatsBus, PendingRequestMap } from "../waybill.js";
import { startNats } from "./nats-server.js";

/** @typedef {import("./in-process.js").Call} Call */

/** Calls of the same operation over one broker, answered by one other process: by us, by the client's own request(), by Moleculer. */
export async function createNatsCalls() {
  const { port, stop } = await startNats();
  const services = fork(new URL("./services.js", import.meta.url), [String(port)]);
  await once(services, "message");

  const bus = await connectNatsBus({ port });
  const map = new PendingRequestMap(bus);
  const connection = await connect({ port });
  const broker = new ServiceBroker({
    nodeID: "client",
    transporter: `nats://127.0.0.1:${port}`,
    logger: false,
  });
  await broker.start();
  await broker.waitForServices("bench");

  /** @type {Record<"waybill" | "request()" | "Moleculer", Call>} */
  const calls = {
    waybill: (input) => map.call("bench.add", input),
    "request()": async (input) =>
      (await connection.request("bench.add", JSON.stringify(input), { timeout: 10_000 })).json(),
    Moleculer: (input) => broker.call("bench.add", input),
  };
  return {
    calls,
    close: async () => {
      await Promise.all([bus.close(), connection.close(), broker.stop()]);
      services.kill();
      stop();
    },
  };
}
