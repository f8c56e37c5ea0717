// @ts-check
// Tasks that run for seconds while the gateways and brokers of a fleet are killed. What runs them is an MCP server behind the gateways, which is left
// alone: the gateways relay its tasks. Each is held against one law: it is settled once, seen by its owner alone, and lost by nobody.
import { setTimeout as pause } from "node:timers/promises";
import { Agent, fetch } from "undici";
import { openFleet, tokenOf } from "./fleet.js";
import { rage } from "./nemesis.js";

/**
 * @typedef {object} TaskStormOptions
 * @property {number} seconds How long gateways and brokers are killed.
 * @property {number} [running] Tasks that run at a time (default 200).
 * @property {number} [replicaEveryMs] Between two gateways that are killed (default 5,000).
 * @property {number} [brokerEveryMs] Between two brokers that are killed (default 30,000).
 * @property {string} [cli] The command to run.
 * @property {(text: string) => void} [say] Hears how it goes.
 */
/** @typedef {{ status: number, result?: any, error?: any }} Answer */

const OWNERS = ["ann", "ben", "cid"];
const PATIENCE_MS = 180_000;
const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "fleet", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": { extensions: { "io.modelcontextprotocol/tasks": {} } },
};

/** @param {TaskStormOptions} options */
export async function runTaskStorm({
  seconds,
  running = 200,
  replicaEveryMs = 5_000,
  brokerEveryMs = 30_000,
  cli,
  say = () => {},
}) {
  const upstream = await serveJobs();
  /** @type {Awaited<ReturnType<typeof openFleet>> | undefined} */
  let fleet;
  try {
    fleet = await openFleet({
      callers: OWNERS,
      config: {
        mcpServers: { up: { url: upstream.url, protocol: "2026" } },
        // More than one owner begins in the time.
        tasks: { afterMs: 1_000, pollMs: 1_000, ownTasks: 3_000 },
      },
      ...(cli !== undefined && { cli }),
    });
    const clients = new TaskClients(fleet.url);
    const storm = new AbortController();
    const slots = Array.from({ length: running }, () => clients.work(storm.signal));
    const raging = rage(fleet, storm.signal, {
      replicaEveryMs,
      brokerEveryMs,
      onKill: (what) => say(`kills ${what}`),
    });
    const end = performance.now() + seconds * 1_000;
    while (performance.now() < end) {
      await pause(Math.min(10_000, Math.max(1, end - performance.now())));
      say(`${clients.counts.settled} of ${clients.counts.created} tasks settled`);
    }
    storm.abort();
    const kills = await raging;
    say("the storm is over; waits for the tasks that run");
    await Promise.all(slots);
    const twice = upstream.runs.filter((run, at) => upstream.runs.indexOf(run) !== at);
    const deaths = fleet.deaths().map((said) => `A process ended by itself: ${said}`);
    const problems = [...clients.problems, ...twice.map((run) => `Task ${run} ran twice.`), ...deaths];
    await clients.close();
    return { counts: { ...clients.counts, ...kills }, problems };
  } finally {
    await fleet?.close();
    await upstream.close();
  }
}

/** An MCP server whose tool runs as a task for as long as it is told. */
async function serveJobs() {
  // As the package is built, like the gateways: this file runs without a build of its own.
  const built = (/** @type {string} */ name) => import(new URL(`../../dist/${name}`, import.meta.url).href);
  const { defineOperation, OperationRegistry, Tasks } = await built("index.js");
  const { serveMcpHttp, toMcpServer } = await built("mcp.js");
  /** @type {number[]} */
  const runs = [];
  const job = defineOperation({
    namespace: "job",
    name: "run",
    durable: true,
    inputSchema: { type: "object" },
    handler: async (/** @type {any} */ { n, owner, ms }) => {
      runs.push(n);
      await pause(ms);
      return { n, owner };
    },
  });
  const tasks = new Tasks({ limits: { pollMs: 500, running: 10_000, ownTasks: 10_000 } });
  const server = toMcpServer(new OperationRegistry([job]), { tasks });
  const http = await serveMcpHttp(server, { limits: { calls: 10_000 } });
  return {
    url: http.url,
    runs,
    close: async () => {
      await tasks.close({ timeoutMs: 0 });
      await http.close();
      await server.close();
    },
  };
}

class TaskClients {
  /** Creations whose answer was cut off are not known to anybody; all others have to settle. */
  counts = { created: 0, settled: 0, unknown: 0, looks: 0 };
  /** @type {string[]} */
  problems = [];
  #url;
  #agent = new Agent({ connections: 1_000, pipelining: 1 });
  #calls = 0;
  /** What was answered last where it was no answer, for whoever looks into it. */
  #last = "";

  /** @param {string} url */
  constructor(url) {
    this.#url = url;
  }

  async close() {
    await this.#agent.destroy();
  }

  /** One task after the other, until the signal; the last one is waited for. @param {AbortSignal} signal */
  async work(signal) {
    while (!signal.aborted) {
      const n = this.#calls++;
      const owner = OWNERS[n % OWNERS.length] ?? "";
      const ms = 3_000 + Math.random() * 12_000;
      const taskId = await this.#create({ n, owner, ms });
      if (taskId === undefined) continue;
      this.counts.created += 1;
      await this.#follow(taskId, n, owner);
    }
  }

  /** @param {{ n: number, owner: string, ms: number }} input @returns {Promise<string | undefined>} */
  async #create(input) {
    const params = { name: "up_job_run", arguments: input };
    const answer = await this.#send("tools/call", params, input.owner).catch(() => undefined);
    if (answer?.result?.resultType === "task") return answer.result.taskId;
    this.counts.unknown += 1;
    await pause(500);
    return undefined;
  }

  /** @param {string} taskId @param {number} n @param {string} owner */
  async #follow(taskId, n, owner) {
    const end = performance.now() + PATIENCE_MS;
    const stranger = OWNERS[(n + 1) % OWNERS.length] ?? "";
    let isSeen = false;
    for (;;) {
      if (performance.now() > end)
        return void this.problems.push(`Task ${n} was not settled in time: ${this.#last.slice(0, 500)}`);
      await pause(800 + Math.random() * 400);
      const told = await this.#look(taskId, owner);
      if (told === undefined) continue;
      if (!isSeen) {
        isSeen = true;
        const foreign = await this.#look(taskId, stranger);
        if (foreign?.result !== undefined) this.problems.push(`Task ${n} was seen by another caller.`);
      }
      const { result, error } = told;
      if (result === undefined) return void this.problems.push(`Task ${n} is lost: ${JSON.stringify(error)}`);
      if (result.status === "working" || result.status === "input_required") continue;
      await this.#hold(taskId, n, owner, result);
      return;
    }
  }

  /** A task that has settled says the same for ever, at every gateway. @param {string} taskId @param {number} n @param {string} owner @param {any} first */
  async #hold(taskId, n, owner, first) {
    this.counts.settled += 1;
    const found = first.result?.structuredContent;
    if (first.status !== "completed" || found?.n !== n || found?.owner !== owner) {
      this.problems.push(`Task ${n} came to something else: ${JSON.stringify(first).slice(0, 500)}`);
    }
    for (let again = 0; again < 2; again++) {
      const told = await this.#look(taskId, owner);
      if (told !== undefined && JSON.stringify(told.result) !== JSON.stringify(first))
        this.problems.push(`Task ${n} said something else when it was asked again.`);
    }
  }

  /** Nothing where no gateway could tell. @param {string} taskId @param {string} owner @returns {Promise<Answer | undefined>} */
  async #look(taskId, owner) {
    this.counts.looks += 1;
    const answer = await this.#send("tasks/get", { taskId }, owner).catch(() => undefined);
    this.#last = JSON.stringify(answer ?? "no answer");
    if (answer === undefined || answer.status >= 500) return undefined;
    // A gateway that cannot reach what it shares says so; only "there is no such task" is an answer.
    return answer.result !== undefined || answer.error?.code === -32_602 ? answer : undefined;
  }

  /** @param {string} method @param {Record<string, any>} params @param {string} owner @returns {Promise<Answer>} */
  async #send(method, params, owner) {
    const answer = await fetch(`${this.#url}/mcp`, {
      method: "POST",
      dispatcher: this.#agent,
      headers: {
        authorization: `Bearer ${tokenOf(owner)}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        "mcp-name": params["name"] ?? params["taskId"],
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: META } }),
    });
    const text = await answer.text();
    const lines = text.match(/^data: ?(.+)$/gm)?.map((line) => line.replace(/^data: ?/, ""));
    return { status: answer.status, ...JSON.parse(lines?.at(-1) ?? text) };
  }
}
