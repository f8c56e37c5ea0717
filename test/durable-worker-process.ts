import { connect } from "@nats-io/transport-node";
import { serveDurableCalls } from "../src/call/nats/durable/durable-worker.ts";
import { defineOperation } from "../src/core/operation/operation.ts";
import { OperationRegistry } from "../src/core/registry/registry.ts";

/** A worker in a process of its own, which tests can kill: `node durable-worker-process.js <url> <prefix> <ackWaitMs>`. */
const [url = "", prefix = "", ackWaitMs = ""] = process.argv.slice(2);

const shared = {
  namespace: "child",
  version: "1.0.0",
  type: "mutation",
  description: "",
  durable: true,
} as const;

/** Tells that it runs, and answers only when asked to be quick. */
function work(id: string) {
  return async (input: unknown): Promise<string> => {
    process.stdout.write(`${id} ${JSON.stringify(input)}\n`);
    const { holdMs } = input as { holdMs: number };
    await new Promise((resolve) => setTimeout(resolve, holdMs));
    return `by ${process.pid}`;
  };
}

const registry = new OperationRegistry([
  defineOperation({ ...shared, name: "once", handler: work("once") }),
  defineOperation({ ...shared, name: "again", annotations: { idempotent: true }, handler: work("again") }),
]);
const connection = await connect({
  servers: url,
  waitOnFirstConnect: true,
  maxReconnectAttempts: -1,
  reconnectTimeWait: 50,
});
await serveDurableCalls(connection, registry, { prefix, ackWaitMs: Number(ackWaitMs) });
process.stdout.write("ready\n");
