// @ts-check
// Asks the example server what people ask with the MCP inspector, over stdio and HTTP: answers and exit codes.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { EXAMPLE, startExampleServer } from "./example-server.js";

/** @typedef {{ args: string[], code: number, check: (answer: any) => void }} Question */

const INSPECTOR = fileURLToPath(
  new URL("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js", import.meta.url),
);
const TOOL_ERROR = 5;

/** @type {Question[]} */
const QUESTIONS = [
  {
    args: ["--method", "tools/list"],
    code: 0,
    check: ({ tools }) => assert.ok(tools.some(({ name = "" }) => name === "test_simple_text")),
  },
  {
    args: ["--method", "tools/call", "--tool-name", "test_simple_text"],
    code: 0,
    check: ({ content }) => assert.match(content[0].text, /simple text response/),
  },
  {
    args: ["--method", "tools/call", "--tool-name", "test_multiple_content_types"],
    code: 0,
    check: ({ content }) => {
      const types = content.map(({ type = "" }) => type);
      assert.deepEqual(types, ["text", "image", "resource"]);
    },
  },
  {
    args: ["--method", "tools/call", "--tool-name", "test_error_handling"],
    code: TOOL_ERROR,
    check: ({ isError, content }) => {
      assert.equal(isError, true);
      assert.match(content[0].text, /intentionally returns an error/);
    },
  },
  {
    args: ["--method", "resources/list"],
    code: 0,
    check: ({ resources }) => assert.ok(resources.some(({ uri = "" }) => uri === "test://static-text")),
  },
  {
    args: ["--method", "resources/read", "--uri", "test://static-text"],
    code: 0,
    check: ({ contents }) => assert.match(contents[0].text, /static text resource/),
  },
  {
    args: [
      "--method",
      "prompts/get",
      "--prompt-name",
      "test_prompt_with_arguments",
      "--prompt-args",
      "arg1=a",
      "arg2=b",
    ],
    code: 0,
    check: ({ messages }) => assert.match(messages[0].content.text, /arg1='a', arg2='b'/),
  },
];

if (!existsSync(INSPECTOR)) {
  console.error("The MCP inspector is not installed: run `npm ci --ignore-scripts` in conformance/ first.");
  process.exit(1);
}

const folder = mkdtempSync(join(tmpdir(), "waybill-inspector-"));
const server = await startExampleServer();
let failed = 0;
try {
  for (const [transport, target] of [
    ["stdio", [process.execPath, EXAMPLE, "--stdio"]],
    ["http", [server.url, "--transport", "http"]],
  ]) {
    for (const question of QUESTIONS) failed += await ask(String(transport), [...target], question);
  }
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = failed === 0 ? 0 : 1;

/** @param {string} transport @param {string[]} target @param {Question} question @returns {Promise<0 | 1>} */
async function ask(transport, target, { args, code, check }) {
  const run = await inspect([...target, ...args]);
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

/** @param {string[]} args @returns {Promise<{ code: unknown, stdout: string, stderr: string }>} */
function inspect(args) {
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
