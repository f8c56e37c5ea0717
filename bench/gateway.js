// @ts-check
import { execFile } from "node:child_process";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { runBench } from "./bench.js";
import { openHttpLoad, writeRequest } from "./clients/http-load.js";
import { openLineLoad } from "./clients/line-load.js";
import { writeToolCalls } from "./clients/mcp-requests.js";
import { startMeasured, startServer } from "./clients/measured-process.js";
import { CLI, writeConfig } from "./gateway/config.js";
import { createComparison, interleave } from "./interleave.js";
import { PETSTORE } from "./openapi/petstore.js";
import { serverTiming } from "./options.js";
import { judgeExtra, judgeWithin, perCall, printTable } from "./report.js";
import { createRandom, shuffled } from "./statistics.js";
import "./waybill.js";

const run = promisify(execFile);
const IN_FLIGHT = 32;
/** So often every request is sent in one step: connections wait for each other only at its end. */
const TIMES = 4;

/** @type {import("./bench.js").Case} */
async function starting(name, { quick }) {
  const { folder, remove } = writeConfig();
  const programs = {
    "node -e 0": ["-e", "0"],
    "waybill --help": [CLI, "--help"],
    "waybill call": [CLI, "call", "bench.add", "a=1", "b=2"],
  };
  /** @param {readonly string[]} args @returns {Promise<number>} nanoseconds from start to exit */
  const time = async (args) => {
    const started = process.hrtime.bigint();
    await run(process.execPath, args, { cwd: folder });
    return Number(process.hrtime.bigint() - started);
  };
  const { stdout } = await run(process.execPath, programs["waybill call"], { cwd: folder });
  if (stdout.trim() !== '{"sum":3}') throw new Error(`waybill call prints ${stdout}`);
  const random = createRandom(20);
  const entries = Object.entries(programs);
  const samples = new Map(entries.map(([side]) => [side, /** @type {number[]} */ ([])]));
  for (let round = 0; round < (quick ? 8 : 40); round++) {
    for (const [side, args] of shuffled(entries, random)) samples.get(side)?.push(await time(args));
  }
  remove();
  const comparison = createComparison(samples);
  printTable(`${name} (a whole process, start to exit)`, comparison, "node -e 0");
  return [
    judgeExtra(name, comparison, { side: "waybill --help", base: "node -e 0", limit: 100e6 }),
    judgeExtra(name, comparison, { side: "waybill call", base: "node -e 0", limit: 200e6 }),
  ];
}

const file = (/** @type {string} */ path) => new URL(path, import.meta.url);

/** Starts `waybill serve` as it is without a `log` in its config; its log goes to a file. @param {number} apiPort */
async function startGateway(apiPort) {
  const server = fileURLToPath(file("./mcp/sdk-server.js"));
  const { folder, remove } = writeConfig({
    openapi: { pets: { document: "petstore.json", baseUrl: `http://127.0.0.1:${apiPort}` } },
    mcpServers: { tools: { command: process.execPath, args: [server, "stdio"] } },
    serve: { port: 0 },
  });
  writeFileSync(join(folder, "petstore.json"), JSON.stringify(PETSTORE));
  const logFile = join(folder, "log");
  const log = openSync(logFile, "w");
  const args = ["serve", "--lame-duck", "0"];
  const started = startMeasured(CLI, args, { cwd: folder, stdio: ["ignore", "ignore", log, "ipc"] });
  closeSync(log);
  const until = performance.now() + 60_000;
  for (;;) {
    const said = readFileSync(logFile, "utf8");
    const port = /http:\/\/127\.0\.0\.1:(\d+)/.exec(said)?.[1];
    const isReady = port !== undefined && (await fetch(`http://127.0.0.1:${port}/ready`)).ok;
    if (isReady && /tools/.test(said)) {
      const lines = () => readFileSync(logFile, "utf8").split("\n").length - 1;
      return { ...started, port: Number(port), lines, remove };
    }
    if (started.child.exitCode !== null || performance.now() > until)
      throw new Error(`The gateway did not start: ${said}`);
    await setTimeout(50);
  }
}

/** @param {number} port @param {string} path @param {string} wanted @param {string} [body] */
async function load(port, path, wanted, body) {
  const [method, type] = body === undefined ? ["GET", {}] : ["POST", { "content-type": "application/json" }];
  const request = writeRequest(`${method} ${path}`, { accept: "application/json", ...type }, body);
  const opened = await openHttpLoad(port, Array(IN_FLIGHT).fill(request));
  if (!opened.first.includes(wanted)) throw new Error(`${path} answers ${opened.first}`);
  return opened;
}

/** What goes through `waybill serve`, what goes past it, and how many times as long the first may take. */
const SOURCES = /** @type {const} */ ([
  ["local", "by hand", 2.5],
  ["HTTP API", "direct", 4],
  ["MCP server", "direct", 2.5],
]);

/** @type {import("./bench.js").Case} */
async function sources(name, options) {
  const api = await startServer(file("./openapi/json-server.js"));
  const hand = await startServer(file("./gateway/hand-written-server.js"));
  const gateway = await startGateway(api.port);
  const tool = await openLineLoad(file("./mcp/sdk-server.js"), ["stdio"], IN_FLIGHT);
  const pet = "/stores/north/pets/7?fields=id&fields=name&verbose=true";
  const through = "store=north&pet=7&fields=id&fields=name&verbose=true";
  const loads = {
    "local: by hand": await load(hand.port, "/?a=1&b=2", '"sum":3'),
    "local: gateway": await load(gateway.port, "/api/bench/add?a=1&b=2", '"sum":3'),
    "HTTP API: direct": await load(api.port, pet, "Rex"),
    "HTTP API: gateway": await load(gateway.port, `/api/pets/getPet?${through}`, "Rex"),
    "MCP server: direct": tool,
    "MCP server: gateway": await load(gateway.port, "/api/tools/bench_add", '"sum":3', '{"a":1,"b":2}'),
  };
  const cpu = {
    "local: by hand": hand.cpu,
    "local: gateway": gateway.cpu,
    "HTTP API: direct": api.cpu,
    "HTTP API: gateway": gateway.cpu,
    "MCP server: direct": tool.cpu,
    "MCP server: gateway": gateway.cpu,
  };
  const before = gateway.lines();
  const sides = Object.entries(loads).map(([side, { run }]) => [side, () => run(TIMES)]);
  const comparison = await interleave(Object.fromEntries(sides), { ...serverTiming(options), cpu });
  const calls = IN_FLIGHT * TIMES;
  const title = `${name}: ${IN_FLIGHT} calls in flight, through waybill serve and past it`;
  printTable(`${title}: a call`, perCall(comparison, calls), "local: by hand");
  printTable(
    `${name}: processor time of that server, a call`,
    perCall(comparison.cpu, calls),
    "local: by hand",
  );
  console.log(`  ${gateway.lines() - before} lines of log were written meanwhile.`);
  for (const { close } of [...Object.values(loads), gateway, hand, api]) await close();
  gateway.remove();
  return SOURCES.map(([source, base, times]) =>
    judgeWithin(name, comparison, { side: `${source}: gateway`, base: `${source}: ${base}`, times }),
  );
}

/**
 * Compares the processor time of a process between a client and an MCP server over stdio with that of the two ends of the SDK.
 * @param {"stdio" | "http"} entrance @returns {import("./bench.js").Case}
 */
const middle = (entrance) => async (name, options) => {
  const programs = { waybill: "./mcp/waybill-gateway.js", "two SDK ends": "./mcp/sdk-gateway.js" };
  const verdicts = [];
  for (const inFlight of [IN_FLIGHT, 1]) {
    const open = [];
    for (const [side, path] of Object.entries(programs))
      open.push({ side, ...(await openEntrance(entrance, file(path), inFlight)) });
    const comparison = await interleave(
      Object.fromEntries(open.map(({ side, run }) => [side, () => run(TIMES)])),
      {
        ...serverTiming(options),
        cpu: Object.fromEntries(open.map(({ side, cpu }) => [side, cpu])),
      },
    );
    for (const { close } of open) await close();
    const title = `${name}, ${inFlight === 1 ? "one at a time" : `${inFlight} in flight`}`;
    const measured = perCall(comparison.cpu, inFlight * TIMES);
    printTable(`${title}: processor time of the process in the middle, a call`, measured, "two SDK ends");
    verdicts.push(judgeWithin(title, measured, { side: "waybill", base: "two SDK ends", times: 0.5 }));
  }
  return verdicts;
};

/** @param {"stdio" | "http"} entrance @param {URL} path @param {number} inFlight */
async function openEntrance(entrance, path, inFlight) {
  if (entrance === "stdio") {
    const lines = await openLineLoad(path, ["stdio"], inFlight);
    if (lines.first.structuredContent?.sum !== 3) throw new Error(`${path} answers ${lines.first}`);
    return lines;
  }
  const server = await startServer(path, ["http"]);
  const opened = await openHttpLoad(server.port, await writeToolCalls(server.port, "2025", inFlight));
  if (!/"sum":3/.test(opened.first)) throw new Error(`${path} answers ${opened.first}`);
  return {
    run: opened.run,
    cpu: server.cpu,
    close: async () => {
      opened.close();
      await server.close();
    },
  };
}

await runBench(
  "gateway",
  { start: starting, sources, "stdio-in": middle("stdio"), "http-in": middle("http") },
  { apart: true },
);
