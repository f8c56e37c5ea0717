// @ts-check
// Puts questions to a server with the MCP inspector, as people do from a shell.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** @typedef {{ args: string[], code: number, check: (answer: any) => void }} Question */

const INSPECTOR = fileURLToPath(
  new URL("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js", import.meta.url),
);

/** The exit code of the inspector for a tool that says no. */
export const TOOL_ERROR = 5;

/** Asks everything of each target, by the name of its transport; returns how many answers were wrong. @param {Record<string, string[]>} targets @param {readonly Question[]} questions */
export async function askInspector(targets, questions) {
  if (!existsSync(INSPECTOR)) {
    console.error("The MCP inspector is not installed: run `npm ci --ignore-scripts` in conformance/ first.");
    return 1;
  }
  const folder = mkdtempSync(join(tmpdir(), "waybill-inspector-"));
  let failed = 0;
  try {
    for (const [transport, target] of Object.entries(targets)) {
      for (const question of questions) failed += await ask(folder, transport, target, question);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return failed;
}

/** @param {string} folder @param {string} transport @param {string[]} target @param {Question} question @returns {Promise<0 | 1>} */
async function ask(folder, transport, target, { args, code, check }) {
  const run = await inspect(folder, [...target, ...args]);
  try {
    assert.equal(run.code, code, "exit code");
    check(JSON.parse(run.stdout));
  } catch (error) {
    console.log(`FAIL  ${transport} ${args.join(" ")}\n${error}\n${run.stdout}${run.stderr}`);
    return 1;
  }
  console.log(`pass  ${transport} ${args.join(" ")}`);
  return 0;
}

/** @param {string} folder @param {string[]} args @returns {Promise<{ code: unknown, stdout: string, stderr: string }>} */
function inspect(folder, args) {
  const env = { ...process.env, MCP_CATALOG_PATH: join(folder, "mcp.json") };
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [INSPECTOR, "--cli", ...args],
      { env, timeout: 60_000 },
      (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : error.code, stdout, stderr });
      },
    );
  });
}
