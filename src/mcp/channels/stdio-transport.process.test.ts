import { tmpdir } from "node:os";
import { Client } from "@modelcontextprotocol/client";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";
import { afterEach, describe, expect, it, vi } from "vitest";
import { childScript, createStdioChild } from "../../../test/stdio-child.ts";
import { createStdioTransport } from "./stdio-transport.ts";

const request = (id: number, params: Record<string, unknown> = {}) =>
  ({ jsonrpc: "2.0", id, method: "echo", params }) as const;

afterEach(() => void vi.unstubAllEnvs());

describe("createStdioTransport: messages", () => {
  it("Mcp: carries 1,000 messages both ways, in order and unharmed", async () => {
    const { transport, messages } = createStdioChild("echo.js");
    await transport.start();
    const texts = Array.from({ length: 1_000 }, (_, i) => `${"é😀\n\u2028".repeat(i % 50)}${i}`);
    await Promise.all(texts.map((text, id) => transport.send(request(id, { text }))));
    await expect.poll(() => messages.length, { timeout: 20_000 }).toBe(1_000);
    expect(messages).toEqual(texts.map((text, id) => ({ jsonrpc: "2.0", id, result: { text } })));
    await transport.close();
    expect(transport.exit).toEqual({ code: 0, signal: null });
  });

  it("Mcp: carries a message of megabytes both ways", async () => {
    const { transport, next } = createStdioChild("echo.js");
    await transport.start();
    const params = { text: "€".repeat(3_000_000) };
    await Promise.all([
      expect(next()).resolves.toMatchObject({ result: params }),
      transport.send(request(1, params)),
    ]);
    await transport.close();
  });

  it("Mcp: survives noise on standard output, counts it and shows it cleaned", async () => {
    const esc = String.fromCharCode(27);
    const lines = [
      `${esc}[32mServer\u0007 ready${esc}[0m\n`,
      "\n\r\n",
      '{"jsonrpc":"2.0","method":"fi',
      'rst"}\r\n{"not":"rpc"}\n',
      `${"long ".repeat(100)}\n`,
      '\ufeff{"jsonrpc":"2.0","method":"second"}\n',
      '{"jsonrpc":"2.0","method":"third, without a newline"}',
    ];
    const child = createStdioChild("say.js", [JSON.stringify(lines)], { env: { EXIT_CODE: "4" } });
    await child.transport.start();
    await child.closed;
    expect(child.messages.map((message) => "method" in message && message.method)).toEqual([
      "first",
      "second",
      "third, without a newline",
    ]);
    expect(child.oddities).toEqual([
      'A line on standard output is not JSON: "Server ready"',
      'A line on standard output is not a JSON-RPC message: "{\\"not\\":\\"rpc\\"}"',
      `A line on standard output is not JSON: "${"long ".repeat(40)}"`,
    ]);
    expect(child.transport.oddities).toBe(3);
    expect(child.order).toEqual(["message", "message", "message", "close with 4"]);
  });

  it("Mcp: an answer that cannot be read fails its request at once", async () => {
    const lines = [
      '{"jsonrpc":"2.0","id":1,"result":{"value":NaN}}\n',
      `{"jsonrpc":"2.0","id":"deep","result":${"[".repeat(600)}${"]".repeat(600)}}\n`,
      `{"jsonrpc":"2.0","id":3,"result":"${"x".repeat(3_000)}"}\n`,
      `{"result":"${"x".repeat(3_000)}","jsonrpc":"2.0","id":4}\n`,
      `{"jsonrpc":"2.0","id":5,"method":"ask","params":"${"x".repeat(3_000)}"}\n`,
    ];
    const limits = { lineBytes: 2_000 };
    const child = createStdioChild("say.js", [JSON.stringify(lines)], { env: { EXIT_CODE: "0" }, limits });
    await child.transport.start();
    await child.closed;
    const error = (message: string, waybill: string) => ({ code: -32603, message, data: { waybill } });
    expect(child.messages).toEqual([
      { jsonrpc: "2.0", id: 1, error: error("The answer is not JSON.", "OUTPUT_INVALID") },
      {
        jsonrpc: "2.0",
        id: "deep",
        error: error("The answer is nested more than 512 levels deep.", "TOO_LARGE"),
      },
      { jsonrpc: "2.0", id: 3, error: error("The answer is larger than 2000 bytes.", "TOO_LARGE") },
      { jsonrpc: "2.0", id: 4, error: error("The answer is larger than 2000 bytes.", "TOO_LARGE") },
    ]);
    expect(child.oddities).toHaveLength(5);
    expect(child.oddities[4]).toContain("is longer than 2000 bytes and was dropped");
  });

  it("Mcp: an endless line costs no memory, and what follows it is read", async () => {
    const { transport, next, oddities } = createStdioChild("flood.js", ["stdout", "100"], {
      limits: { lineBytes: 100_000 },
    });
    const before = process.memoryUsage();
    let most = 0;
    const timer = setInterval(() => {
      const { heapUsed, external } = process.memoryUsage();
      most = Math.max(most, heapUsed + external - before.heapUsed - before.external);
    }, 5);
    const done = next();
    await transport.start();
    expect(await done).toEqual({ jsonrpc: "2.0", method: "done" });
    clearInterval(timer);
    expect(most).toBeLessThan(60_000_000);
    expect(oddities).toHaveLength(1);
    await transport.close();
  });

  it("Mcp: a flood on standard error blocks nobody, and its end is kept", async () => {
    const { transport, next } = createStdioChild("flood.js", ["stderr", "200"], {
      limits: { stderrTail: 100 },
    });
    const before = process.memoryUsage();
    const done = next();
    await transport.start();
    expect(await done).toEqual({ jsonrpc: "2.0", method: "done" });
    const after = process.memoryUsage();
    expect(after.heapUsed + after.external - before.heapUsed - before.external).toBeLessThan(60_000_000);
    await transport.close();
    expect(transport.stderrTail).toHaveLength(100);
    expect(transport.stderrTail).toMatch(/e\nthe last words\n$/);
  });

  it("Mcp: tells the lines on standard error to whoever listens", async () => {
    const { transport, next } = createStdioChild("flood.js", ["stderr", "0"]);
    const lines: string[] = [];
    transport.onStderr = (line) => lines.push(line);
    const done = next();
    await transport.start();
    await done;
    await transport.close();
    expect(lines).toEqual(["the last words"]);
  });

  it("Mcp: a listener that throws stops nothing and is reported", async () => {
    const lines = ['{"jsonrpc":"2.0","method":"a"}\n', "noise\n", '{"jsonrpc":"2.0","method":"b"}\n'];
    const { transport, closed, errors } = createStdioChild("say.js", [JSON.stringify(lines)], {
      env: { EXIT_CODE: "0" },
    });
    let heard = 0;
    transport.onmessage = () => {
      heard += 1;
      throw new Error("No.");
    };
    transport.onOddity = () => {
      throw "not even an error";
    };
    await transport.start();
    await closed;
    expect(heard).toBe(2);
    expect(errors.map((error) => error.message)).toEqual(["No.", "A listener failed.", "No."]);
  });
});

describe("createStdioTransport: starting", () => {
  it.each([
    [
      "a command that is not there",
      { command: "no-such-command" },
      /"no-such-command".*no such command \(ENOENT\)/,
    ],
    [
      "a file that is no program",
      { command: childScript("echo.js") },
      /echo\.js".*may not be executed \(EACCES\)/,
    ],
    ["a folder that is not there", { cwd: "/no/such/folder" }, /its working directory does not exist/],
    ["a folder that is a file", { cwd: childScript("echo.js") }, /its working directory is not a directory/],
    ["a command with a null byte", { command: "a\0b" }, /Cannot start "ab": /],
  ])("Mcp: %s is named when it cannot be started", async (_, options, message) => {
    const { transport, errors, order } = createStdioChild("echo.js", [], options);
    await expect(transport.start()).rejects.toThrow(message);
    expect(transport.pid).toBeUndefined();
    await expect(transport.send(request(1))).rejects.toThrow("no process runs");
    await transport.close();
    expect(errors).toEqual([]);
    expect(order).toEqual(["close with undefined"]);
  });

  it("Mcp: gives the process its folder and only the environment it should have", async () => {
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", "secret");
    vi.stubEnv("WAYBILL_TEST_ASKED", "asked");
    const { transport, next } = createStdioChild("environment.js", [], {
      cwd: tmpdir(),
      env: { GIVEN: "given" },
      inheritEnv: ["WAYBILL_TEST_ASKED"],
    });
    const told = next();
    await transport.start();
    const { params } = (await told) as unknown as { params: { env: Record<string, string>; cwd: string } };
    await transport.close();
    expect(params.cwd).toBe(tmpdir());
    expect(params.env).toMatchObject({
      GIVEN: "given",
      WAYBILL_TEST_ASKED: "asked",
      PATH: process.env["PATH"],
    });
    expect(JSON.stringify(params.env)).not.toContain("secret");
  });

  it("Mcp: can be started once", async () => {
    const { transport } = createStdioChild("echo.js");
    await transport.start();
    await expect(transport.start()).rejects.toThrow("was started before");
    await transport.close();
    await expect(transport.start()).rejects.toThrow("is closed");
  });

  it.each([
    ["lineBytes", 0],
    ["stderrTail", 1.5],
    ["unsentChars", Number.NaN],
    ["closeMs", 2 ** 31],
    ["killMs", -1],
  ])("Mcp: refuses %s as %d", (name, value) => {
    const limits = { [name]: value };
    expect(() => createStdioTransport({ command: "x", limits })).toThrow(
      `limits.${name} must be a whole number from 1 to `,
    );
  });
});

describe("createStdioTransport: with the SDK", () => {
  it("RE-22 serves the client of the SDK, with a server of the older one behind it", async () => {
    const { transport, oddities } = createStdioChild("sdk-server.js");
    const { onOddity } = transport;
    const client = new Client(
      { name: "test", version: "1.0.0" },
      { jsonSchemaValidator: new CfWorkerJsonSchemaValidator() },
    );
    await client.connect(transport as never);
    expect(transport.onOddity).toBe(onOddity);
    expect((await client.listTools()).tools.map((tool) => tool.name)).toEqual(["greet"]);
    const { content } = await client.callTool({ name: "greet", arguments: {} });
    expect(content).toEqual([{ type: "text", text: "Hello." }]);
    expect(oddities).toEqual(['A line on standard output is not JSON: "Welcome!"']);
    const waiting = client.callTool({ name: "greet", arguments: {} });
    process.kill(transport.pid as number, "SIGKILL");
    await expect(waiting).rejects.toThrow("Connection closed");
    await client.close();
    expect(transport.stderrTail).toBe("listening\n");
    expect(transport.exit).toEqual({ code: null, signal: "SIGKILL" });
  });
});
