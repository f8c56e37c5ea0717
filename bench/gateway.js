// @ts-check
import { execFile, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { runBench } from "./bench.js";
import { CLI, writeConfig } from "./gateway/config.js";
import { createComparison, interleave } from "./interleave.js";
import { openStdio } from "./mcp/raw-client.js";
import { PETSTORE } from "./openapi/petstore.js";
import { openLoad } from "./openapi/raw-load.js";
import { timing } from "./options.js";
import { judgeExtra, printTable } from "./report.js";
import { createRandom, shuffled } from "./statistics.js";
import "./waybill.js";

const run = promisify(execFile);
const IN_FLIGHT = 32;

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

/** @param {string} file */
async function start(file) {
  const child = fork(new URL(file, import.meta.url));
  process.once("exit", () => child.kill());
  const [{ port }] = await once(child, "message");
  return { child, port };
}

/** @param {number} apiPort */
async function startGateway(apiPort) {
  const server = fileURLToPath(new URL("./mcp/sdk-server.js", import.meta.url));
  const { folder, remove } = writeConfig({
    openapi: { pets: { document: "petstore.json", baseUrl: `http://127.0.0.1:${apiPort}` } },
    mcpServers: { tools: { command: process.execPath, args: [server, "stdio"] } },
    serve: { port: 0 },
    log: { level: "error", format: "text" },
  });
  writeFileSync(join(folder, "petstore.json"), JSON.stringify(PETSTORE));
  const child = spawn(process.execPath, [CLI, "serve", "--lame-duck", "0"], {
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
  });
  process.once("exit", () => child.kill());
  let said = "";
  child.stderr.setEncoding("utf8");
  const port = await new Promise((resolve, reject) => {
    child.stderr.on("data", (chunk) => {
      said += chunk;
      const found = /http:\/\/127\.0\.0\.1:(\d+)/.exec(said)?.[1];
      if (found !== undefined && /tools/.test(said)) resolve(Number(found));
    });
    child.once("exit", () => reject(new Error(`The gateway ended: ${said}`)));
  });
  return { child, port, remove };
}

/** @param {number} port @param {string} path @param {string} wanted @param {string} [body] */
async function load(port, path, wanted, body) {
  const posted =
    body === undefined ? [] : ["content-type: application/json", `content-length: ${body.length}`];
  const head = [`${body === undefined ? "GET" : "POST"} ${path} HTTP/1.1`, `host: 127.0.0.1:${port}`];
  const request = [...head, "accept: application/json", ...posted, "", body ?? ""].join("\r\n");
  const opened = await openLoad(port, request, IN_FLIGHT, { varies: true });
  if (!opened.first.includes(wanted)) throw new Error(`${path} answers ${opened.first}`);
  return opened;
}

/** @type {import("./bench.js").Case} */
async function sources(name, options) {
  const [api, hand] = [
    await start("./openapi/json-server.js"),
    await start("./gateway/hand-written-server.js"),
  ];
  const gateway = await startGateway(api.port);
  const tool = await openStdio("./sdk-server.js", ["stdio"]);
  const pet = "/stores/north/pets/7?fields=id&fields=name&verbose=true";
  const through = "store=north&pet=7&fields=id&fields=name&verbose=true";
  const loads = {
    "local: by hand": await load(hand.port, "/?a=1&b=2", '"sum":3'),
    "local: gateway": await load(gateway.port, "/api/bench/add?a=1&b=2", '"sum":3'),
    "HTTP API: direct": await load(api.port, pet, "Rex"),
    "HTTP API: gateway": await load(gateway.port, `/api/pets/getPet?${through}`, "Rex"),
    "MCP server: gateway": await load(gateway.port, "/api/tools/bench_add", '"sum":3', '{"a":1,"b":2}'),
  };
  const direct = () => Promise.all(Array.from({ length: IN_FLIGHT }, () => tool.call({ a: 1, b: 2 })));
  const sides = {
    ...Object.fromEntries(Object.entries(loads).map(([side, opened]) => [side, opened.round])),
    "MCP server: direct": direct,
  };
  const comparison = await interleave(sides, { ...timing(options), sliceMs: options.quick ? 30 : 100 });
  printTable(
    `${name}: ${IN_FLIGHT} calls in flight, through waybill serve and past it`,
    comparison,
    "local: by hand",
  );
  for (const [source, base] of [
    ["local", "by hand"],
    ["HTTP API", "direct"],
    ["MCP server", "direct"],
  ]) {
    const { median } = comparison.extra(`${source}: gateway`, `${source}: ${base}`);
    const ratio = comparison.ratio(`${source}: gateway`, `${source}: ${base}`).median;
    const perSecond = (IN_FLIGHT * 1e9) / comparison.time(`${source}: gateway`).median;
    console.log(
      `  ${source}: ${Math.round(perSecond)} calls/s; ${(median / IN_FLIGHT / 1e3).toFixed(0)} µs more a call, ${ratio.toFixed(2)}× ${base}`,
    );
  }
  for (const opened of Object.values(loads)) opened.close();
  tool.close();
  for (const { child } of [api, hand, gateway]) child.kill();
  gateway.remove();
  return [];
}

await runBench("gateway", { start: starting, sources }, { apart: true });
