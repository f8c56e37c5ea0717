import type { ServerResponse } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { OperationRegistry } from "../src/index.ts";
import type { McpConnectionOptions } from "../src/mcp/client/connection-options.ts";
import { openMcpConnection } from "../src/mcp/client/mcp-connection.ts";
import { fromMcp } from "../src/mcp/index.ts";
import { loadedConfig, makeSource } from "./gateway-sources.ts";
import { rejection } from "./make-operation.ts";
import { listen, readBody, refuse, serveOldSse } from "./mcp-servers/http-servers.ts";
import { until } from "./mcp-servers/scripted-connection.ts";

const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close();
});

function keep<T extends { close(): Promise<void> }>(thing: T): T {
  opened.push(thing);
  return thing;
}

const connect = async (url: string, settings: Partial<McpConnectionOptions> = {}) =>
  keep(await openMcpConnection({ url, ...settings } as McpConnectionOptions));

describe("a server of HTTP+SSE, the transport of 2024-11-05", () => {
  it.each([undefined, "sse"] as const)("RE-23 is used where its type is given as %s", async (type) => {
    const server = keep(await serveOldSse());
    const connection = await connect(server.url, { ...(type && { type }), auth: { bearer: "secret" } });
    expect(connection.server).toMatchObject({
      protocolVersion: "2025-11-25",
      serverInfo: { name: "http" },
    });
    const call = connection.request("tools/call", { name: "echo", arguments: { text: "é😀" } });
    expect(await call).toMatchObject({ content: [{ text: '{"text":"é😀"}' }] });
    const methods = server.requests.map(({ method }) => method);
    expect(methods.slice(0, 3)).toEqual(type === "sse" ? ["GET", "POST", "POST"] : ["POST", "POST", "GET"]);
    expect(server.requests.every(({ headers }) => headers.authorization === "Bearer secret")).toBe(true);
    await connection.close();
    await until(() => server.streams() === 0);
  });

  it("RE-23 hears that a call was given up, and has its tools imported", async () => {
    const server = keep(await serveOldSse());
    const source = keep(await fromMcp(server.url, { namespace: "old" }));
    expect([...source.operations].map(({ name }) => name).sort()).toEqual(["echo", "sleep"]);
    const connection = await connect(server.url);
    const stop = new AbortController();
    const call = connection.request("tools/call", { name: "sleep", arguments: {} }, { signal: stop.signal });
    await until(() => server.calls.length === 1);
    stop.abort();
    await expect(call).rejects.toMatchObject({ code: "ABORTED" });
    await until(() => server.cancelled.length === 1);
  });

  it("RE-30 is a source of a gateway", async () => {
    const server = keep(await serveOldSse());
    const config = { mcpServers: { up: { type: "sse", url: server.url } } } as const;
    const { source } = makeSource(loadedConfig(config));
    await source.start();
    const registry = new OperationRegistry();
    registry.registerAll(source);
    const { data } = await registry.execute("up.echo", { a: 1 });
    expect(data).toMatchObject([{ text: '{"a":1}' }]);
  });

  it("Mcp: that drops its stream fails the calls under way as UNAVAILABLE, and is connected to again", async () => {
    const server = keep(await serveOldSse());
    const connection = await connect(server.url, { reconnect: { delayMs: 10 } });
    const call = connection.request("tools/call", { name: "sleep", arguments: {} });
    await until(() => server.calls.length === 1);
    server.drop();
    await expect(call).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringContaining("its event stream"),
    });
    await until(() => connection.state.status === "ready");
    const again = connection.request("tools/call", { name: "echo", arguments: { n: 2 } });
    expect(await again).toMatchObject({ content: [{ text: '{"n":2}' }] });
  });
});

/** Serves a stream of events by hand; what is posted beside it is kept. */
async function serveEvents(onOpen: (response: ServerResponse) => void, url = "/mcp") {
  const posted: string[] = [];
  const streams: ServerResponse[] = [];
  const server = keep(
    await listen(async (request, response) => {
      if (request.method === "GET" && request.url === url) {
        streams.push(response);
        response.writeHead(200, { "content-type": "text/event-stream" }).write(": open\n\n");
        return onOpen(response);
      }
      if (request.url === url) return refuse(response, 405);
      const text = await readBody(request);
      posted.push(text);
      refuse(response, 202);
      const { id, method, params } = JSON.parse(text);
      if (id === undefined) return;
      const result =
        method === "initialize"
          ? { protocolVersion: "2024-11-05", capabilities: {}, serverInfo: { name: "h", version: "1" } }
          : { pad: "x".repeat(params.arguments.bytes) };
      streams.at(-1)?.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", id, result })}\n\n`);
    }),
  );
  return { url: server.url, posted, streams };
}

const endpoint = (data: string) => (response: ServerResponse) =>
  void response.write(`event: endpoint\ndata: ${data}\n\n`);

describe("a hostile server of HTTP+SSE", () => {
  it.each(["http://127.0.0.1:1/messages", "//example.com/m", "https://user:x@127.0.0.1/m", "file:///etc"])(
    "Mcp: has nothing posted to %s, which is not of its origin",
    async (address) => {
      const server = await serveEvents(endpoint(address));
      const failure = await rejection(openMcpConnection({ url: server.url, type: "sse" }));
      expect(failure).toMatchObject({ code: "UNAVAILABLE" });
      expect((failure as Error).message).toContain("it names an address of another origin for messages");
      expect(server.posted).toEqual([]);
    },
  );

  it("Mcp: that never says where messages go is given up when the time is up", async () => {
    const server = await serveEvents(() => {});
    for (const type of ["sse", undefined] as const) {
      const late = openMcpConnection({ url: server.url, ...(type && { type }), connectTimeoutMs: 300 });
      const code = type === "sse" ? "TIMEOUT" : expect.stringMatching(/^(TIMEOUT|UNAVAILABLE)$/);
      await expect(late).rejects.toMatchObject({ code });
    }
    await until(() => server.streams.every((stream) => stream.closed));
  });

  it("Mcp: is told of by the status of the first failure where it has no stream of events either", async () => {
    const server = keep(await listen((_request, response) => refuse(response, 404)));
    await expect(openMcpConnection({ url: server.url })).rejects.toMatchObject({
      code: "UNAVAILABLE",
      details: { status: 404 },
    });
    const page = keep(
      await listen((_request, response) => {
        response.writeHead(200, { "content-type": "text/html" }).end("<p>");
      }),
    );
    await expect(openMcpConnection({ url: page.url, type: "sse" })).rejects.toMatchObject({
      code: "EXECUTION_ERROR",
    });
  });

  it("Mcp: may send events of as many bytes as allowed; one more ends the stream, and it is connected to again", async () => {
    const server = await serveEvents(endpoint("/messages?x=1"));
    const limits = { messageBytes: 2_000 };
    const connection = await connect(server.url, { type: "sse", limits, reconnect: { delayMs: 10 } });
    expect(connection.server.protocolVersion).toBe("2024-11-05");
    const frame = (bytes: number) => {
      const result = { pad: "x".repeat(bytes) };
      return `event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", id: 1, result })}\n`.length;
    };
    const most = limits.messageBytes - frame(0);
    const call = (bytes: number) => connection.request("tools/call", { name: "t", arguments: { bytes } });
    expect(await call(most)).toHaveProperty("pad");
    const failure = await rejection(call(most + 1));
    expect(failure).toMatchObject({ code: "UNAVAILABLE" });
    expect((failure as Error).message).toContain("2000 bytes in one event");
    await until(() => connection.state.status === "ready");
    expect(await call(1)).toHaveProperty("pad");
  });

  it("Mcp: is heard through noise: other events, comments, what is no message, and messages cut anywhere", async () => {
    const oddities: string[] = [];
    const server = await serveEvents((response) => {
      response.write("event: hello\ndata: {}\n\ndata: noise\n\n");
      endpoint("/messages")(response);
      endpoint("http://127.0.0.1:1/other")(response);
    });
    const connection = await connect(server.url, { type: "sse" });
    connection.onEvent((event) => {
      if (event.type === "oddity") oddities.push(event.message);
    });
    const message = JSON.stringify({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
    const heard: string[] = [];
    connection.onEvent((event) => {
      if (event.type === "notification") heard.push(event.method);
    });
    for (const byte of Buffer.from(`data: 7\n\ndata: ${message}\n\n`))
      server.streams[0]?.write(Buffer.of(byte));
    await until(() => heard.length === 1);
    expect(oddities.join()).toContain("An event is not a JSON-RPC message");
    expect(server.posted.length).toBe(2);
  });
});
