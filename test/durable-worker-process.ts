import { connect } from "@nats-io/transport-node";
import { serveDurableCalls } from "../src/call/nats/index.ts";
import { defineOperation, OperationRegistry } from "../src/index.ts";

/** A worker in a process of its own, which tests can kill: `node durable-worker-process.js <url> <prefix> <ackWaitMs>`. */
const [url = "", prefix = "", ackWaitMs = ""] = process.argv.slice(2);

const shared = {
  namespace: "child",
  version: "1.0.0",
  type: "mutation",
  description: "",
  durable: true,
} as const;

/** By the process that takes the call: one that never answers, and one that stops itself while it runs. */
interface WorkInput {
  readonly hangsIn?: number;
  readonly stopsIn?: number;
}

/** Tells that it runs, and that it has run. */
function work(id: string) {
  return async (input: unknown): Promise<string> => {
    process.stdout.write(`${id} ${JSON.stringify(input)}\n`);
    const { hangsIn, stopsIn } = input as WorkInput;
    if (hangsIn === process.pid) await new Promise(() => {});
    if (stopsIn === process.pid) process.kill(process.pid, "SIGSTOP");
    process.stdout.write(`${id} has run\n`);
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
