import { request } from "node:http";
import { PassThrough } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import { createMcpHandler, serveMcpHttp, serveStdio } from "../src/mcp/index.ts";
import { until } from "./make-operation.ts";
import { call, ENDPOINT, INITIALIZE, initialize, post } from "./mcp-requests.ts";
import { createSmallMcpServer } from "./small-mcp-server.ts";

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
};

interface Heard {
  readonly id?: unknown;
  readonly method?: string;
  readonly result?: { readonly content?: readonly { readonly text: string }[] };
  readonly error?: { readonly code: number };
}

function startStdio(limits = {}) {
  const small = createSmallMcpServer();
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const heard: Heard[] = [];
  let rest = "";
  stdout.on("data", (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) heard.push(JSON.parse(line) as Heard);
  });
  const connection = serveStdio(small, { stdin, stdout, limits, onWarning: () => {} });
  closing.push(() => connection.close());
  const say = (message: unknown) => stdin.write(`${JSON.stringify(message)}\n`);
  const answerTo = async (id: unknown): Promise<Heard> => {
    await until(() => heard.some((message) => message.id === id && message.method === undefined));
    return heard.find((message) => message.id === id && message.method === undefined) as Heard;
  };
  return { small, connection, say, heard, answerTo };
}

describe("a client over stdio", () => {
  it("Mcp: cannot end the process with an answer that is none", async () => {
    const { say, heard, answerTo } = startStdio();
    const capabilities = { elicitation: {} };
    say({ ...INITIALIZE, params: { ...INITIALIZE.params, capabilities } });
    await answerTo(1);
    say(call(2, "ask"));
    await until(() => heard.some(({ method }) => method === "elicitation/create"));
    const asked = heard.find(({ method }) => method === "elicitation/create")?.id;
    for (const bad of [
      {},
      { error: null },
      { error: {} },
      { error: { code: "x" } },
      { result: 1 },
      { result: null },
    ]) {
      say({ jsonrpc: "2.0", id: asked, ...bad });
    }
    say({ jsonrpc: "2.0", id: 99, result: {} });
    say({ jsonrpc: "2.0", id: asked, result: { action: "accept", content: { colour: "red" } } });
    expect((await answerTo(2)).result?.content?.[0]?.text).toBe("red");
  });

  it("Mcp: is not answered under an id that is none, nor under another's", async () => {
    const { say, heard, answerTo } = startStdio();
    say(INITIALIZE);
    await answerTo(1);
    const before = heard.length;
    for (const id of [null, 1.5, {}, [1], true, 2 ** 60]) say({ jsonrpc: "2.0", id, method: "ping" });
    say({ jsonrpc: "2.0", id: 3, method: "ping", params: [] });
    say({ jsonrpc: "2.0", id: 4, method: "ping", extra: 1 });
    expect((await answerTo(3)).error?.code).toBe(-32_602);
    expect((await answerTo(4)).error?.code).toBe(-32_600);
    expect(heard).toHaveLength(before + 2);
  });

  it("Mcp: uses an id for one request at a time, streams of changes included", async () => {
    const { small, say, heard, answerTo } = startStdio({ subscriptions: 2 });
    const listen = {
      jsonrpc: "2.0",
      id: 1,
      method: "subscriptions/listen",
      params: { notifications: { toolsListChanged: true }, _meta: META },
    };
    say(listen);
    say(listen);
    expect((await answerTo(1)).error?.code).toBe(-32_600);
    const changes = () => heard.filter(({ method }) => method === "notifications/tools/list_changed").length;
    small.change();
    await until(() => changes() === 1);
    say({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } });
    const slow = call(2, "slow", { ms: 60_000 });
    const again = { ...slow, params: { ...slow.params, _meta: META } };
    say(again);
    await until(() => small.running === 1);
    say(again);
    expect((await answerTo(2)).error?.code).toBe(-32_600);
    expect(changes()).toBe(1);
    small.finish();
  });

  it("Mcp: is gone when the server closes, whether it has asked anything or not", async () => {
    const { small, connection, say } = startStdio();
    await small.close();
    say({
      jsonrpc: "2.0",
      id: 1,
      method: "subscriptions/listen",
      params: { notifications: {}, _meta: META },
    });
    await connection.closed;
  });
});

describe("an exchange over node:http", () => {
  it("Mcp: does not wait for the body of a client that left before it was read", async () => {
    let asked = 0;
    let admit: () => void = () => {};
    const admitted = new Promise<void>((resolve) => {
      admit = resolve;
    });
    const http = await serveMcpHttp(createSmallMcpServer(), {
      authenticate: async () => {
        asked += 1;
        await admitted;
        return undefined;
      },
      onWarning: () => {},
    });
    const body = JSON.stringify(INITIALIZE);
    const headers = { "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) };
    const sent = request(http.url, { method: "POST", headers }).on("error", () => {});
    sent.write(body.slice(0, 20));
    await until(() => asked === 1);
    const gone = new Promise((resolve) => sent.once("close", resolve));
    sent.destroy();
    await gone;
    admit();
    // Would wait for the request otherwise, and the test with it.
    await http.close({ timeoutMs: 600_000 });
  });

  it("Mcp: refuses methods that requests of the platform do not have", async () => {
    const http = await serveMcpHttp(createSmallMcpServer(), {
      authenticate: () => undefined,
      onWarning: (message) => expect.unreachable(message),
    });
    closing.push(() => http.close({ timeoutMs: 0 }));
    const status = await new Promise((resolve, reject) => {
      const sent = request(http.url, { method: "TRACE" }, (response) =>
        resolve(response.resume().statusCode),
      );
      sent.on("error", reject).end();
    });
    expect(status).toBe(405);
  });
});

describe("a 2025 session", () => {
  it("Mcp: gives the rest of a stream however long it is, and can be read again afterwards", async () => {
    const small = createSmallMcpServer();
    const handler = createMcpHandler(small, { limits: { streamBytes: 100 } });
    closing.push(() => handler.close());
    const session = { "mcp-session-id": await initialize(handler), accept: "text/event-stream" };
    const read = (headers = {}) =>
      handler.fetch(new Request(ENDPOINT, { headers: { ...session, ...headers } }));
    const first = (await read()).body as ReadableStream<Uint8Array>;
    const reader = first.getReader();
    small.change();
    const id = /^id: (.*)$/m.exec(new TextDecoder().decode((await reader.read()).value))?.[1] ?? "";
    await reader.cancel();
    for (let i = 0; i < 3; i++) {
      small.change();
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
    const again = ((await read({ "last-event-id": id })).body as ReadableStream<Uint8Array>).getReader();
    const text = new TextDecoder().decode((await again.read()).value);
    expect(text.match(/list_changed/g)).toHaveLength(3);
    await again.cancel();
    const last = await read();
    expect(last.status).toBe(200);
    await last.body?.cancel();
  });

  it("Mcp: takes a body with a byte order mark", async () => {
    const handler = createMcpHandler(createSmallMcpServer());
    closing.push(() => handler.close());
    expect((await handler.fetch(post(`\uFEFF${JSON.stringify(INITIALIZE)}`))).status).toBe(200);
  });
});
