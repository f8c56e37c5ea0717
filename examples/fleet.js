// @ts-check
// Three gateways behind a balancer, with three brokers that keep what they share. A gateway and a broker are killed while orders are placed:
// no order is placed twice. Needs nats-server, on the PATH or where NATS_SERVER says; without it nothing runs, and with CI=true that is a failure.
// The config of the gateways is in examples/fleet, and so is one of nginx, for the place of the balancer.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { createServer as createPort } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const folder = mkdtempSync(join(tmpdir(), "waybill-fleet-"));
const orders = join(folder, "orders.txt");
writeFileSync(orders, "");
/** @type {import("node:child_process").ChildProcess[]} */
const children = [];
process.once("exit", () => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

const PATH = `${process.env["PATH"]}:/usr/sbin`;
const ports = await Promise.all(Array.from({ length: 10 }, freePort));
const [clients, routes, gateways] = [ports.slice(0, 3), ports.slice(3, 6), ports.slice(6, 9)];

// Three brokers, one cluster.
const natsServer = process.env["NATS_SERVER"] ?? "nats-server";
const brokers = clients.map((port, at) => {
  const config = join(folder, `broker-${at}.conf`);
  const others = routes.filter((route) => route !== routes[at]).map((route) => `"nats://127.0.0.1:${route}"`);
  writeFileSync(
    config,
    `server_name: broker-${at}, listen: "127.0.0.1:${port}", jetstream { store_dir: "${folder}/broker-${at}" }
     cluster { name: fleet, listen: "127.0.0.1:${routes[at]}", routes: [${others.join(", ")}] }`,
  );
  return start(natsServer, ["-c", config]);
});
if ((await Promise.all(brokers.map(hasStarted))).includes(false)) {
  const isFailure = process.env["CI"] === "true";
  const missing = `Nothing was run: "${natsServer}" was not found, and the brokers need it. Install nats-server, or name it in NATS_SERVER.`;
  (isFailure ? console.error : console.log)(missing);
  process.exit(isFailure ? 1 : 0);
}

// Three gateways with one config.
const cli = fileURLToPath(new URL("../dist/cli.js", import.meta.url));
const config = fileURLToPath(new URL("fleet/waybill.config.json", import.meta.url));
const addresses = Object.fromEntries(
  clients.map((port, at) => [`BROKER_${at + 1}`, `nats://127.0.0.1:${port}`]),
);
const replicas = gateways.map((port) =>
  start(process.execPath, [cli, "serve", "--config", config], {
    ...addresses,
    PORT: String(port),
    ORDERS: orders,
  }),
);
for (const port of gateways) await untilReady(port);

// A balancer that sends each request to the next gateway, and to another one where nothing listens.
let turn = 0;
const balancer = createServer((incoming, answer) => {
  /** @type {Buffer[]} */
  const body = [];
  incoming.on("data", (chunk) => body.push(chunk));
  incoming.on("end", () => {
    const send = (/** @type {number} */ left) => {
      const port = /** @type {number} */ (gateways[turn++ % gateways.length]);
      const { method, url, headers } = incoming;
      const outgoing = request({
        port,
        host: "127.0.0.1",
        method,
        path: url,
        headers: { ...headers, host: "localhost" },
      });
      outgoing.on("response", (reply) => {
        answer.writeHead(reply.statusCode ?? 502, reply.headers);
        reply.pipe(answer);
        reply.on("error", () => answer.destroy());
      });
      outgoing.on("error", (thrown) => {
        if ("code" in thrown && thrown.code === "ECONNREFUSED" && left > 0) return send(left - 1);
        answer.writeHead(502, { "retry-after": "1" }).end();
      });
      outgoing.end(Buffer.concat(body));
    };
    send(gateways.length);
  });
});
const front = /** @type {number} */ (ports[9]);
await new Promise((resolve) => balancer.listen(front, "127.0.0.1", () => resolve(undefined)));

/** Places an order, with a key that is the same for every try. Gives what came of it: an answer, or that it cannot be known. */
async function place(/** @type {string} */ title, ms = 0) {
  let last;
  for (let attempt = 1; attempt <= 60; attempt++) {
    const answer = await fetch(`http://127.0.0.1:${front}/api/shop/order`, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": title },
      body: JSON.stringify({ title, ms }),
    });
    const body = /** @type {any} */ (await answer.json().catch(() => ({})));
    last = [answer.status, body];
    if (answer.status === 200)
      return { title, body, replayed: answer.headers.get("idempotency-replayed") === "true" };
    if (answer.status === 409 && /not known/.test(body.detail ?? "")) return { title, unknown: true };
    await pause(500);
  }
  throw new Error(`"${title}" came to nothing: ${JSON.stringify(last)}`);
}

// The same key at the next gateway: the first answer.
const first = await place("first");
assert.deepEqual(await place("first"), { ...first, replayed: true });

// A gateway dies while it runs an order, and a broker with it.
const slow = place("slow", 3_000);
await until(() => placed().has("slow"));
const [running] = placed().get("slow") ?? [];
const many = Promise.all(Array.from({ length: 60 }, (_, n) => pause(50 * n).then(() => place(`order-${n}`))));
await pause(500);
replicas.find(({ pid }) => pid === running)?.kill("SIGKILL");
brokers[2]?.kill("SIGKILL");
const results = [...(await many), await slow];

const runs = placed();
assert.deepEqual(
  [...runs].filter(([, pids]) => pids.length > 1),
  [],
  "no order is placed twice",
);
const unknown = results.filter((result) => "unknown" in result).map(({ title }) => title);
for (const { title } of results) if (!unknown.includes(title)) assert.equal(runs.get(title)?.length, 1);
console.log(
  `${results.length} orders, none twice; not known, because their gateway was killed: ${unknown.join(", ")}`,
);
assert.ok(unknown.includes("slow"), "whoever asks for what a dead gateway ran is told that it is not known");
assert.ok(unknown.length <= 5, "nearly all orders are known");

for (const child of children) child.kill("SIGKILL");
balancer.close();
balancer.closeAllConnections();

/** The processes that ran each order. @returns {Map<string, number[]>} */
function placed() {
  const found = new Map();
  for (const line of readFileSync(orders, "utf8").split("\n").filter(Boolean)) {
    const [title, pid] = line.split(" ");
    found.set(title, [...(found.get(title) ?? []), Number(pid)]);
  }
  return found;
}

/** @param {string} command @param {readonly string[]} args @param {object} [env] */
function start(command, args, env = {}) {
  const child = spawn(command, args, {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, PATH, ...env },
  });
  child.stderr?.resume();
  children.push(child);
  return child;
}

/** @param {import("node:child_process").ChildProcess} child @returns {Promise<boolean>} */
function hasStarted(child) {
  return new Promise((resolve) => {
    child.once("error", () => resolve(false));
    child.stderr?.on("data", (text) => String(text).includes("Server is ready") && resolve(true));
  });
}

/** Waits until a gateway is there, and reaches the state that it shares. @param {number} port */
async function untilReady(port) {
  await until(async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/ready`).catch(() => undefined);
    const body = /** @type {any} */ (await answer?.json());
    return answer?.status === 200 && body.state?.status === "up";
  });
}

/** @param {() => unknown} holds */
async function until(holds) {
  for (let tries = 0; tries < 600; tries++) {
    if (await holds()) return;
    await pause(100);
  }
  throw new Error("It never came to be.");
}

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve) => {
    const server = createPort().listen(0, "127.0.0.1", () => {
      const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
      server.close(() => resolve(port));
    });
  });
}
