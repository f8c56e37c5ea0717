// @ts-check
import { fork } from "node:child_process";
import { once } from "node:events";
import { runBench } from "./bench.js";
import { createComparison, interleave } from "./interleave.js";
import { createBenchRegistry } from "./mcp/operations.js";
import { openHttp, openStdio } from "./mcp/raw-client.js";
import { timing } from "./options.js";
import { judgeFaster, judgeWithin, printTable } from "./report.js";
import { createMcpHandler, toMcpServer } from "./waybill.js";

/** @typedef {import("./mcp/raw-client.js").Call} Call */

const INPUT = { a: 1, b: 2 };
const IN_FLIGHT = 32;

/** @param {import("./options.js").BenchOptions} options */
const slices = (options) => ({ ...timing(options), sliceMs: options.quick ? 30 : 100 });

/** @param {Call} call */
const crowd = (call) => () => Promise.all(Array.from({ length: IN_FLIGHT }, () => call(INPUT)));

/** @param {Readonly<Record<string, Call>>} calls */
async function assertAllAnswer(calls) {
  for (const [name, call] of Object.entries(calls)) {
    const { structuredContent } = await call(INPUT);
    if (structuredContent?.sum !== 3)
      throw new Error(`${name} answers ${JSON.stringify(structuredContent)}.`);
  }
}

/** @param {Readonly<Record<string, Call>>} calls @param {(call: Call) => () => unknown} step */
const sidesOf = (calls, step) =>
  Object.fromEntries(Object.entries(calls).map(([name, call]) => [name, step(call)]));

/** @param {string} name @param {Readonly<Record<string, Call>>} calls @param {import("./options.js").BenchOptions} options */
async function compareServers(name, calls, options) {
  await assertAllAnswer(calls);
  const verdicts = [];
  for (const [title, step] of /** @type {const} */ ([
    [`${name}, one at a time`, (/** @type {Call} */ call) => () => call(INPUT)],
    [`${name}, ${IN_FLIGHT} in flight`, crowd],
  ])) {
    const comparison = await interleave(sidesOf(calls, step), slices(options));
    printTable(title, comparison, "SDK McpServer, 1 tool");
    verdicts.push(
      judgeFaster(title, comparison, { slow: "SDK McpServer, 1 tool", fast: "waybill, 1", times: 1 }),
    );
    for (const size of ["1,000", "10,000"]) {
      verdicts.push(
        judgeWithin(title, comparison, { side: `waybill, ${size}`, base: "waybill, 1", times: 1.2 }),
      );
    }
  }
  return verdicts;
}

const SIDES = /** @type {const} */ ({
  "SDK McpServer, 1 tool": ["./mcp/sdk-server.js", "1"],
  "waybill, 1": ["./mcp/waybill-server.js", "1"],
  "waybill, 1,000": ["./mcp/waybill-server.js", "1000"],
  "waybill, 10,000": ["./mcp/waybill-server.js", "10000"],
});

/** @type {import("./bench.js").Case} */
async function stdio(name, options) {
  /** @type {Record<string, Awaited<ReturnType<typeof openStdio>>>} */
  const open = {};
  for (const [side, [file, size]] of Object.entries(SIDES)) {
    open[side] = await openStdio(file.replace("./mcp/", "./"), ["stdio", size]);
  }
  const calls = Object.fromEntries(Object.entries(open).map(([side, { call }]) => [side, call]));
  const verdicts = await compareServers(name, calls, options);
  for (const { close } of Object.values(open)) close();
  return verdicts;
}

/** @param {"2025" | "2026"} revision @returns {import("./bench.js").Case} */
const http = (revision) => async (name, options) => {
  /** @type {Record<string, Call>} */
  const calls = {};
  const children = [];
  for (const [side, [file, size]] of Object.entries(SIDES)) {
    const child = fork(new URL(file, import.meta.url), ["http", size]);
    children.push(child);
    const [{ port }] = await once(child, "message");
    calls[side] = (await openHttp(port, revision)).call;
  }
  const verdicts = await compareServers(name, calls, options);
  for (const child of children) child.kill();
  return verdicts;
};

/** @type {import("./bench.js").Case} */
async function list(name, options) {
  const registry = createBenchRegistry(10_000);
  const handler = createMcpHandler(toMcpServer(registry, { limits: { pageSize: 10_000 } }));
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

/** @type {import("./bench.js").Case} */
async function gateway(name, { quick }) {
  const [rounds, calls] = quick ? [10, 200] : [40, 1_000];
  const sides = {
    waybill: await openStdio("./waybill-gateway.js", []),
    "two SDK ends": await openStdio("./sdk-gateway.js", []),
  };
  await assertAllAnswer({ waybill: sides.waybill.call, "two SDK ends": sides["two SDK ends"].call });
  /** @type {Map<string, number[]>} */
  const samples = new Map(Object.keys(sides).map((side) => [side, []]));
  for (let round = -3; round < rounds; round++) {
    for (const [side, { call, cpu }] of Object.entries(sides)) {
      const before = await cpu();
      for (let i = 0; i < calls; i++) await call(INPUT);
      if (round >= 0) samples.get(side)?.push((((await cpu()) - before) * 1_000) / calls);
    }
  }
  const comparison = createComparison(samples);
  printTable(`${name}, CPU of the process in the middle per call`, comparison, "two SDK ends");
  for (const { close } of Object.values(sides)) close();
  return [judgeWithin(name, comparison, { side: "waybill", base: "two SDK ends", times: 1.3 })];
}

await runBench(
  "mcp",
  { stdio, "http-2025": http("2025"), "http-2026": http("2026"), list, gateway },
  { apart: true },
);
