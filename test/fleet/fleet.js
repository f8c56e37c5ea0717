// @ts-check
// Three gateways with one config, three brokers in a cluster, a balancer and an upstream, each in a process of its own, all of which end with this one.
import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { findProgram, startNginx } from "./nginx.js";

/** @typedef {{ answered: number[], refused: number, cut: number, in: number[] }} BalancerCounts */
/** @typedef {{ call: number, owner: string }} Run */
/**
 * @typedef {object} FleetOptions
 * @property {string} [cli] The command to run (default: that of `dist`).
 * @property {number} [size] Gateways (default 3).
 * @property {object} [config] Members of the config, besides those that make it a fleet.
 * @property {boolean} [nginx] Puts nginx in the place of our balancer, with the config of the example (default false).
 * @property {readonly string[]} [callers] Names of those who may call, each with the token `tokenOf(name)`; the first is an operator (default none: everybody may).
 */

const CLI = fileURLToPath(new URL("../../dist/cli.js", import.meta.url));
/** Ports that no system gives away by itself: one of them is still free when its process starts again. */
const PORTS = { first: 20_000, count: 12_000 };
const WITHIN_MS = 120_000;
/** What forbids code from strings and `__proto__`, where this process was started so. */
const FLAGS = process.execArgv.filter((flag) => /^--(disallow-code-generation|disable-proto)/.test(flag));
/** The token of a caller. @param {string} name */
export const tokenOf = (name) => `the-token-of-${name}-0123456789`;

/** One process, which may be killed and started again. */
class Member {
  /** @type {import("node:child_process").ChildProcess | undefined} */
  #child;
  #launch;
  #ended = Promise.resolve();
  /** The last that it wrote to stderr. */
  said = "";
  /** How often it ended though nobody had told it to. */
  deaths = 0;

  /** @param {() => import("node:child_process").ChildProcess} launch */
  constructor(launch) {
    this.#launch = launch;
  }

  get pid() {
    return this.#child?.pid ?? 0;
  }

  get isRunning() {
    return this.#child !== undefined;
  }

  get child() {
    return this.#child;
  }

  start() {
    const child = this.#launch();
    this.#child = child;
    child.stderr?.setEncoding("utf8").on("data", (text) => {
      this.said = (this.said + text).slice(-4_000);
    });
    this.#ended = new Promise((resolve) => {
      child.once("close", () => {
        if (this.#child === child) {
          this.#child = undefined;
          this.deaths += 1;
        }
        resolve();
      });
    });
    return child;
  }

  /** Ends it as a crash would, or as it is told to. @param {NodeJS.Signals} signal */
  async end(signal = "SIGKILL") {
    const child = this.#child;
    this.#child = undefined;
    child?.kill(signal);
    await this.#ended;
  }
}

/** Starts all of it and waits until every gateway is ready. @param {FleetOptions} [options] */
export async function openFleet({ cli = CLI, size = 3, config = {}, callers = [], nginx = false } = {}) {
  const natsServer = findProgram("nats-server");
  if (natsServer === undefined) throw new Error("No nats-server was found; install the package nats-server.");
  const folder = mkdtempSync(join(tmpdir(), "waybill-fleet-"));
  const ports = await freePorts(2 * 3 + size + 2);
  const [clients, routes] = [ports.slice(0, 3), ports.slice(3, 6)];
  const gateways = ports.slice(6, 6 + size);
  const [upstreamPort = 0, balancerPort = 0] = ports.slice(6 + size);
  const runs = join(folder, "runs.jsonl");
  writeFileSync(runs, "");

  const path = join(folder, "waybill.config.json");
  const tokens = Object.fromEntries(
    callers.map((name) => [
      name,
      { token: tokenOf(name), scopes: name === callers[0] ? ["waybill:metrics", "waybill:inspect"] : [] },
    ]),
  );
  writeFileSync(
    path,
    JSON.stringify(
      withDefaults(config, {
        name: "fleet",
        openapi: { shop: { document: `http://127.0.0.1:${upstreamPort}/openapi.json` } },
        bus: { nats: clients.map((port) => `nats://127.0.0.1:${port}`) },
        state: { store: "nats", copies: 3 },
        limits: { idempotencyKeys: 1_000_000 },
        serve: {
          lameDuckMs: 2_000,
          sessions: { key: "the-key-of-the-whole-fleet-0123456789" },
          ...(callers.length > 0 && { auth: { tokens } }),
        },
        log: { level: "warn", format: "json" },
      }),
    ),
  );

  const node = (/** @type {readonly string[]} */ args, env = {}) =>
    spawn(process.execPath, [...FLAGS, ...args], {
      cwd: folder,
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      env: { ...process.env, NODE_OPTIONS: "", WAYBILL_STATE_DIR: join(folder, "state"), ...env },
    });
  const script = (/** @type {string} */ name) => fileURLToPath(new URL(name, import.meta.url));
  const upstream = new Member(() => node([script("upstream.js"), String(upstreamPort), runs]));
  const balancer = new Member(
    nginx
      ? () => startNginx(folder, balancerPort, gateways)
      : () => node([script("balancer.js"), String(balancerPort), ...gateways.map(String)]),
  );
  const replicas = gateways.map(
    (port) => new Member(() => node([cli, "serve", "--config", path, "--port", String(port)])),
  );
  const brokers = clients.map((port, at) => {
    const broker = join(folder, `broker-${at}.conf`);
    const others = routes.filter((_, other) => other !== at).map((route) => `"nats://127.0.0.1:${route}"`);
    writeFileSync(
      broker,
      `server_name: broker-${at}, listen: "127.0.0.1:${port}", jetstream { store_dir: "${folder}/broker-${at}" }
       cluster { name: fleet, listen: "127.0.0.1:${routes[at]}", routes: [${others.join(", ")}] }`,
    );
    return new Member(() => spawn(natsServer, ["-c", broker], { stdio: ["ignore", "ignore", "pipe"] }));
  });
  const all = [balancer, ...replicas, ...brokers, upstream];
  const endAll = () => {
    for (const { child } of all) child?.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  };
  process.once("exit", endAll);

  const fleet = {
    /** Where the balancer listens. */
    url: `http://127.0.0.1:${balancerPort}`,
    folder,
    replicas,
    brokers,
    /** Where each gateway listens, past the balancer. */
    urls: gateways.map((port) => `http://127.0.0.1:${port}`),
    /** Waits until a gateway is ready and reaches the state that it shares. @param {number} at */
    async untilReady(at) {
      let last = {};
      const isReady = async () => {
        if (!replicas[at]?.isRunning) throw new Error("it ended");
        const { status, body } = await fleet.ready(at);
        last = { status, body };
        return status === 200 && body.state?.status === "up";
      };
      await until(`gateway ${at} is ready`, isReady).catch((thrown) => {
        throw new Error(`${thrown}, ${JSON.stringify(last)}\n${replicas[at]?.said}`);
      });
    },
    /** What a gateway says at `/ready`; status 0 where nobody listens. @param {number} at @returns {Promise<{ status: number, body: any }>} */
    async ready(at) {
      try {
        const answer = await fetch(`${fleet.urls[at]}/ready`, { headers: { connection: "close" } });
        return { status: answer.status, body: await answer.json() };
      } catch {
        return { status: 0, body: {} };
      }
    },
    /** Calls a gateway past the balancer; the status of its answer, 0 where nobody listens. @param {number} at */
    async lookDirectly(at) {
      const authorization = `Bearer ${tokenOf(callers[0] ?? "")}`;
      const url = `${fleet.urls[at]}/api/shop/look?call=0&owner=none&ms=0`;
      const answer = await fetch(url, { headers: { authorization, connection: "close" } }).catch(
        () => undefined,
      );
      await answer?.text();
      return answer?.status ?? 0;
    },
    /** What the balancer counted so far. @returns {Promise<BalancerCounts>} */
    async counts() {
      const { child } = balancer;
      return await new Promise((resolve, reject) => {
        if (nginx) return resolve({ answered: [], refused: 0, cut: 0, in: gateways.map((_, at) => at) });
        if (child === undefined) return reject(new Error(`The balancer ended:\n${balancer.said}`));
        child.once("message", (counts) => resolve(/** @type {BalancerCounts} */ (counts)));
        child.send("counts");
      });
    },
    /** Every order that was placed, in order. @returns {Run[]} */
    runs() {
      return readFileSync(runs, "utf8")
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line));
    },
    /** Those that ended though nobody had told them to, with what they said last. */
    deaths() {
      return all.filter(({ deaths }) => deaths > 0).map(({ said }) => said);
    },
    async close() {
      await Promise.all([...replicas, balancer].map((member) => member.end()));
      await Promise.all([...brokers, upstream].map((member) => member.end()));
      process.off("exit", endAll);
      rmSync(folder, { recursive: true, force: true });
    },
  };
  try {
    for (const broker of brokers) broker.start();
    await started(upstream);
    for (const replica of replicas) replica.start();
    await Promise.all(replicas.map((_, at) => fleet.untilReady(at)));
    if (nginx) {
      balancer.start();
      await until("nginx leads to a gateway", () =>
        fetch(fleet.url).then(
          () => true,
          () => false,
        ),
      );
      return fleet;
    }
    await started(balancer);
    await until("the balancer knows all gateways", async () => (await fleet.counts()).in.length === size);
    return fleet;
  } catch (thrown) {
    const said = all.map(({ said }) => said).join("\n");
    await fleet.close();
    throw new Error(`The fleet did not start: ${thrown}\n${said}`, { cause: thrown });
  }
}

/** @typedef {Awaited<ReturnType<typeof openFleet>>} Fleet */

/** Objects member by member; anything else as it is given. @param {Record<string, any>} given @param {Record<string, any>} defaults @returns {Record<string, any>} */
function withDefaults(given, defaults) {
  const merged = { ...defaults };
  for (const [name, value] of Object.entries(given)) {
    const known = defaults[name];
    const areBoth = [value, known].every(
      (one) => typeof one === "object" && one !== null && !Array.isArray(one),
    );
    merged[name] = areBoth ? withDefaults(value, known) : value;
  }
  return merged;
}

/** Starts a process of ours and waits until it says that it listens. @param {Member} member */
async function started(member) {
  const child = member.start();
  await new Promise((resolve, reject) => {
    child.once("message", resolve);
    child.once("close", () => reject(new Error(`It ended:\n${member.said}`)));
  });
}

/** Waits until something holds, however often that must be asked. @param {string} what @param {() => boolean | Promise<boolean>} holds */
export async function until(what, holds) {
  const end = performance.now() + WITHIN_MS;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`It never came to be: ${what}.`);
    await pause(50);
  }
}

/** @param {number} count */
async function freePorts(count) {
  /** @type {Set<number>} */
  const found = new Set();
  while (found.size < count) {
    const port = PORTS.first + randomInt(PORTS.count);
    if (await isFree(port)) found.add(port);
  }
  return [...found];
}

/** @param {number} port @returns {Promise<boolean>} */
function isFree(port) {
  return new Promise((resolve) => {
    const probe = createServer().once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}
