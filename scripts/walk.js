// @ts-check
// Prints through which of our files one call runs: `node scripts/walk.js [walk …] [--files]`.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { createServer as createSocketServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const HELP = `Prints which files of src run during one warm call, counted by V8 in the processes of the walk.

  node scripts/walk.js [walk …] [--files]

  local       registry.execute of an operation in this process
  mcp         tools/call over HTTP (2025-11-25) to waybill serve, whose source is an MCP server over stdio
  api         a POST to the HTTP API of waybill serve, whose source is an OpenAPI document
  nats        a call over NATS, with the asking and the answering side; needs nats-server
  inspector   a call from the page of the inspector, of an operation of waybill serve

  --files     lists the files, with how many of their functions ran
  --help      this text
`;

/** @typedef {Readonly<Record<string, number>>} Files how many functions ran, by file */
/** @typedef {{ part: string, files: Files }} Part */

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const COUNT = new URL("./walk/count-files.js", import.meta.url).href;
const WARM_CALLS = 20;
const COUNTED_CALLS = 4;

const OPERATION = `export const add = {
  id: "walk.add", namespace: "walk", name: "add", version: "1.0.0", type: "query", description: "Adds two numbers.",
  inputSchema: { type: "object", required: ["a", "b"], properties: { a: { type: "number" }, b: { type: "number" } } },
  outputSchema: { type: "object", required: ["sum"], properties: { sum: { type: "number" } } },
  handler: ({ a, b }) => ({ sum: a + b }),
};
`;

/** An MCP server over stdio with one tool, in as few lines as that takes. */
const MCP_SERVER = `import { createInterface } from "node:readline";
const schema = (names) => ({ type: "object", required: names, properties: Object.fromEntries(names.map((name) => [name, { type: "number" }])) });
const tool = { name: "add", description: "Adds two numbers.", inputSchema: schema(["a", "b"]), outputSchema: schema(["sum"]) };
const answers = {
  initialize: () => ({ protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "walk", version: "1.0.0" } }),
  "tools/list": () => ({ tools: [tool] }),
  "tools/call": ({ arguments: { a, b } }) => ({ content: [{ type: "text", text: String(a + b) }], structuredContent: { sum: a + b } }),
};
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = answers[method];
  const ended = answer ? { result: answer(params) } : { error: { code: -32601, message: "Method not found" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...ended }));
});
`;

const NUMBERS = {
  type: "object",
  required: ["a", "b"],
  properties: { a: { type: "number" }, b: { type: "number" } },
};
const SUM = { type: "object", required: ["sum"], properties: { sum: { type: "number" } } };
const DOCUMENT = {
  openapi: "3.1.0",
  info: { title: "Sums", version: "1.0.0" },
  paths: {
    "/sums": {
      post: {
        operationId: "add",
        requestBody: { required: true, content: { "application/json": { schema: NUMBERS } } },
        responses: { 200: { description: "The sum", content: { "application/json": { schema: SUM } } } },
      },
    },
  },
};

/** @type {(() => unknown)[]} what is undone at the end, last first */
const endings = [];

/**
 * Starts a process in which files are counted.
 * @param {string} file @param {readonly string[]} args @param {{ cwd?: string }} [settings]
 */
function startCounted(file, args, { cwd } = {}) {
  const child = spawn(process.execPath, ["--import", COUNT, join(ROOT, file), ...args], {
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    env: { ...process.env, NODE_NO_WARNINGS: "1" },
    ...(cwd !== undefined && { cwd }),
  });
  endings.push(() => child.kill("SIGKILL"));
  let said = "";
  child.stderr?.on("data", (chunk) => {
    said = (said + chunk).slice(-20_000);
  });
  /** @param {unknown} message */
  const ask = async (message) => {
    child.send(/** @type {string} */ (message));
    const [answer] = await once(child, "message");
    return answer;
  };
  return {
    child,
    ask,
    said: () => said,
    /** @returns {Promise<Files>} */
    files: async () => (await ask("files")).files,
    ready: async () => {
      const ended = once(child, "exit").then(() => Promise.reject(new Error(`It ended early:\n${said}`)));
      await Promise.race([once(child, "message"), ended]);
    },
  };
}

/** Starts `waybill serve` in a folder with such a config. @param {object} config @param {readonly string[]} [flags] */
async function startGateway(config, flags = []) {
  const folder = mkdtempSync(join(tmpdir(), "waybill-walk-"));
  endings.push(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "operations.mjs"), OPERATION);
  writeFileSync(join(folder, "server.mjs"), MCP_SERVER);
  writeFileSync(join(folder, "sums.json"), JSON.stringify(DOCUMENT));
  writeFileSync(join(folder, "waybill.config.json"), JSON.stringify({ ...config, serve: { port: 0 } }));
  const started = startCounted("src/cli.ts", ["serve", "--lame-duck", "0", ...flags], { cwd: folder });
  for (;;) {
    const [, port] = /http:\/\/127\.0\.0\.1:(\d+)/.exec(started.said()) ?? [];
    if (port !== undefined && (await post(Number(port), "/ready", undefined)).status === 200)
      return { ...started, port: Number(port) };
    if (started.child.exitCode !== null) throw new Error(`waybill serve ended:\n${started.said()}`);
    await wait(50);
  }
}

/**
 * Sends one request over a connection that is kept.
 * @param {number} port @param {string} path @param {unknown} body none makes it a GET @param {Record<string, string>} [headers]
 * @returns {Promise<{ status: number, headers: import("node:http").IncomingHttpHeaders, text: string }>}
 */
function post(port, path, body, headers = {}) {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const length = text === undefined ? {} : { "content-length": Buffer.byteLength(text) };
  const all = { "content-type": "application/json", accept: "application/json", ...length, ...headers };
  return new Promise((resolve, reject) => {
    const method = text === undefined ? "GET" : "POST";
    const sent = request({ host: "127.0.0.1", port, path, method, headers: all }, async (response) => {
      let read = "";
      for await (const chunk of response.setEncoding("utf8")) read += chunk;
      resolve({ status: response.statusCode ?? 0, headers: response.headers, text: read });
    });
    sent.on("error", reject);
    sent.end(text);
  });
}

/**
 * Calls until everything is warm, then counts a few calls one by one, and returns what ran in each of them.
 * @param {() => Promise<string>} call answers with text that holds the sum
 * @param {Readonly<Record<string, { files: () => Promise<Files> }>>} sides
 * @returns {Promise<Part[]>}
 */
async function walkOnce(call, sides) {
  for (let i = 0; i < WARM_CALLS; i++) {
    const said = await call();
    if (!/"sum"\s*:\s*3\b/.test(said)) throw new Error(`The call was answered with ${said}`);
  }
  const names = Object.keys(sides);
  /** @type {Map<string, Files[]>} */
  const taken = new Map(names.map((name) => [name, []]));
  for (let i = 0; i < COUNTED_CALLS; i++) {
    for (const { files } of Object.values(sides)) await untilIdle(files);
    await call();
    await wait(20);
    for (const [name, { files }] of Object.entries(sides)) taken.get(name)?.push(await files());
  }
  return names.map((part) => ({ part, files: inAll(taken.get(part) ?? []) }));
}

const MOST_LOOKS = 30;

/**
 * Waits until nothing of ours runs any more: what is done after an answer, such as writing the log, belongs to the call before.
 * @param {() => Promise<Files>} files
 */
async function untilIdle(files) {
  for (let looks = 0, idle = 0; looks < MOST_LOOKS && idle < 3; looks++) {
    await wait(40);
    idle = Object.keys(await files()).length === 0 ? idle + 1 : 0;
  }
}

/** What ran in each of several calls: what timers do meanwhile is no part of a call. @param {readonly Files[]} calls @returns {Files} */
function inAll([first = {}, ...others]) {
  const kept = Object.entries(first).filter(([file]) => others.every((files) => file in files));
  return Object.fromEntries(
    kept.map(([file, count]) => [file, Math.min(count, ...others.map((files) => files[file] ?? 0))]),
  );
}

async function walkLocal() {
  const registry = startCounted("scripts/walk/registry-process.js", ["local"]);
  await registry.ready();
  return await walkOnce(async () => JSON.stringify(await registry.ask("call")), { call: registry });
}

async function walkMcp() {
  const gateway = await startGateway({
    mcpServers: { up: { command: process.execPath, args: ["server.mjs"] } },
  });
  const accept = { accept: "application/json, text/event-stream" };
  const opening = {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "walk", version: "1.0.0" },
  };
  const initialize = { jsonrpc: "2.0", id: 1, method: "initialize", params: opening };
  const opened = await post(gateway.port, "/mcp", initialize, accept);
  const headers = { ...accept, "mcp-session-id": String(opened.headers["mcp-session-id"]) };
  await post(gateway.port, "/mcp", { jsonrpc: "2.0", method: "notifications/initialized" }, headers);
  const params = { name: "up_add", arguments: { a: 1, b: 2 } };
  const message = { jsonrpc: "2.0", id: 2, method: "tools/call", params };
  return await walkOnce(async () => (await post(gateway.port, "/mcp", message, headers)).text, { gateway });
}

async function walkApi() {
  const api = createServer((asked, response) => {
    asked.resume();
    response.writeHead(200, { "content-type": "application/json", "content-length": 9 }).end('{"sum":3}');
  });
  endings.push(() => api.close());
  await once(api.listen(0, "127.0.0.1"), "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (api.address());
  const gateway = await startGateway({
    openapi: { sums: { document: "sums.json", baseUrl: `http://127.0.0.1:${port}` } },
  });
  const body = { body: { a: 1, b: 2 } };
  return await walkOnce(async () => (await post(gateway.port, "/api/sums/add", body)).text, { gateway });
}

async function walkNats() {
  const probe = createSocketServer();
  await once(probe.listen(0, "127.0.0.1"), "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (probe.address());
  await new Promise((resolve) => probe.close(resolve));
  const broker = spawn("nats-server", ["-a", "127.0.0.1", "-p", String(port)], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  endings.push(() => broker.kill());
  const isThere = await new Promise((resolve) => {
    broker.once("error", () => resolve(false));
    broker.stderr.on("data", (text) => String(text).includes("Server is ready") && resolve(true));
  });
  if (!isThere) return undefined;
  const answering = startCounted("scripts/walk/registry-process.js", ["answer", String(port)]);
  await answering.ready();
  const asking = startCounted("scripts/walk/registry-process.js", ["ask", String(port)]);
  await asking.ready();
  return await walkOnce(async () => JSON.stringify(await asking.ask("call")), { asking, answering });
}

async function walkInspector() {
  const gateway = await startGateway({ operations: "operations.mjs" }, ["--inspect"]);
  const body = { operation: "walk.add", input: { a: 1, b: 2 } };
  return await walkOnce(async () => (await post(gateway.port, "/inspect/api/run", body)).text, { gateway });
}

const WALKS = /** @type {const} */ ({
  local: ["a local call", walkLocal],
  mcp: ["MCP over HTTP, through the gateway, to a server over stdio", walkMcp],
  api: ["HTTP, through the gateway, to an OpenAPI API", walkApi],
  nats: ["over NATS", walkNats],
  inspector: ["from the inspector", walkInspector],
});

/** @param {keyof typeof WALKS} name @param {boolean} showsFiles */
async function print(name, showsFiles) {
  const [title, walk] = WALKS[name];
  const parts = await walk();
  if (parts === undefined) {
    console.log(`${name}: skipped, because there is no nats-server on the PATH`);
    return;
  }
  const all = new Set(parts.flatMap(({ files }) => Object.keys(files)));
  const functions = parts.flatMap(({ files }) => Object.values(files)).reduce((sum, each) => sum + each, 0);
  const lines = [...all].reduce((sum, file) => sum + countLines(file), 0);
  console.log(`${name}: ${title}: ${all.size} files, ${functions} functions, in files of ${lines} lines`);
  for (const { part, files } of parts) {
    const names = Object.keys(files).sort();
    if (parts.length > 1) console.log(`  the ${part} side: ${names.length} files`);
    if (!showsFiles) console.log(`  ${foldersOf(names)}`);
    else for (const file of names) console.log(`  ${String(files[file]).padStart(4)}  ${file}`);
  }
}

/** @param {string} file */
const countLines = (file) => readFileSync(join(ROOT, "src", file), "utf8").split("\n").length - 1;

/** How many files of each folder. @param {readonly string[]} files */
function foldersOf(files) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const file of files) {
    const folder = file.slice(0, Math.max(file.lastIndexOf("/"), 0)) || ".";
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return [...counts].map(([folder, count]) => `${folder} ${count}`).join(", ");
}

const names = /** @type {(keyof typeof WALKS)[]} */ (Object.keys(WALKS));
let options;
try {
  options = parseArgs({
    allowPositionals: true,
    options: { files: { type: "boolean", default: false }, help: { type: "boolean", default: false } },
  });
} catch (error) {
  console.error(`${error instanceof Error ? error.message : error}\n\n${HELP}`);
  process.exit(2);
}
const unknown = options.positionals.filter((name) => !names.some((each) => each === name));
if (options.values.help || unknown.length > 0) {
  if (unknown.length > 0) console.error(`There is no walk ${unknown.join(" or ")}.\n`);
  console.log(HELP);
  process.exit(unknown.length > 0 ? 2 : 0);
}
try {
  for (const name of names) {
    if (options.positionals.length > 0 && !options.positionals.includes(name)) continue;
    await print(name, options.values.files);
    for (const end of endings.splice(0).reverse()) await end();
  }
} finally {
  for (const end of endings.splice(0).reverse()) await end();
}
process.exit();
