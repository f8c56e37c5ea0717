// @ts-check
// Asks a running gateway, over an MCP server and an HTTP API, what people ask with the MCP inspector: answers and exit codes.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { askInspector, TOOL_ERROR } from "./ask-inspector.js";

const pathOf = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
const CLI = pathOf("../dist/cli.js");
const SUM = ["--tool-arg", "a=20", "b=22"];
const call = (/** @type {string} */ name, /** @type {string[]} */ ...args) => [
  "--method",
  "tools/call",
  "--tool-name",
  name,
  ...args,
];

/** @type {import("./ask-inspector.js").Question[]} */
const QUESTIONS = [
  {
    args: ["--method", "tools/list"],
    code: 0,
    check: ({ tools }) => {
      const names = tools.map(({ name = "" }) => name);
      for (const name of ["local_add", "near_add", "depot_add"]) assert.ok(names.includes(name), name);
    },
  },
  ...["local_add", "near_add", "depot_add"].map((name) => ({
    args: call(name, ...SUM),
    code: 0,
    check: (/** @type {any} */ { structuredContent }) => assert.deepEqual(structuredContent, { sum: 42 }),
  })),
  {
    args: call("near_refuse"),
    code: TOOL_ERROR,
    check: ({ isError, content }) => {
      assert.equal(isError, true);
      assert.equal(content[0].text, "No.");
    },
  },
];

const folder = mkdtempSync(join(tmpdir(), "waybill-gateway-"));
const depot = await start([pathOf("../test/soak/http-service.js"), "0"], "stdout", /^(http:\S+)$/);
const config = {
  mcpServers: {
    near: { command: process.execPath, args: [pathOf("../test/soak/mcp-service.js")] },
    // What is broken stays out of the way.
    gone: { command: "no-such-command" },
  },
  openapi: { depot: { document: `${depot.url}/openapi.json` } },
  operations: pathOf("../test/soak/operations.js"),
};
writeFileSync(join(folder, "waybill.config.json"), JSON.stringify(config));
const serve = [
  CLI,
  "serve",
  "--config",
  join(folder, "waybill.config.json"),
  "--log-format",
  "json",
  "--lame-duck",
  "0",
];
const gateway = await start([...serve, "--port", "0"], "stderr", /"url":"(http:[^"]+)","msg":"listening"/);
try {
  const targets = { http: [`${gateway.url}/mcp`, "--transport", "http"] };
  process.exitCode = (await askInspector(targets, QUESTIONS)) === 0 ? 0 : 1;
} finally {
  await gateway.stop();
  await depot.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** Starts a process and waits until it says where it listens. @param {string[]} args @param {"stdout" | "stderr"} output @param {RegExp} pattern */
async function start(args, output, pattern) {
  const child = spawn(process.execPath, args, {
    cwd: folder,
    env: { ...process.env, WAYBILL_STATE_DIR: folder },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const ended = once(child, "exit");
  child[output === "stdout" ? "stderr" : "stdout"].resume();
  const url = await new Promise((resolve, reject) => {
    createInterface({ input: child[output] }).on("line", (line) => {
      const found = pattern.exec(line);
      if (found !== null) resolve(String(found[1]));
    });
    ended.then(([code]) => reject(new Error(`${args[0]} ended with ${code}.`)));
  });
  const stop = async () => {
    child.kill("SIGTERM");
    await ended;
  };
  return { url: String(url), stop };
}
