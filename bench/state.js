// @ts-check
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runBench } from "./bench.js";
import { handlers, inputs } from "./fixtures/values.js";
import { interleave } from "./interleave.js";
import { timing } from "./options.js";
import { judgeExtra, printTable } from "./report.js";
import { createGateway, defineOperation, loadConfigObject, serveGateway } from "./waybill.js";

/** What the shared state adds to a call with an idempotency key, and to one without. */
await runBench("state", {
  keys: async (name, options) => {
    const broker = await startBroker();
    const folder = mkdtempSync(join(tmpdir(), "waybill-bench-"));
    const limits = { idempotencyKeys: 10_000_000 };
    const bus = { nats: broker.url };
    const open = (/** @type {object} */ config) => openGateway({ limits, ...config });
    const memory = await open({});
    const files = await open({ state: { store: { files: folder } } });
    const shared = await open({ bus, state: { store: "nats" } });
    let key = 0;
    /** @param {any} gateway */
    const keyed = (gateway) => (/** @type {unknown} */ input) =>
      gateway.executor.execute("bench.change", input, { metadata: { idempotencyKey: `key-${++key}` } });
    /** @param {any} gateway */
    const plain = (gateway) => (/** @type {unknown} */ input) =>
      gateway.executor.execute("bench.change", input);
    const sides = {
      "no key, nothing shared": plain(memory),
      "no key, shared": plain(shared),
      "key in memory": keyed(memory),
      "key in files": keyed(files),
      "key on JetStream": keyed(shared),
    };
    assert.equal((await sides["key on JetStream"](inputs[0])).meta.source, "local");
    assert.equal(shared.state.report().status, "up");
    const comparison = await interleave(sides, { ...timing(options), values: inputs });
    printTable(name, comparison, "no key, nothing shared");
    for (const gateway of [memory, files, shared]) await gateway.close();
    broker.stop();
    rmSync(folder, { recursive: true, force: true });
    return [
      judgeExtra(name, comparison, { side: "key on JetStream", base: "key in memory", limit: 1.5e6 }),
      judgeExtra(name, comparison, { side: "no key, shared", base: "no key, nothing shared", limit: 1e3 }),
    ];
  },
  http: async (name, options) => {
    const broker = await startBroker();
    const limits = { idempotencyKeys: 10_000_000 };
    const memory = await serve({ limits });
    const shared = await serve({ limits, bus: { nats: broker.url }, state: { store: "nats" } });
    let key = 0;
    /** @param {string} url @param {boolean} isKeyed */
    const post = (url, isKeyed) => async (/** @type {unknown} */ input) => {
      const headers = {
        "content-type": "application/json",
        ...(isKeyed && { "idempotency-key": `key-${++key}` }),
      };
      const answer = await fetch(`${url}/api/bench/change`, {
        method: "POST",
        headers,
        body: JSON.stringify(input),
      });
      assert.equal(answer.status, 200);
      return answer.json();
    };
    const sides = {
      "no key": post(memory.url, false),
      "key in memory": post(memory.url, true),
      "key on JetStream": post(shared.url, true),
    };
    const comparison = await interleave(sides, { ...timing(options), values: inputs });
    printTable(name, comparison, "no key");
    for (const { close } of [memory, shared]) await close();
    broker.stop();
    return [judgeExtra(name, comparison, { side: "key on JetStream", base: "key in memory", limit: 1.5e6 })];
  },
});

/** @param {object} config */
async function serve(config) {
  const loaded = await loadConfigObject({ serve: { port: 0 }, ...config }, { baseDir: process.cwd() });
  const gateway = await openGateway(config);
  const server = await serveGateway(gateway, loaded);
  const close = async () => {
    await server.close();
    await gateway.close();
  };
  return { url: server.url, close };
}

/** @param {object} config */
async function openGateway(config) {
  const operation = defineOperation({
    namespace: "bench",
    name: "change",
    version: "1.0.0",
    type: "mutation",
    description: "Returns a small result.",
    handler: handlers.small,
  });
  const loaded = await loadConfigObject(config, { baseDir: process.cwd() });
  return await createGateway({ ...loaded, localOperations: [operation] });
}

/** @returns {Promise<{ url: string, stop(): void }>} */
async function startBroker() {
  const store = mkdtempSync(join(tmpdir(), "waybill-bench-"));
  const port = 30_000 + Math.floor(Math.random() * 2_000);
  const env = { ...process.env, PATH: `${process.env["PATH"]}:/usr/sbin` };
  const child = spawn("nats-server", ["-a", "127.0.0.1", "-p", String(port), "-js", "-sd", store], {
    stdio: ["ignore", "ignore", "pipe"],
    env,
  });
  await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.stderr.on("data", (text) => String(text).includes("Server is ready") && resolve(undefined));
  });
  const stop = () => {
    child.once("exit", () => rmSync(store, { recursive: true, force: true }));
    child.kill();
  };
  return { url: `nats://127.0.0.1:${port}`, stop };
}
