import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { defineOperation, OperationRegistry, Tasks } from "../src/index.ts";
import { serveMcpHttp, toMcpServer } from "../src/mcp/index.ts";
import { until } from "./make-operation.ts";
import { ROOT } from "./run-node.ts";

const TOKEN = "a-token-of-ada-that-is-long-enough";
const OTHER = "a-token-of-ben-that-is-long-enough";

/** What came over a wire; a test that reads it wrongly fails. */
type Json = Readonly<Record<string, never>>;

/** A server whose one tool runs as a task until the test ends it. */
async function serveUpstream() {
  const ends: ((value: unknown) => void)[] = [];
  const stopped: unknown[] = [];
  const job = defineOperation({
    namespace: "job",
    name: "long",
    durable: true,
    inputSchema: { type: "object" },
    handler: (_, { signal, progress }) => {
      progress({ progress: 1, message: "Looking." });
      return new Promise((resolve, reject) => {
        ends.push(resolve);
        signal.addEventListener("abort", () => {
          stopped.push(signal.reason);
          reject(signal.reason);
        });
      });
    },
  });
  const tasks = new Tasks({ limits: { pollMs: 100 } });
  const server = toMcpServer(new OperationRegistry([job]), { tasks });
  const http = await serveMcpHttp(server);
  onTestFinished(async () => {
    await tasks.close({ timeoutMs: 0 });
    await http.close();
    await server.close();
  });
  return { url: http.url, ends, stopped };
}

/** A gateway in a process of its own, which can be killed and started again on what it kept. */
async function openGateway(upstream: string) {
  const folder = mkdtempSync(join(tmpdir(), "waybill-relay-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const config = {
    mcpServers: { up: { url: upstream, protocol: "2026" } },
    state: { store: { files: "state" } },
    tasks: { afterMs: 200, pollMs: 100 },
    serve: { auth: { tokens: { ada: { token: TOKEN }, ben: { token: OTHER } } } },
  };
  writeFileSync(join(folder, "waybill.config.json"), JSON.stringify(config));
  const start = async () => {
    const args = ["serve", "--port", "0", "--lame-duck", "0", "--log-format", "json"];
    const child = spawn(process.execPath, [join(ROOT, "dist/cli.js"), ...args], {
      cwd: folder,
      env: { ...process.env, NODE_OPTIONS: "", WAYBILL_STATE_DIR: join(folder, "own") },
      stdio: ["ignore", "ignore", "pipe"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    let said = "";
    child.stderr.on("data", (chunk) => (said += chunk));
    const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
    await until(() => /"url":"(http:[^"]+)","msg":"listening"/.test(said) || child.exitCode !== null);
    const [, url = ""] = /"url":"(http:[^"]+)","msg":"listening"/.exec(said) ?? [];
    if (url === "") throw new Error(said);
    const stop = async (signal: NodeJS.Signals): Promise<void> => {
      child.kill(signal);
      await ended;
    };
    return { url, stop };
  };
  return { start };
}

/** Asks a gateway as a client of 2026-07-28 that takes tasks. */
async function ask(
  url: string,
  method: string,
  params: Record<string, unknown>,
  token = TOKEN,
): Promise<Json> {
  const named = params["name"] ?? params["taskId"];
  const response = await fetch(`${url}/mcp`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      authorization: `Bearer ${token}`,
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...(typeof named === "string" && { "mcp-name": named }),
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method,
      params: {
        ...params,
        _meta: {
          "io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
          "io.modelcontextprotocol/clientCapabilities": {
            extensions: { "io.modelcontextprotocol/tasks": {} },
          },
        },
      },
    }),
  });
  const text = await response.text();
  const line = text.split("\n").findLast((each) => each.startsWith("data:")) ?? text;
  return JSON.parse(line.replace(/^data:/, "")) as Json;
}

const resultOf = (answer: Json): Json => answer["result"] ?? { failed: answer["error"] as never };

it("Mcp: a task that a gateway relays outlives a kill of the gateway, runs once, and settles once", {
  timeout: 120_000,
}, async () => {
  const upstream = await serveUpstream();
  const gateway = await openGateway(upstream.url);
  let running = await gateway.start();
  const created = resultOf(await ask(running.url, "tools/call", { name: "up_job_long", arguments: {} }));
  expect(created).toMatchObject({ resultType: "task", status: "working" });
  const taskId: string = created["taskId"] ?? "";
  const stateOf = async (token = TOKEN): Promise<Json> =>
    resultOf(await ask(running.url, "tasks/get", { taskId }, token));
  let told: Json = {};
  const isTold = async (isSo: (state: Json) => boolean): Promise<void> => {
    do told = await stateOf();
    while (!isSo(told));
  };
  await isTold(({ statusMessage }) => statusMessage === "Looking.");
  await running.stop("SIGKILL");
  running = await gateway.start();
  await isTold(({ status }) => status === "working");
  expect(upstream.ends).toHaveLength(1);
  expect(await stateOf(OTHER)).toMatchObject({ failed: { code: -32602 } });
  // The second time it ends as it should: what it relays goes on as well.
  await running.stop("SIGTERM");
  running = await gateway.start();
  upstream.ends[0]?.({ pages: 12 });
  await isTold(({ status }) => status !== "working");
  expect(told).toMatchObject({ status: "completed", result: { structuredContent: { pages: 12 } } });
  const first = JSON.stringify(told);
  await running.stop("SIGKILL");
  running = await gateway.start();
  expect(JSON.stringify(await stateOf())).toBe(first);
  expect([upstream.ends.length, upstream.stopped]).toEqual([1, []]);
});

it("Mcp: cancelling a relayed task cancels that of its server, also after a kill of the gateway", {
  timeout: 120_000,
}, async () => {
  const upstream = await serveUpstream();
  const gateway = await openGateway(upstream.url);
  let running = await gateway.start();
  for (const isKilled of [false, true]) {
    const created = resultOf(await ask(running.url, "tools/call", { name: "up_job_long", arguments: {} }));
    expect(created).toMatchObject({ resultType: "task" });
    const { taskId } = created;
    const before = upstream.stopped.length;
    await until(() => upstream.ends.length > before);
    // What the task of the server is has to be noted before it can be found again.
    let told: Json = {};
    do told = resultOf(await ask(running.url, "tasks/get", { taskId }));
    while (told["statusMessage"] !== "Looking.");
    if (isKilled) {
      await running.stop("SIGKILL");
      running = await gateway.start();
    }
    await ask(running.url, "tasks/cancel", { taskId });
    await until(() => upstream.stopped.length > before);
    expect(resultOf(await ask(running.url, "tasks/get", { taskId }))).toMatchObject({ status: "cancelled" });
  }
});
