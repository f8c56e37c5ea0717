// @ts-check
// The gateway under test and all that stands behind it, each in a process of its own.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { bytesOfProgram } from "./heap-snapshot.js";

/** What is seen at rest, so many minutes after the start; `objects` are the bytes of all objects that the program made and still holds. */
/** @typedef {{ minutes: number, calls: number, objects: number, fds: number, children: number, rss: number, heapUsed: number, resources: Record<string, number> }} Sample */
/** @typedef {{ code: number | null, left: number, stderr: string, counted: number, inFlight: number }} End */

const HERE = fileURLToPath(new URL(".", import.meta.url));
const MODULES = fileURLToPath(new URL("../../node_modules/", import.meta.url));
/** Milliseconds that everything works before the next thing is killed. */
const HURT_EVERY_MS = 2_000;
const DOWN_MS = 300;

/** @param {string} [cli] */
export async function openWorld(cli = fileURLToPath(new URL("../../dist/cli.js", import.meta.url))) {
  const folder = mkdtempSync(join(tmpdir(), "waybill-soak-"));
  const [depot, far] = await Promise.all([openService("http-service.js"), openService("mcp-service.js")]);
  writeFileSync(join(folder, "waybill.config.json"), JSON.stringify(configOf(depot.url, far.url)));
  const args = ["--expose-gc", cli, "serve", "--port", "0", "--lame-duck", "0", "--log-format", "json"];
  const env = { ...process.env, WAYBILL_STATE_DIR: folder, NODE_OPTIONS: "" };
  const gateway = spawn(process.execPath, args, { cwd: folder, env, stdio: ["pipe", "pipe", "pipe"] });
  // Not before all that it said has been read.
  const exited = once(gateway, "close");
  process.once("exit", () => {
    for (const child of [gateway, depot.child, far.child]) child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
  let stderr = "";
  let audited = 0;
  const lines = createInterface({ input: gateway.stderr });
  const listening = new Promise((resolve, reject) => {
    lines.on("line", (line) => {
      if (line.includes('"event":"call"')) audited += 1;
      else if (stderr.length < 1e6) stderr += `${line}\n`;
      const found = /"url":"(http:[^"]+)","msg":"listening"/.exec(line);
      if (found !== null) resolve(found[1]);
    });
    exited.then(() => reject(new Error(`The gateway ended:\n${stderr}`)));
  });
  const url = String(await listening);
  const pid = gateway.pid ?? 0;
  const startedAt = performance.now();
  let kills = 0;

  const read = async () => {
    const text = await (await fetch(`${url}/metrics`, { headers: { connection: "close" } })).text();
    const counted = [...text.matchAll(/^waybill_calls_total\{.*\} (\d+)$/gm)];
    const up = [...text.matchAll(/^waybill_source_up\{.*\} (\d)$/gm)];
    return {
      inFlight: Number(/^waybill_calls_in_flight (\d+)$/m.exec(text)?.[1]),
      counted: counted.reduce((sum, [, value]) => sum + Number(value), 0),
      areUp: up.every(([, value]) => value === "1"),
    };
  };

  /** Asks until there is an answer: on a busy machine one that takes some seconds may come too late. @param {string} operation @param {object} input */
  const ask = async (operation, input) => {
    for (let tries = 1; ; tries++) {
      const response = await fetch(`${url}/call`, {
        method: "POST",
        headers: { "content-type": "application/json", connection: "close" },
        body: JSON.stringify({ operation, input }),
      });
      const answer = /** @type {any} */ (await response.json());
      if (response.status === 200) return answer;
      if (tries === 5) throw new Error(`${operation} does not answer: ${JSON.stringify(answer)}`);
    }
  };

  return {
    url,
    get kills() {
      return kills;
    },
    /**
     * Kills one thing after the other, until then, and starts again what nobody else does. The next one waits until every source is up
     * again, however long that takes on this machine, so that all of them have been up in between.
     * @param {number} until
     */
    async hurt(until) {
      const children = () => {
        for (const child of childrenOf(pid)) process.kill(child, "SIGKILL");
      };
      const ways = [children, () => depot.restart(), () => far.restart()];
      while (performance.now() + HURT_EVERY_MS < until) {
        await sleep(HURT_EVERY_MS);
        await ways[kills % ways.length]?.();
        kills += 1;
        while (performance.now() < until && !(await read()).areUp) await sleep(250);
      }
    },
    /** Waits until every source is up again, and nothing runs. */
    mend: () =>
      eventually("every source up and nothing running", async () => {
        const { areUp, inFlight } = await read();
        return areUp && inFlight === 0;
      }),
    /**
     * What the gateway holds when nobody asks anything of it. What its heap holds is written to `kept`, if that is to be kept.
     * @param {Sample | undefined} first @param {number} calls @param {string} [kept] @returns {Promise<Sample>}
     */
    async look(first, calls, kept) {
      // Connections that are kept for the next request go after some seconds.
      let fds = descriptorsOf(pid);
      for (let [steady, turns] = [0, 0]; steady < 24 && turns < 120; turns++) {
        await sleep(250);
        const now = descriptorsOf(pid);
        steady = now === fds ? steady + 1 : 0;
        fds = now;
        if (first !== undefined && fds <= first.fds && steady >= 4) break;
      }
      const snapshot = kept ?? join(folder, "now.heapsnapshot");
      const { rss, heapUsed, resources } = await ask("local.health", { snapshot });
      const objects = bytesOfProgram(snapshot);
      if (kept === undefined) rmSync(snapshot);
      const minutes = (performance.now() - startedAt) / 60_000;
      return { minutes, calls, objects, fds, children: childrenOf(pid).length, rss, heapUsed, resources };
    },
    /** @returns {Promise<End>} */
    async close() {
      const { counted, inFlight } = await read();
      const children = childrenOf(pid);
      gateway.kill("SIGTERM");
      const [code] = await exited;
      const left = children.filter(
        (child) => statOf(child) !== undefined && statOf(child)?.state !== "Z",
      ).length;
      await Promise.all([depot.kill(), far.kill()]);
      rmSync(folder, { recursive: true, force: true });
      if (counted !== audited) stderr += `soak: ${counted} calls counted, ${audited} records\n`;
      return { code, left, stderr, counted, inFlight };
    },
  };
}

/** @param {string} depot @param {string} far */
function configOf(depot, far) {
  const node = process.execPath;
  return {
    mcpServers: {
      near: { command: node, args: [join(HERE, "mcp-service.js")], policy: { concurrency: 64 } },
      calculator: { command: node, args: [join(MODULES, "@wrtnlabs/calculator-mcp/bin/index.js")] },
      far: { url: far },
    },
    openapi: { depot: { document: `${depot}/openapi.json` } },
    operations: join(HERE, "operations.js"),
    policies: {
      "depot.count": { cacheMs: 1_000, singleFlight: true },
      "far.process": { retry: { attempts: 3, delayMs: 20 } },
    },
  };
}

/** @param {string} script */
async function openService(script) {
  const port = await freePort();
  const launch = async () => {
    const child = spawn(process.execPath, [join(HERE, script), String(port)], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const exited = once(child, "exit");
    const [url] = await once(createInterface({ input: child.stdout }), "line");
    return { child, exited, url: String(url) };
  };
  let running = await launch();
  const kill = async () => {
    running.child.kill("SIGKILL");
    await running.exited;
  };
  return {
    url: running.url,
    get child() {
      return running.child;
    },
    kill,
    async restart() {
      await kill();
      await sleep(DOWN_MS);
      running = await launch();
    },
  };
}

async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  if (address === null || typeof address === "string") throw new Error("No port is free.");
  return address.port;
}

/** @param {string} what @param {() => Promise<boolean>} isSo */
async function eventually(what, isSo) {
  const until = performance.now() + 600_000;
  while (!(await isSo())) {
    if (performance.now() > until) throw new Error(`It never came to be: ${what}.`);
    await sleep(100);
  }
}

/** @param {number} pid */
function descriptorsOf(pid) {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/** @param {number} pid */
function childrenOf(pid) {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((child) => {
    const facts = statOf(child);
    return facts?.parent === pid && facts.state !== "Z";
  });
}

/** @param {number} pid */
function statOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state = "", parent] = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { state, parent: Number(parent) };
  } catch {
    return undefined;
  }
}
