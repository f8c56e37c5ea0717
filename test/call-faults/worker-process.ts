import { setTimeout as pause } from "node:timers/promises";
import { connect } from "@nats-io/transport-node";
import { serveCalls } from "../../src/call/index.ts";
import { createNatsBus, serveDurableCalls } from "../../src/call/nats/index.ts";
import {
  type AnyOperation,
  defineOperation,
  type OperationContext,
  OperationRegistry,
} from "../../src/index.ts";
import { createHistoryWriter } from "./history.ts";
import {
  ACK_WAIT_MS,
  answerOf,
  BEAT_MS,
  PREFIX,
  STORED_AT_A_TIME,
  WORK,
  type WorkInput,
  type WorkOperation,
  YIELD_EVERY_MS,
} from "./workload.ts";

/** A worker of the fault run: `node worker.mjs <url> <history>`; it ends with the process that started it. */
const [url = "", path = ""] = process.argv.slice(2);
const write = createHistoryWriter(path);
process.once("disconnect", () => process.exit());

async function answer(input: WorkInput, { requestId, operationId }: OperationContext): Promise<string> {
  write({ event: "run", id: requestId, operationId, pid: process.pid });
  await pause(input.size);
  write({ event: "done", id: requestId });
  return answerOf(operationId, input);
}

async function* yieldAll(
  input: WorkInput,
  { requestId, operationId }: OperationContext,
): AsyncGenerator<string, void> {
  write({ event: "run", id: requestId, operationId, pid: process.pid });
  for (let index = 0; index < input.size; index++) {
    await pause(YIELD_EVERY_MS);
    yield answerOf(operationId, input, index);
  }
  write({ event: "done", id: requestId });
}

function operationFor({ name, kind, idempotent }: WorkOperation): AnyOperation {
  const shared = { namespace: "fault", name, version: "1.0.0", description: "", annotations: { idempotent } };
  if (kind === "stream") {
    return defineOperation({
      ...shared,
      type: "subscription",
      handler: (input, context) => yieldAll(input as WorkInput, context),
    });
  }
  return defineOperation({
    ...shared,
    type: "mutation",
    durable: kind === "durable",
    handler: (input, context) => answer(input as WorkInput, context),
  });
}

const registry = new OperationRegistry(Object.values(WORK).map(operationFor));
const connection = await connect({
  servers: url,
  waitOnFirstConnect: true,
  maxReconnectAttempts: -1,
  reconnectTimeWait: 50,
});
await serveCalls(registry, createNatsBus(connection, { prefix: PREFIX, beatMs: BEAT_MS }));
for (let isServing = false; !isServing; ) {
  try {
    const options = { prefix: PREFIX, ackWaitMs: ACK_WAIT_MS, concurrency: STORED_AT_A_TIME };
    await serveDurableCalls(connection, registry, options);
    isServing = true;
  } catch {
    // The broker is away at this very moment.
    await pause(100);
  }
}
process.send?.({ ready: true });
