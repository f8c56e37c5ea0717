// @ts-check
// Operations behind a bus are called like local ones: same envelope, same errors, same streams. Nothing has to be installed.
import assert from "node:assert/strict";
import { createClient, defineOperation, OperationRegistry, Type } from "waybill";
import { createMemoryBus, createRemoteRegistry, serveCalls } from "waybill/call";

const greet = defineOperation({
  namespace: "people",
  name: "greet",
  version: "1.0.0",
  type: "query",
  description: "Greets somebody.",
  inputSchema: Type.Object({ name: Type.String({ minLength: 1 }) }),
  outputSchema: Type.Object({ text: Type.String() }),
  handler: async ({ name }) => ({ text: `Hello, ${name}!` }),
});

const countdown = defineOperation({
  namespace: "people",
  name: "countdown",
  version: "1.0.0",
  type: "subscription",
  description: "Counts down.",
  inputSchema: Type.Object({ from: Type.Integer() }),
  outputSchema: Type.Integer(),
  async *handler({ from }) {
    for (let n = from; n >= 0; n--) yield n;
  },
});

const bus = createMemoryBus();
const service = await serveCalls(new OperationRegistry([greet, countdown]), bus, { name: "people" });

// The asking side knows nothing of the registry above but the bus.
const remote = await createRemoteRegistry(bus);
console.log(remote.services.map(({ name, operationIds }) => `${name}: ${operationIds.join(", ")}`));

const client = createClient(remote);
console.log(await client.call(greet, { name: "Ada" }));
await assert.rejects(client.call(greet, { name: "" }), { code: "VALIDATION_ERROR" });

const counted = [];
for await (const n of client.subscribe(countdown, { from: 3 })) counted.push(n);
assert.deepEqual(counted, [3, 2, 1, 0]);

// A deadline reaches the handler; nobody there is told at once.
await assert.rejects(client.call(greet, { name: "Ada" }, { timeoutMs: 0 }), { code: "TIMEOUT" });
await service.drain();
await assert.rejects(client.call(greet, { name: "Ada" }), { code: "NO_RESPONDER" });

await remote.close();
await bus.close();
