import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { until } from "../../../test/mcp-requests.ts";
import { createSmallMcpServer } from "../../../test/small-mcp-server.ts";
import { serveStdio } from "./serve-stdio.ts";

interface Answer {
  readonly id: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

const WHO = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } };
const INITIALIZE = { method: "initialize", params: WHO };
const PING = { method: "ping" };

/** Says things, each under its place in the list as id, and gives the answers to all of them. */
async function converse(...said: readonly object[]): Promise<readonly (number | "answered")[]> {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const connection = serveStdio(createSmallMcpServer(), { stdin, stdout, onWarning: () => {} });
  let text = "";
  stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  const answers = (): Answer[] =>
    text
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Answer);
  for (const [id, message] of said.entries()) {
    stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...message })}\n`);
  }
  await until(() => said.every((_, id) => answers().some((answer) => answer.id === id)));
  await connection.close();
  return said.map((_, id) => {
    const mine = answers().filter((answer) => answer.id === id);
    expect(mine).toHaveLength(1);
    return mine[0]?.error?.code ?? "answered";
  });
}

describe("StdioTransport", () => {
  it.each([
    null,
    5,
    "x",
    [[1]],
    { _meta: 5 },
    { _meta: null },
    { _meta: [] },
    { _meta: { progressToken: {} } },
    { _meta: { progressToken: 1.5 } },
    { _meta: { progressToken: null } },
    { _meta: { "io.modelcontextprotocol/related-task": 1 } },
    { _meta: { "io.modelcontextprotocol/related-task": { taskId: 1 } } },
  ])("X-6 answers a request whose parameters cannot be: %j", async (params) => {
    const bad = { method: "tools/list", params };
    expect(await converse(INITIALIZE, bad, PING)).toEqual(["answered", -32_602, "answered"]);
    expect(await converse(bad, INITIALIZE, PING)).toEqual([-32_602, "answered", "answered"]);
  });

  it.each([undefined, {}, { ...WHO, clientInfo: { name: "t" } }, { ...WHO, protocolVersion: 1 }])(
    "X-6 answers an initialize that says too little: %j",
    async (params) => {
      const bad = { method: "initialize", params };
      expect(await converse(bad, INITIALIZE, bad, PING)).toEqual([-32_602, "answered", -32_602, "answered"]);
    },
  );

  it.each([{ method: 5 }, { ...PING, other: 1 }, { ...PING, result: {} }])(
    "X-6 answers what has an id and a method and is still no request: %j",
    async (bad) => {
      expect(await converse(INITIALIZE, bad, PING)).toEqual(["answered", -32_600, "answered"]);
    },
  );

  it("Mcp: passes on whatever parameters can be", async () => {
    const fine = [{}, { _meta: {} }, { _meta: { progressToken: 1 } }, { _meta: { progressToken: "a" } }];
    const said = fine.map((params) => ({ method: "tools/list", params }));
    expect(await converse(INITIALIZE, ...said)).toEqual(Array(5).fill("answered"));
  });
});
