// @ts-check
// Calls of every kind, through both entries of a gateway, some of which are given up or have too little time.
import { setTimeout as sleep } from "node:timers/promises";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";
import { Agent, fetch } from "undici";

const HTTP_WORKERS = 24;
const MCP_WORKERS = 4;
const CALLS_OF_CLIENT = 6;
const ABORTED = 0.02;
const DEADLINE = 0.02;
/** No call takes longer, whatever becomes of it and however busy the machine is. */
const PATIENCE_MS = 300_000;
const RESET = /^fault .*fetch failed \((read ECONNRESET|other side closed)\)$/;
/** Idle connections are closed here long before the gateway does. */
const KEEP_ALIVE = { keepAliveTimeout: 1_000, keepAliveMaxTimeout: 1_000 };
const PINNED = { versionNegotiation: { mode: { pin: "2026-07-28" } } };

const whole = (/** @type {number} */ below) => Math.floor(Math.random() * below);
const numbers = () => ({ a: whole(1_000), b: whole(1_000) });

/** Operations with an input of theirs; all but the last are called through both entries. @type {readonly [string, () => object][]} */
const CALLS = [
  ["local.add", numbers],
  ["local.wait", () => ({ ms: whole(30) })],
  ["near.add", numbers],
  ["near.wait", () => ({ ms: whole(30) })],
  ["near.refuse", () => ({})],
  ["far.add", numbers],
  ["far.wait", () => ({ ms: whole(30) })],
  ["far.process", () => ({})],
  ["calculator.add", numbers],
  ["depot.add", numbers],
  ["depot.wait", () => ({ ms: whole(30) })],
  ["depot.count", () => ({ key: `k${whole(50)}`, ms: whole(10) })],
  ["depot.echo", () => ({ body: { message: "x".repeat(whole(2_000)) } })],
  ["depot.leak", () => ({})],
];

/** @typedef {"plain" | "abort" | "deadline"} Way */

export class Workload {
  total = 0;
  running = 0;
  /** Calls whose connection was closed before any of the answer came. */
  resets = 0;
  /** Outcomes by entry, source and what came of it; how many, and the longest in ms. @type {Map<string, [number, number]>} */
  outcomes = new Map();
  /** What no call may come to. @type {string[]} */
  faults = [];
  #url;
  #agent = new Agent(KEEP_ALIVE);

  /** @param {string} url */
  constructor(url) {
    this.#url = url;
  }

  /** Begins to call; the function that is returned ends that, and waits for what is under way. */
  start() {
    let isOver = false;
    this.#agent = new Agent(KEEP_ALIVE);
    const until = () => isOver;
    const workers = [
      ...Array.from({ length: HTTP_WORKERS }, () => this.#work(until, "http", () => this.#callHttp())),
      ...Array.from({ length: 2 }, () => this.#work(until, "stream", () => this.#stream())),
      ...Array.from({ length: MCP_WORKERS }, (_, i) => this.#workMcp(until, i % 2 === 0 ? {} : PINNED)),
    ];
    return async () => {
      isOver = true;
      await Promise.all(workers);
      await this.#agent.close();
    };
  }

  async close() {
    await this.#agent.destroy();
  }

  /** @param {() => boolean} isOver @param {string} entry @param {() => Promise<string>} call */
  async #work(isOver, entry, call) {
    while (!isOver()) {
      this.total += 1;
      this.running += 1;
      const startedAt = performance.now();
      const late = new AbortController();
      const never = sleep(PATIENCE_MS, "never settled", { signal: late.signal }).catch(() => "");
      const outcome = await Promise.race([call().catch((thrown) => `fault ${describe(thrown)}`), never]);
      late.abort();
      this.running -= 1;
      // Either side may close an idle connection just when the other uses it, the more so the longer a busy machine lets it wait.
      const isReset = RESET.test(outcome);
      if (isReset) this.resets += 1;
      const key = isReset ? `${entry} reset` : `${entry} ${outcome}`;
      const [count, longest] = this.outcomes.get(key) ?? [0, 0];
      this.outcomes.set(key, [count + 1, Math.max(longest, Math.round(performance.now() - startedAt))]);
      if (!isReset && /fault|never/.test(outcome) && this.faults.length < 20) this.faults.push(key);
    }
  }

  /** @param {() => boolean} isOver @param {object} options */
  async #workMcp(isOver, options) {
    const client = new Client(
      { name: "soak", version: "1" },
      { jsonSchemaValidator: new CfWorkerJsonSchemaValidator(), ...options },
    );
    const agent = this.#agent;
    const transport = new StreamableHTTPClientTransport(new URL(`${this.#url}/mcp`), {
      fetch: /** @type {any} */ (
        (/** @type {any} */ url, /** @type {any} */ init) => fetch(url, { ...init, dispatcher: agent })
      ),
    });
    await client.connect(transport, { timeout: PATIENCE_MS });
    // One client has several calls under way.
    const lanes = Array.from({ length: CALLS_OF_CLIENT }, () =>
      this.#work(isOver, "mcp", () => this.#callMcp(client)),
    );
    await Promise.all(lanes);
    // A session that nobody ends is kept for its client to come back, which is no leak.
    await transport.terminateSession();
    await client.close();
  }

  async #callHttp() {
    const [operation, input, way] = choose();
    const source = operation.slice(0, operation.indexOf("."));
    const leaving = way === "abort" ? leave() : undefined;
    try {
      const response = await fetch(`${this.#url}/call`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          ...(way === "deadline" && { "waybill-timeout-ms": String(1 + whole(5)) }),
        },
        body: JSON.stringify({ operation, input }),
        dispatcher: this.#agent,
        ...(leaving && { signal: leaving }),
      });
      const body = /** @type {any} */ (await response.json());
      if (response.status !== 200) {
        const isToolError = body.waybill?.outcome === "tool-error";
        return `${source} ${body.code ?? (isToolError ? "tool error" : `fault: ${JSON.stringify(body)}`)}`;
      }
      return `${source} ${judge(operation, input, body)}`;
    } catch (thrown) {
      if (leaving?.aborted) return `${source} left`;
      throw new Error(`${operation} ${describe(thrown)}`);
    }
  }

  async #stream() {
    const leaving = Math.random() < ABORTED ? leave() : undefined;
    const to = 1 + whole(20);
    try {
      const response = await fetch(`${this.#url}/api/local/ticks?to=${to}&ms=${whole(5)}`, {
        headers: { accept: "text/event-stream" },
        dispatcher: this.#agent,
        ...(leaving && { signal: leaving }),
      });
      const text = await response.text();
      const seen = [...text.matchAll(/"n":(\d+)/g)].map(([, n]) => Number(n));
      const isWhole = seen.length === to && seen.every((n, i) => n === i) && text.includes("event: done");
      return isWhole ? "local ok" : `fault: ${seen} of ${to}`;
    } catch (thrown) {
      if (leaving?.aborted) return "local left";
      throw thrown;
    }
  }

  /** @param {Client} client */
  async #callMcp(client) {
    const [operation, input, way] = choose();
    const source = operation.slice(0, operation.indexOf("."));
    const signal = way === "abort" ? leave() : undefined;
    const timeout = way === "deadline" ? 1 + whole(5) : PATIENCE_MS;
    try {
      const params = { name: operation.replace(".", "_"), arguments: /** @type {any} */ (input) };
      const answer = await client.callTool(params, { timeout, ...(signal && { signal }) });
      if (answer.isError !== true) {
        return `${source} ${judge(operation, input, answer.structuredContent ?? answer.content)}`;
      }
      const code = /"code":"([A-Z_]+)"/.exec(JSON.stringify(answer))?.[1];
      return `${source} ${code ?? "tool error"}`;
    } catch (thrown) {
      if (signal?.aborted) return `${source} left`;
      if (way === "deadline" && /timed out|timeout/i.test(String(thrown))) return `${source} given up`;
      throw new Error(`${operation} ${way} ${describe(thrown)}`);
    }
  }
}

/** @returns {[string, object, Way]} */
function choose() {
  const [operation, make] = CALLS[whole(CALLS.length)] ?? ["local.add", numbers];
  const dice = Math.random();
  return [operation, make(), dice < ABORTED ? "abort" : dice < ABORTED + DEADLINE ? "deadline" : "plain"];
}

/** A signal that comes soon. */
function leave() {
  return AbortSignal.timeout(1 + whole(15));
}

/** Whether a result is the one of this call and of no other. @param {string} operation @param {any} input @param {any} result */
function judge(operation, input, result) {
  const text = JSON.stringify(result);
  const name = operation.slice(operation.indexOf(".") + 1);
  if (name === "add") {
    const sum = String(input.a + input.b);
    return text.includes(sum) ? "ok" : `fault: ${operation} gave ${text} for ${JSON.stringify(input)}`;
  }
  if (name === "wait") return result.waited === input.ms ? "ok" : `fault: ${operation} gave ${text}`;
  if (name === "echo") return result.said === input.body.message ? "ok" : "fault: another echo";
  return "ok";
}

/** @param {any} thrown @returns {string} */
function describe(thrown) {
  const cause = thrown?.cause === undefined ? "" : ` (${thrown.cause?.message ?? thrown.cause})`;
  return `${thrown?.message ?? thrown}${cause}`.slice(0, 300);
}
