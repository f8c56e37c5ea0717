import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { type AnyOperation, OperationRegistry, Type } from "../src/index.ts";
import { serveMcpHttp, toMcpServer } from "../src/mcp/index.ts";
import { serveHttp } from "../src/openapi/index.ts";
import { as, inspectGateway, TOKENS } from "./inspected-gateway.ts";
import { query } from "./make-operation.ts";

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** Far more than the buffers of a loopback connection hold. */
const BIG_BYTES = 16 * 1_024 * 1_024;
const BIG = "x".repeat(BIG_BYTES);

function operations(): AnyOperation[] {
  const inputSchema = Type.Object({});
  return [query("big.read", () => BIG, { inputSchema }), query("small.read", () => "small", { inputSchema })];
}

/** Sends a request over a connection of its own, waits for the first bytes of the answer, and reads no more of it. */
async function leaveUnread(port: number, text: string): Promise<Socket> {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  open.push(() => socket.destroy());
  socket.write(text);
  await new Promise((resolve) => socket.once("readable", resolve));
  return socket;
}

interface Got {
  readonly status: number;
  readonly text: string;
}

function send(url: string, headers: Record<string, string> = {}, body?: unknown): Promise<Got> {
  return new Promise((resolve, reject) => {
    const method = body === undefined ? "GET" : "POST";
    const sent = request(url, { method, headers, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.on("error", reject).end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const get = (path: string, headers: Record<string, string> = {}): string =>
  `GET ${path} HTTP/1.1\r\nhost: localhost\r\n${linesOf(headers)}\r\n`;
const linesOf = (headers: Record<string, string>): string =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join("");

function post(path: string, body: unknown, headers: Record<string, string>): string {
  const text = JSON.stringify(body);
  const length = { "content-length": String(Buffer.byteLength(text)) };
  return `POST ${path} HTTP/1.1\r\nhost: localhost\r\n${linesOf({ ...headers, ...length })}\r\n${text}`;
}

const ACCEPT = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

/** A call of a tool, as a body with its headers. */
function modernCall(name: string): [object, Record<string, string>] {
  const params = { name, arguments: {}, _meta: META };
  const headers = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name };
  return [
    { jsonrpc: "2.0", id: 7, method: "tools/call", params },
    { ...ACCEPT, ...headers },
  ];
}

async function openSession(
  url: string,
): Promise<(name: string, id: number) => [object, Record<string, string>]> {
  const clientInfo = { name: "t", version: "1" };
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
  const first = await fetch(url, {
    method: "POST",
    headers: ACCEPT,
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }),
  });
  await first.text();
  const session = { ...ACCEPT, "mcp-session-id": first.headers.get("mcp-session-id") ?? "" };
  return (name, id) => [
    { jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: {} } },
    session,
  ];
}

describe("answers that nobody reads", () => {
  it("RE-30 hold the slot of their call until they are read, or the client is gone", async () => {
    const server = await serveHttp(new OperationRegistry(operations()), { limits: { calls: 2 } });
    open.push(() => server.close({ timeoutMs: 0 }));
    const small = () => send(`${server.url}/api/small/read`);
    const first = await leaveUnread(server.port, get("/api/big/read"));
    const second = await leaveUnread(server.port, get("/api/big/read"));
    expect([(await small()).status, (await small()).status]).toEqual([503, 503]);
    first.destroy();
    while ((await small()).status === 503);
    expect((await small()).status).toBe(200);
    await leaveUnread(server.port, get("/api/big/read"));
    expect((await small()).status).toBe(503);
    second.resume();
    while ((await small()).status === 503);
    expect((await small()).status).toBe(200);
  });

  it("RE-30 hold it too over MCP, whatever the revision, and the answer to one more says so", async () => {
    const server = toMcpServer(new OperationRegistry(operations()), {
      limits: { inlineCharacters: 100_000_000 },
    });
    const served = await serveMcpHttp(server, { limits: { calls: 2 } });
    open.push(() => served.close({ timeoutMs: 0 }));
    const legacyCall = await openSession(served.url);
    const modern = modernCall("big_read");
    const legacy = legacyCall("big_read", 2);
    const held = [
      await leaveUnread(served.port, post("/mcp", ...modern)),
      await leaveUnread(served.port, post("/mcp", ...legacy)),
    ];
    const [body, headers] = modernCall("small_read");
    const small = () => send(served.url, headers, body);
    const [oldBody, oldHeaders] = legacyCall("small_read", 3);
    for (const got of [await small(), await send(served.url, oldHeaders, oldBody)]) {
      expect(got.status).toBe(200);
      expect(JSON.parse(got.text)).toMatchObject({ error: { data: { code: "RESOURCE_EXHAUSTED" } } });
    }
    for (const socket of held) socket.destroy();
    while ((await small()).text.includes("RESOURCE_EXHAUSTED"));
    expect((await small()).text).toContain("small");
  });

  it("RE-30 hold it in a gateway, over HTTP and MCP alike", async () => {
    const gateway = await inspectGateway(operations(), { limits: { calls: 1 } });
    open.push(() => gateway.close());
    const [body, headers] = modernCall("small_read");
    const overHttp = async () => (await send(`${gateway.url}/api/small/read`)).status;
    const overMcp = async () => (await send(`${gateway.url}/mcp`, headers, body)).text;
    const held = await leaveUnread(gateway.port, get("/api/big/read"));
    expect(await overHttp()).toBe(503);
    held.destroy();
    while ((await overHttp()) === 503);
    expect(await overHttp()).toBe(200);
    expect(await overMcp()).toContain("small");
  });

  it("RE-30 wait in so many bytes; one more answer is refused, and a small one is not", async () => {
    const unsentBytes = 2 * (BIG_BYTES + 2);
    const server = await serveHttp(new OperationRegistry(operations()), { limits: { unsentBytes } });
    open.push(() => server.close({ timeoutMs: 0 }));
    const held = [
      await leaveUnread(server.port, get("/api/big/read")),
      await leaveUnread(server.port, get("/api/big/read")),
    ];
    const big = () => send(`${server.url}/api/big/read`);
    const refused = await big();
    expect([refused.status, JSON.parse(refused.text)]).toMatchObject([503, { code: "RESOURCE_EXHAUSTED" }]);
    expect((await send(`${server.url}/api/small/read`)).status).toBe(200);
    held[0]?.destroy();
    let got = await big();
    while (got.status === 503) got = await big();
    expect([got.status, got.text.length]).toEqual([200, BIG_BYTES + 2]);
  });

  it("RE-30 are a quarter of that for one caller", async () => {
    const unsentBytes = 8 * (BIG_BYTES + 2) - 1;
    const authenticate = (asked: Request) => ({ subject: asked.headers.get("x-who") ?? "nobody" });
    const options = { limits: { unsentBytes }, authenticate };
    const server = await serveHttp(new OperationRegistry(operations()), options);
    open.push(() => server.close({ timeoutMs: 0 }));
    await leaveUnread(server.port, get("/api/big/read", { "x-who": "ann" }));
    await leaveUnread(server.port, get("/api/big/read", { "x-who": "ann" }));
    expect((await send(`${server.url}/api/big/read`, { "x-who": "ann" })).status).toBe(503);
    expect((await send(`${server.url}/api/big/read`, { "x-who": "ben" })).status).toBe(200);
  });

  it("RE-30 are counted by caller in a gateway too, over MCP and HTTP together", async () => {
    const gateway = await inspectGateway(operations(), {
      serve: { auth: { tokens: TOKENS } },
      policies: { "*": { resultBudget: 100_000_000 } },
    });
    open.push(() => gateway.close());
    const [body, headers] = modernCall("big_read");
    for (let n = 0; n < 3; n++) await leaveUnread(gateway.port, get("/api/big/read", as("ann")));
    expect((await send(`${gateway.url}/api/big/read`, as("ann"))).status).toBe(503);
    expect((await send(`${gateway.url}/mcp`, { ...headers, ...as("ann") }, body)).status).toBe(503);
    expect((await send(`${gateway.url}/api/small/read`, as("ann"))).status).toBe(200);
    expect((await send(`${gateway.url}/api/big/read`, as("bob"))).status).toBe(200);
  });
});
