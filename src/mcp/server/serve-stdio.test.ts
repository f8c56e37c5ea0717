import { Console } from "node:console";
import { PassThrough } from "node:stream";
import { Client } from "@modelcontextprotocol/client";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { afterEach, describe, expect, it } from "vitest";
import { until } from "../../../test/mcp-requests.ts";
import { createSmallMcpServer } from "../../../test/small-mcp-server.ts";
import { type ServeStdioOptions, type StdioConnection, serveStdio } from "./serve-stdio.ts";

const open: StdioConnection[] = [];
afterEach(async () => {
  for (const connection of open.splice(0)) await connection.close({ timeoutMs: 0 });
});

function start(options: ServeStdioOptions = {}) {
  const small = createSmallMcpServer();
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const warnings: string[] = [];
  const onWarning = (message: string) => warnings.push(message);
  const connection = serveStdio(small, { stdin, stdout, onWarning, ...options });
  open.push(connection);
  const answers: Answer[] = [];
  let text = "";
  stdout.on("data", (chunk: Buffer) => {
    const lines = (text + chunk.toString()).split("\n");
    text = lines.pop() ?? "";
    answers.push(...lines.map((line) => JSON.parse(line) as Answer));
  });
  const say = (message: unknown) =>
    stdin.write(`${typeof message === "string" ? message : JSON.stringify(message)}\n`);
  const answerTo = async (id: number): Promise<Answer> => {
    await until(() => answers.some((answer) => answer.id === id));
    return answers.find((answer) => answer.id === id) as Answer;
  };
  return { small, connection, stdin, stdout, answers, warnings, say, answerTo };
}

interface Answer {
  readonly id?: number;
  readonly method?: string;
  readonly result?: { readonly content?: readonly { readonly text: string }[] };
  readonly error?: { readonly code: number };
}

const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } },
};
const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};
const call = (id: number, name: string, args: object = {}, meta?: object) => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name, arguments: args, ...(meta && { _meta: meta }) },
});

const WHO = { name: "client", version: "1" };
const second = (mode: "legacy" | "auto") =>
  new Client(WHO, {
    versionNegotiation: { mode },
    jsonSchemaValidator: new CfWorkerJsonSchemaValidator(),
  });

describe("serveStdio", () => {
  it.each([
    ["SDK 1.x", /^$/, () => new FirstClient(WHO) as unknown as Client],
    ["SDK 2.x, 2025", /^2025/, () => second("legacy")],
    ["SDK 2.x, 2026-07-28", /^2026/, () => second("auto")],
  ] as const)("RE-30 serves a client of %s", async (_, era, createClient) => {
    const small = createSmallMcpServer();
    const [stdin, stdout] = [new PassThrough(), new PassThrough()];
    const connection = serveStdio(small, { stdin, stdout });
    open.push(connection);
    const client = createClient();
    // The lines are the same in both directions, and so a server's transport will do for a client.
    await client.connect(new StdioServerTransport(stdout, stdin));
    const result = await client.callTool({ name: "echo", arguments: { text: "hé" } });
    expect(result.content).toEqual([{ type: "text", text: "hé" }]);
    expect(client.getNegotiatedProtocolVersion?.() ?? "").toMatch(era);
    stdin.end();
    await connection.closed;
  });

  it("RE-30 serves a 2025 client", async () => {
    const { say, answerTo } = start({ identity: { subject: "owner" } });
    say(INITIALIZE);
    expect(await answerTo(1)).toMatchObject({ result: { serverInfo: { name: "small" } } });
    say(call(2, "whoami"));
    expect((await answerTo(2)).result?.content?.[0]?.text).toContain('"subject":"owner"');
  });

  it("RE-30 serves a 2026-07-28 client", async () => {
    const { say, answerTo } = start();
    say({ jsonrpc: "2.0", id: 1, method: "server/discover", params: { _meta: META } });
    expect(await answerTo(1)).toMatchObject({
      result: { supportedVersions: expect.arrayContaining(["2026-07-28"]) },
    });
    say(call(2, "echo", { text: "x" }, META));
    expect((await answerTo(2)).result?.content?.[0]?.text).toBe("x");
    say(call(3, "echo", { text: "x" }));
    expect(await answerTo(3)).toMatchObject({ error: { code: -32_602 } });
  });

  it("Mcp: survives noise, and messages of one byte too many", async () => {
    const { say, stdin, answerTo, warnings } = start({ limits: { messageBytes: 200 } });
    say(INITIALIZE);
    await answerTo(1);
    for (const noise of ["hello", "{", "", "[]", "null", "{}", "[".repeat(199), '{"jsonrpc":"2.0"}'])
      say(noise);
    const sized = (id: number, bytes: number) => {
      const bare = JSON.stringify(call(id, "echo", { text: "" })).length;
      return call(id, "echo", { text: "x".repeat(bytes - bare) });
    };
    say(sized(2, 201));
    say(sized(3, 200));
    expect((await answerTo(3)).result?.content?.[0]?.text).toMatch(/^x+$/);
    stdin.write(Buffer.alloc(5_000_000, "a"));
    say("");
    say(call(4, "echo", { text: "still here" }));
    expect((await answerTo(4)).result?.content?.[0]?.text).toBe("still here");
    expect(warnings.filter((warning) => warning.includes("200 bytes"))).toHaveLength(2);
  });

  it("Mcp: reads the same whatever the chunks are", async () => {
    const { stdin, answerTo } = start();
    const bytes = Buffer.from(
      `${JSON.stringify(INITIALIZE)}\r\n${JSON.stringify(call(2, "echo", { text: "é👋" }))}\n`,
    );
    for (const byte of bytes) stdin.write(Buffer.of(byte));
    expect((await answerTo(2)).result?.content?.[0]?.text).toBe("é👋");
  });

  it("Mcp: ends when stdin does, and tells what runs to stop", async () => {
    const { say, stdin, small, connection, answerTo } = start();
    say(INITIALIZE);
    await answerTo(1);
    say(call(2, "slow", { ms: 20_000 }));
    await until(() => small.running === 1);
    stdin.end();
    await connection.closed;
    await until(() => small.aborted === 1);
  });

  it("Mcp: ends when it is closed, when stdin had ended before, and when stdout fails", async () => {
    const closing = start();
    await closing.connection.close();
    await closing.connection.closed;
    const stdin = new PassThrough();
    stdin.destroy();
    await start({ stdin }).connection.closed;
    const failing = start();
    failing.stdout.destroy(new Error("EPIPE"));
    await failing.connection.closed;
    expect(failing.warnings).toContain("EPIPE");
  });

  it("Mcp: stops reading from a client that does not read, until it does", async () => {
    const { say, stdin, stdout, answerTo } = start({ limits: { unreadBytes: 100_000 } });
    say(INITIALIZE);
    await answerTo(1);
    stdout.pause();
    for (let id = 2; id < 12; id++) say(call(id, "big", { size: 50_000 }));
    await until(() => stdin.isPaused());
    stdout.resume();
    await answerTo(11);
    await until(() => !stdin.isPaused());
  });

  it("Mcp: sends to stderr what others write to stdout, and stops that when it ends", async () => {
    const { write: writeOut } = process.stdout;
    const { write: writeError } = process.stderr;
    const [out, errors]: [string[], string[]] = [[], []];
    process.stdout.write = ((text: string) => out.push(String(text)) > 0) as never;
    process.stderr.write = ((text: string) => errors.push(String(text)) > 0) as never;
    const captured = process.stdout.write;
    try {
      const stdin = new PassThrough();
      const connection = serveStdio(createSmallMcpServer(), { stdin });
      new Console(process.stdout, process.stderr).log("stray");
      stdin.write(`noise\n${JSON.stringify(INITIALIZE)}\n`);
      await until(() => out.length > 0);
      stdin.end();
      await connection.closed;
      expect(process.stdout.write).toBe(captured);
      const free = serveStdio(createSmallMcpServer(), { stdin: new PassThrough(), guardStdout: false });
      expect(process.stdout.write).toBe(captured);
      await free.close();
    } finally {
      process.stdout.write = writeOut;
      process.stderr.write = writeError;
    }
    expect(out.map((line) => JSON.parse(line).id)).toEqual([1]);
    expect(errors.join("")).toContain("stray\n");
    expect(errors.join("")).toContain("is not JSON");
  });

  it("Mcp: refuses limits that are none", () => {
    for (const limits of [{ messageBytes: 0 }, { unreadBytes: 1.5 }, { subscriptions: -1 }]) {
      expect(() => start({ limits })).toThrow(TypeError);
    }
  });
});
