// @ts-check
import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import createFetchClient from "openapi-fetch";
import { runBench } from "./bench.js";
import { openHttpLoad, writeRequest } from "./clients/http-load.js";
import { startServer } from "./clients/measured-process.js";
import { createComparison, interleave } from "./interleave.js";
import { PETSTORE } from "./openapi/petstore.js";
import { serverTiming, timing } from "./options.js";
import { judgeFaster, judgeWithin, perCall, printTable, verdict } from "./report.js";
import { fromOpenApi, OperationRegistry } from "./waybill.js";

const GITHUB = fileURLToPath(import.meta.resolve("@octokit/openapi/generated/api.github.com.json"));
const IN_FLIGHT = 32;
/** So often every request is sent in one step: connections wait for each other only at its end. */
const TIMES = 4;

/** @param {string} file @param {readonly string[]} [args] */
async function start(file, args = []) {
  const child = fork(new URL(file, import.meta.url), args, { execArgv: ["--expose-gc"] });
  const [message] = await once(child, "message");
  return { child, message };
}

/** @type {import("./bench.js").Case} */
async function importing(name, options) {
  const text = readFileSync(GITHUB, "utf8");
  const source = await fromOpenApi(GITHUB, { namespace: "github" });
  const count = [...source].length;
  await source.close();
  if (count < 1_000) throw new Error(`Only ${count} operations were imported.`);
  const sides = {
    "JSON.parse": () => JSON.parse(text),
    "read and JSON.parse": () => JSON.parse(readFileSync(GITHUB, "utf8")),
    waybill: async () => (await fromOpenApi(GITHUB, { namespace: "github" })).close(),
  };
  const comparison = await interleave(sides, { ...timing(options), sliceMs: 1, warmUpMs: 500 });
  printTable(`${name}, GitHub's document, ${count} operations`, comparison, "JSON.parse");
  return [
    judgeWithin(name, comparison, { side: "waybill", base: "JSON.parse", times: 1.6 }),
    judgeWithin(name, comparison, { side: "waybill", base: "read and JSON.parse", times: 1.6 }),
  ];
}

/** @type {import("./bench.js").Case} */
async function memory(name, { quick }) {
  /** @type {Map<string, number[]>} */
  const samples = new Map([
    ["parsed", []],
    ["imported", []],
  ]);
  for (let round = 0; round < (quick ? 2 : 5); round++) {
    for (const [side, list] of samples) {
      const { message } = await start("./openapi/import-memory.js", [side, GITHUB]);
      list.push(message.heap);
    }
  }
  const comparison = createComparison(samples);
  const { median } = comparison.time("parsed");
  console.log(`\n${name}: the parsed document keeps ${(median / 1e6).toFixed(1)} MB alive`);
  return [judgeWithin(name, comparison, { side: "imported", base: "parsed", times: 1.3 })];
}

/** @type {import("./bench.js").Case} */
async function served(name, { quick }) {
  const seconds = [];
  const stalls = [];
  let last;
  for (let round = 0; round < (quick ? 1 : 5); round++) {
    const { message } = await start("./openapi/served-document.js", [GITHUB]);
    seconds.push(message.seconds);
    stalls.push(message.longest);
    last = message;
  }
  const { size, ratio, schemas, peak } = last;
  const megabytes = (/** @type {number} */ bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
  console.log(`\n${name}: ${megabytes(size)}, ${schemas} schemas; at most ${megabytes(peak)} of memory`);
  const median = (/** @type {number[]} */ list) =>
    list.sort((a, b) => a - b)[Math.floor(list.length / 2)] ?? 0;
  const [time, stall] = [median(seconds), median(stalls)];
  return [
    verdict(
      name,
      "at most 1.5× GitHub's document, both as compact JSON",
      `${ratio.toFixed(2)}×`,
      ratio <= 1.5,
    ),
    verdict(name, "within 5 s of processor time", `${time.toFixed(2)} s`, time <= 5),
    verdict(
      name,
      "nothing else waits for more than 200 ms of processor time",
      `${stall.toFixed(0)} ms`,
      stall <= 200,
    ),
  ];
}

/** @type {import("./bench.js").Case} */
async function calls(name, options) {
  const { child, message } = await start("./openapi/json-server.js");
  const baseUrl = `http://127.0.0.1:${message.port}`;
  const registry = new OperationRegistry();
  const source = await fromOpenApi(PETSTORE, { namespace: "pets", baseUrl });
  registry.registerAll(source);
  const client = createFetchClient({ baseUrl });
  const input = { store: "north", pet: 7, fields: ["id", "name"], verbose: true };
  const path = { store: "north", pet: 7 };
  const query = { fields: ["id", "name"], verbose: true };
  const ours = async () => (await registry.execute("pets.getPet", input)).data;
  const theirs = async () =>
    (await client.GET("/stores/{store}/pets/{pet}", { params: { path, query } })).data;
  for (const call of [ours, theirs]) {
    const pet = await call();
    if (pet?.name !== "Rex") throw new Error(`A client answers ${JSON.stringify(pet)}.`);
  }
  const crowd = (/** @type {() => Promise<unknown>} */ call) => () =>
    Promise.all(Array.from({ length: IN_FLIGHT }, call));
  const sides = { waybill: crowd(ours), "openapi-fetch": crowd(theirs) };
  const comparison = await interleave(sides, { ...timing(options), sliceMs: options.quick ? 30 : 100 });
  printTable(`${name}, ${IN_FLIGHT} in flight`, comparison, "openapi-fetch");
  await source.close();
  child.kill();
  return [judgeFaster(name, comparison, { slow: "openapi-fetch", fast: "waybill", times: 4 })];
}

/** @type {import("./bench.js").Case} */
async function serving(name, options) {
  const body = JSON.stringify({ a: 1, b: 2 });
  const files = {
    waybill: "./openapi/waybill-server.js",
    oRPC: "./openapi/orpc-server.js",
    "by hand": "./openapi/hand-written-server.js",
  };
  /** @type {{ side: string, load: Awaited<ReturnType<typeof openHttpLoad>>, server: Awaited<ReturnType<typeof startServer>> }[]} */
  const open = [];
  for (const [side, file] of Object.entries(files)) {
    const server = await startServer(new URL(file, import.meta.url));
    const headers = { accept: "application/json", "content-type": "application/json" };
    const request = writeRequest("POST /api/bench/add", headers, body);
    const load = await openHttpLoad(server.port, Array(IN_FLIGHT).fill(request));
    if (!load.first.includes('"sum":3')) throw new Error(`${side} answers ${load.first}`);
    open.push({ side, server, load });
  }
  const comparison = await interleave(
    Object.fromEntries(open.map(({ side, load }) => [side, () => load.run(TIMES)])),
    {
      ...serverTiming(options),
      cpu: Object.fromEntries(open.map(({ side, server }) => [side, server.cpu])),
    },
  );
  const calls = IN_FLIGHT * TIMES;
  printTable(`${name}, ${IN_FLIGHT} connections: a call`, perCall(comparison, calls), "by hand");
  printTable(`${name}: processor time of the server, a call`, perCall(comparison.cpu, calls), "by hand");
  for (const { server, load } of open) {
    load.close();
    await server.close();
  }
  return [
    judgeFaster(name, comparison, { slow: "oRPC", fast: "waybill", times: 1.7 }),
    judgeFaster(name, comparison, { slow: "by hand", fast: "waybill", times: 0.9 }),
  ];
}

await runBench("openapi", { import: importing, memory, served, calls, serving }, { apart: true });
