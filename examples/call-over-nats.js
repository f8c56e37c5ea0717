// @ts-check
// A fleet of two behind a broker, found by discovery, and a durable call whose result is fetched by its id. Uses the broker at NATS_URL,
// or starts a nats-server of its own; without either it says so and ends.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineOperation, OperationRegistry, Type } from "waybill";
import { createRemoteRegistry, serveCalls } from "waybill/call";
import { connectNatsBus, openDurableCalls, serveDurableCalls } from "waybill/call/nats";

const broker = await startBroker();
if (broker === undefined) {
  console.log("Skipped: there is no nats-server on the PATH, and NATS_URL is not set.");
  process.exit(0);
}

/** @param {string} member */
const createService = (member) =>
  new OperationRegistry([
    defineOperation({
      namespace: "report",
      name: "render",
      version: "1.0.0",
      type: "mutation",
      description: "Renders a report.",
      durable: true,
      inputSchema: Type.Object({ title: Type.String() }),
      outputSchema: Type.Object({ by: Type.String(), bytes: Type.Unknown() }),
      handler: async ({ title }) => ({ by: member, bytes: new TextEncoder().encode(title) }),
    }),
  ]);

// Two members of one fleet; in real life each is a process of its own.
const fleet = await Promise.all(
  ["first", "second"].map(async (member) => {
    const bus = await connectNatsBus({ servers: broker.url });
    const registry = createService(member);
    const service = await serveCalls(registry, bus, { name: "reports" });
    const worker = await serveDurableCalls(bus.connection, registry);
    return { bus, service, worker };
  }),
);

const bus = await connectNatsBus({ servers: broker.url });
const remote = await createRemoteRegistry(bus);
console.log(
  "found",
  remote.operations.map(({ id }) => id),
  "at",
  remote.services.length,
  "services",
);

const by = new Set();
for (let n = 0; n < 40; n++) {
  const { data } = await remote.execute("report.render", { title: `Report ${n}` });
  const { by: member, bytes } = /** @type {{ by: string, bytes: Uint8Array }} */ (data);
  assert.equal(new TextDecoder().decode(bytes), `Report ${n}`); // bytes arrive as bytes
  by.add(member);
}
assert.deepEqual([...by].sort(), ["first", "second"]);

// A durable call is kept by the broker: submitted now, fetched later, run once however often it is submitted.
const durable = await openDurableCalls(bus.connection);
const order = { idempotencyKey: `example-${crypto.randomUUID()}` };
const { requestId } = await durable.submit("report.render", { title: "Lasting" }, order);
assert.deepEqual(await durable.submit("report.render", { title: "Lasting" }, order), {
  requestId,
  duplicate: true,
});
const { data } = await durable.result(requestId, { timeoutMs: 10_000 });
console.log("durable result", data);

for (const { bus: memberBus, service, worker } of fleet) {
  await Promise.all([service.drain(), worker.drain()]);
  await memberBus.close();
}
await assert.rejects(remote.execute("report.render", { title: "Nobody" }), { code: "NO_RESPONDER" });
await remote.close();
await bus.close();
broker.stop();

/** @returns {Promise<{ url: string, stop: () => void } | undefined>} */
async function startBroker() {
  const url = process.env["NATS_URL"];
  if (url !== undefined) return { url, stop: () => {} };
  const port = await freePort();
  const store = mkdtempSync(join(tmpdir(), "waybill-example-"));
  const flags = ["-a", "127.0.0.1", "-p", String(port), "-js", "-sd", store];
  const path = `${process.env["PATH"]}:/usr/sbin`;
  const child = spawn("nats-server", flags, {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, PATH: path },
  });
  const isReady = await new Promise((resolve) => {
    child.once("error", () => resolve(false));
    child.stderr.on("data", (text) => String(text).includes("Server is ready") && resolve(true));
  });
  const forget = () => rmSync(store, { recursive: true, force: true });
  if (!isReady) {
    forget();
    return undefined;
  }
  const stop = () => {
    child.once("exit", forget);
    child.kill();
  };
  return { url: `nats://127.0.0.1:${port}`, stop };
}

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
      server.close(() => resolve(port));
    });
  });
}
