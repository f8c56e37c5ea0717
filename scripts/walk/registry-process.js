// @ts-check
// One end of a walk without a gateway. `local` calls an operation of its own whenever it is told to; `ask <port>` and `answer <port>`
// are the two ends of a call over NATS.
import { createRemoteRegistry, serveCalls } from "../../src/call/index.ts";
import { connectNatsBus } from "../../src/call/nats/index.ts";
import { defineOperation, OperationRegistry, Type } from "../../src/index.ts";

const [role = "", port = "0"] = process.argv.slice(2);
const add = defineOperation({
  namespace: "walk",
  name: "add",
  version: "1.0.0",
  type: "query",
  description: "Adds two numbers.",
  inputSchema: Type.Object({ a: Type.Number(), b: Type.Number() }),
  outputSchema: Type.Object({ sum: Type.Number() }),
  handler: ({ a, b }) => ({ sum: a + b }),
});

/** @type {import("waybill").Executor} */
const registry =
  role === "ask"
    ? await createRemoteRegistry(await connectNatsBus({ port: Number(port) }))
    : new OperationRegistry([add]);
if (role === "answer") await serveCalls(registry, await connectNatsBus({ port: Number(port) }));
process.on("message", async (message) => {
  if (message !== "call") return;
  const { data } = await registry.execute("walk.add", { a: 1, b: 2 });
  process.send?.({ called: data });
});
process.send?.({ ready: true });
