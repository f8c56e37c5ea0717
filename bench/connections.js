// @ts-check
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { runBench } from "./bench.js";
import { startMeasured } from "./clients/measured-process.js";
import { createComparison } from "./interleave.js";
import { judgeWithin, printTable, verdict } from "./report.js";
import { createRandom, shuffled } from "./statistics.js";
import { fromMcp } from "./waybill.js";

const SESSIONS = 10_000;
/** Sockets that a process needs besides those of the sessions. */
const SPARE = 200;
const MEGABYTE = 1024 * 1024;

/** How many files a process may open at most. */
const openFiles = () =>
  Number(execFileSync("sh", ["-c", "ulimit -Hn"], { encoding: "utf8" })) || Number.POSITIVE_INFINITY;

/** @param {boolean} isStreaming @param {number} mostMegabytes @returns {import("./bench.js").Case} */
const idle =
  (isStreaming, mostMegabytes) =>
  async (name, { quick }) => {
    const wanted = quick ? SESSIONS / 10 : SESSIONS;
    const most = openFiles() - SPARE;
    const sessions = isStreaming ? Math.min(wanted, most) : wanted;
    if (sessions < wanted) {
      console.log(
        `\n${name}: only ${sessions} of ${wanted} sessions, because a process may open ${most + SPARE} files here; raise \`ulimit -n\` for all of them.`,
      );
    }
    const server = startMeasured(new URL("./mcp/session-server.js", import.meta.url), [String(SESSIONS)]);
    const [{ port }] = await once(server.child, "message");
    const memory = async () => {
      server.child.send("memory");
      const [{ memory: bytes }] = await once(server.child, "message");
      return /** @type {{ rss: number, heapUsed: number, external: number }} */ (bytes);
    };
    const clients = startMeasured(new URL("./clients/open-sessions.js", import.meta.url), [
      String(port),
      isStreaming ? "streams" : "none",
    ]);
    await once(clients.child, "message");
    const open = async (/** @type {number} */ count) => {
      clients.child.send(count);
      const [{ opened }] = await once(clients.child, "message");
      if (opened !== count) throw new Error(`${opened} of ${count} sessions were opened.`);
    };
    // The first sessions bring what all of them share.
    await open(100);
    const before = await memory();
    await open(sessions - 100);
    const after = await memory();
    await clients.close();
    await server.close();
    const share = SESSIONS / (sessions - 100);
    const added = ((after.rss - before.rss) / MEGABYTE) * share;
    const live = ((after.heapUsed + after.external - before.heapUsed - before.external) / MEGABYTE) * share;
    console.log(
      `\n${name}: ${sessions} sessions${isStreaming ? ", each with an open GET stream" : ""}: ${added.toFixed(1)} MB of the process and ${live.toFixed(1)} MB of objects for 10,000`,
    );
    return [
      verdict(
        name,
        `10,000 idle sessions add at most ${mostMegabytes} MB`,
        `${added.toFixed(1)} MB`,
        added <= mostMegabytes,
      ),
    ];
  };

/** @type {import("./bench.js").Case} */
async function connect(name, { quick }) {
  const server = new URL("./mcp/sdk-1-server.js", import.meta.url).pathname;
  const target = { command: process.execPath, args: [server] };
  const sides = {
    waybill: async () => {
      const source = await fromMcp(target, { namespace: "up" });
      return { close: () => source.close() };
    },
    "SDK 1.32": async () => {
      const client = new Client({ name: "bench", version: "1.0.0" });
      await client.connect(new StdioClientTransport(target));
      const { tools } = await client.listTools();
      if (tools.length !== 1) throw new Error(`There are ${tools.length} tools.`);
      return { close: () => client.close() };
    },
  };
  const random = createRandom(20);
  const entries = Object.entries(sides);
  const samples = new Map(entries.map(([side]) => [side, /** @type {number[]} */ ([])]));
  for (let round = -2; round < (quick ? 8 : 30); round++) {
    for (const [side, open] of shuffled(entries, random)) {
      const started = process.hrtime.bigint();
      const opened = await open();
      if (round >= 0) samples.get(side)?.push(Number(process.hrtime.bigint() - started));
      await opened.close();
    }
  }
  const comparison = createComparison(samples);
  printTable(`${name}: start a 2025 server over stdio, connect and list its tools`, comparison, "SDK 1.32");
  return [judgeWithin(name, comparison, { side: "waybill", base: "SDK 1.32", times: 1.15 })];
}

await runBench(
  "connections",
  { connect, sessions: idle(false, 100), "sessions-with-streams": idle(true, 300) },
  { apart: true },
);
