// @ts-check
import { runBench } from "./bench.js";
import { openHttpLoad } from "./clients/http-load.js";
import { openLineLoad } from "./clients/line-load.js";
import { writeToolCalls } from "./clients/mcp-requests.js";
import { startServer } from "./clients/measured-process.js";
import { createComparison, interleave } from "./interleave.js";
import { createBenchRegistry } from "./mcp/operations.js";
import { serverTiming, timing } from "./options.js";
import { judgeExtra, judgeFaster, judgeWithin, perCall, printTable } from "./report.js";
import { createRandom, shuffled } from "./statistics.js";
import { createMcpHandler } from "./waybill.js";

/** @typedef {import("./options.js").BenchOptions} BenchOptions */
/** @typedef {readonly [file: string, size: string]} Program */
/**
 * @typedef {object} Load
 * @property {(times: number) => Promise<unknown>} run
 * @property {() => Promise<number>} cpu
 * @property {() => Promise<void>} close
 */

/** So often every request is sent in one step: connections wait for each other only at its end. */
const TIMES = 4;
const SDK_2 = "SDK 2.4";
const SDK_1 = "SDK 1.32";
const BARE = "bare handler";

/** @param {BenchOptions} options */
const slices = (options) => ({ ...timing(options), sliceMs: options.quick ? 40 : 100 });

/** @param {string} file */
const program = (file) => new URL(`./mcp/${file}.js`, import.meta.url);

/** @param {string} side @param {string} first */
function assertAnswers(side, first) {
  if (!/"sum"\s*:\s*3/.test(first)) throw new Error(`${side} answers ${first}`);
}

/** @param {Program} program_ @param {number} inFlight @param {string} side @returns {Promise<Load>} */
async function openLines([file, size], inFlight, side) {
  const load = await openLineLoad(program(file), ["stdio", size], inFlight);
  assertAnswers(side, JSON.stringify(load.first.structuredContent));
  return load;
}

/** @param {"2025" | "2026"} revision @returns {typeof openLines} */
const openHttp =
  (revision) =>
  async ([file, size], inFlight, side) => {
    const { port, cpu, close } = await startServer(program(file), ["http", size]);
    const load = await openHttpLoad(port, await writeToolCalls(port, revision, inFlight));
    assertAnswers(side, load.first);
    return {
      run: load.run,
      cpu,
      close: async () => {
        load.close();
        await close();
      },
    };
  };

/**
 * Loads all programs with so many calls in flight, in turn, and prints the time and the processor time of a call.
 * @param {string} title @param {Readonly<Record<string, Program>>} programs
 * @param {{ open: typeof openLines, inFlight: number, base: string, options: BenchOptions }} settings
 */
async function compare(title, programs, { open, inFlight, base, options }) {
  /** @type {Record<string, Load>} */
  const loads = {};
  for (const [side, each] of Object.entries(programs)) loads[side] = await open(each, inFlight, side);
  const entries = Object.entries(loads);
  const comparison = await interleave(
    Object.fromEntries(entries.map(([side, { run }]) => [side, () => run(TIMES)])),
    { ...serverTiming(options), cpu: Object.fromEntries(entries.map(([side, { cpu }]) => [side, cpu])) },
  );
  for (const { close } of Object.values(loads)) await close();
  const calls = inFlight * TIMES;
  printTable(`${title}: a call`, perCall(comparison, calls), base);
  printTable(`${title}: processor time of the server, a call`, perCall(comparison.cpu, calls), base);
  return comparison;
}

/** @param {"2025" | "2026"} revision @returns {import("./bench.js").Case} */
const http = (revision) => async (name, options) => {
  /** @type {Readonly<Record<string, Program>>} */
  const programs = {
    [SDK_2]: ["sdk-server", "1"],
    waybill: ["waybill-server", "1"],
    [BARE]: ["bare-server", "1"],
  };
  const verdicts = [];
  for (const [inFlight, times] of /** @type {const} */ ([
    [32, 6],
    [1, 3],
  ])) {
    const title = `${name}, ${inFlight === 1 ? "one at a time" : `${inFlight} in flight`}`;
    const settings = { open: openHttp(revision), inFlight, base: SDK_2, options };
    const comparison = await compare(title, programs, settings);
    verdicts.push(judgeFaster(title, comparison, { slow: SDK_2, fast: "waybill", times }));
    if (inFlight > 1)
      verdicts.push(judgeFaster(title, comparison, { slow: BARE, fast: "waybill", times: 0.35 }));
  }
  return verdicts;
};

/** @type {import("./bench.js").Case} */
async function stdio(name, options) {
  /** @type {Readonly<Record<string, Program>>} */
  const programs = {
    [SDK_1]: ["sdk-1-server", "1"],
    [SDK_2]: ["sdk-server", "1"],
    waybill: ["waybill-server", "1"],
    "bare lines": ["bare-server", "1"],
  };
  const verdicts = [];
  for (const [inFlight, times] of /** @type {const} */ ([
    [256, 3],
    [1, 1],
  ])) {
    const title = `${name}, ${inFlight === 1 ? "one at a time" : `${inFlight} in flight`}`;
    const comparison = await compare(title, programs, { open: openLines, inFlight, base: SDK_2, options });
    for (const slow of [SDK_1, SDK_2])
      verdicts.push(judgeFaster(title, comparison, { slow, fast: "waybill", times }));
  }
  return verdicts;
}

/** @type {import("./bench.js").Case} */
async function sizes(name, options) {
  /** @type {Readonly<Record<string, Program>>} */
  const programs = {
    "1 operation": ["waybill-server", "1"],
    "1,000 operations": ["waybill-server", "1000"],
    "10,000 operations": ["waybill-server", "10000"],
  };
  const verdicts = [];
  for (const [channel, open] of Object.entries({ stdio: openLines, HTTP: openHttp("2026") })) {
    const title = `${name} over ${channel}, 32 in flight`;
    const settings = { open, inFlight: 32, base: "1 operation", options };
    const comparison = await compare(title, programs, settings);
    for (const side of ["1,000 operations", "10,000 operations"])
      verdicts.push(judgeWithin(title, comparison, { side, base: "1 operation", times: 1.2 }));
  }
  return verdicts;
}

/** @type {import("./bench.js").Case} */
async function list(name, options) {
  const registry = createBenchRegistry(10_000);
  const handler = createMcpHandler(registry, { limits: { pageSize: 10_000 } });
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/list",
    params: {
      _meta: {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { name: "bench", version: "1.0.0" },
        "io.modelcontextprotocol/clientCapabilities": {},
      },
    },
  });
  const headers = {
    host: "127.0.0.1",
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/list",
  };
  const ask = async () => {
    const response = await handler.fetch(
      new Request("http://127.0.0.1/mcp", { method: "POST", headers, body }),
    );
    return await response.text();
  };
  const { result } = JSON.parse(await ask());
  if (result.tools.length !== 10_000) throw new Error(`There are ${result.tools.length} tools in the list.`);
  const cached = result.tools.map((/** @type {unknown} */ tool) => JSON.stringify(tool));
  const join = async () => {
    const text = `{"jsonrpc":"2.0","id":1,"result":{"tools":[${cached.join(",")}]}}`;
    return await new Response(text, { headers: { "content-type": "application/json" } }).text();
  };
  const comparison = await interleave({ "tools/list": ask, "joined cached JSON": join }, slices(options));
  printTable(`${name}, 10,000 tools`, comparison, "joined cached JSON");
  return [judgeWithin(name, comparison, { side: "tools/list", base: "joined cached JSON", times: 2 })];
}

/** How a server knows the sessions of its clients. */
const SESSIONS = {
  "random ids": {},
  "sealed ids": { sessionKey: "the-key-of-all-replicas-00000000" },
  // For orientation. With room for one session, each of two drives the other out, and its id is opened again.
  "sealed ids, opened for each call": {
    sessionKey: "the-key-of-all-replicas-00000000",
    limits: { sessions: 1 },
  },
};

/** @type {import("./bench.js").Case} */
async function sessions(name, options) {
  const sides = await Promise.all(
    Object.entries(SESSIONS).map(async ([side, server]) => {
      const handler = createMcpHandler(createBenchRegistry(1), server);
      const headers = [await initialize(handler), await initialize(handler)];
      let next = 0;
      const ask = async () => {
        next = 1 - next;
        const request = { method: "POST", headers: /** @type {{}} */ (headers[next]), body: CALL };
        return await (await handler.fetch(new Request("http://127.0.0.1/mcp", request))).text();
      };
      assertAnswers(side, await ask());
      return /** @type {const} */ ([side, ask]);
    }),
  );
  const comparison = await compareCpu(Object.fromEntries(sides), options.quick ? 15 : 40);
  printTable(`${name}: processor time of a call of a 2025 client`, comparison, "random ids");
  return [judgeExtra(name, comparison, { side: "sealed ids", base: "random ids", limit: 15_000 })];
}

/** Calls of a side in one round. */
const ROUND = 1_000;

/**
 * Compares the processor time of sides that are all this process and take turns with as many calls each: what else the machine does is in none of
 * them.
 * @param {Readonly<Record<string, () => Promise<unknown>>>} sides @param {number} rounds
 */
async function compareCpu(sides, rounds) {
  const random = createRandom(20);
  const samples = new Map(Object.keys(sides).map((side) => [side, /** @type {number[]} */ ([])]));
  for (let round = -WARM_ROUNDS; round < rounds; round++) {
    for (const [side, call] of shuffled(Object.entries(sides), random)) {
      const before = process.cpuUsage();
      for (let i = 0; i < ROUND; i++) await call();
      const { user, system } = process.cpuUsage(before);
      if (round >= 0) samples.get(side)?.push(((user + system) * 1_000) / ROUND);
    }
  }
  return createComparison(samples);
}

const WARM_ROUNDS = 5;

const CALL = JSON.stringify({
  jsonrpc: "2.0",
  id: 2,
  method: "tools/call",
  params: { name: "bench_add", arguments: { a: 1, b: 2 } },
});

/** Opens a session, and gives the headers of its requests. @param {{ fetch(request: Request): Promise<Response> }} handler */
async function initialize(handler) {
  const headers = {
    host: "127.0.0.1",
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2025-11-25",
  };
  const clientInfo = { name: "bench", version: "1.0.0" };
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
  const opened = await handler.fetch(new Request("http://127.0.0.1/mcp", { method: "POST", headers, body }));
  await opened.text();
  return { ...headers, "mcp-session-id": opened.headers.get("mcp-session-id") ?? "" };
}

await runBench(
  "mcp",
  { stdio, "http-2025": http("2025"), "http-2026": http("2026"), sessions, sizes, list },
  { apart: true },
);
