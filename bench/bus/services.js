// @ts-check
import { connect } from "@nats-io/transport-node";
import { ServiceBroker } from "moleculer";
import { connectNatsBus, serveCalls } from "../waybill.js";
import { add, createRegistry } from "./operation.js";

/**
 * The answering side of every peer, in a process of its own: a port goes in, a word comes out when all can be called.
 */
const port = Number(process.argv[2]);

await serveCalls(createRegistry(), await connectNatsBus({ port }));

const connection = await connect({ port });
connection.subscribe("bench.add", {
  callback: (_, message) => message.respond(JSON.stringify(add(message.json()))),
});
await connection.flush();

const broker = new ServiceBroker({
  nodeID: "service",
  transporter: `nats://127.0.0.1:${port}`,
  logger: false,
});
broker.createService({
  name: "bench",
  actions: { add: (/** @type {{ params: { a: number, b: number } }} */ { params }) => add(params) },
});
await broker.start();

process.send?.("ready");
