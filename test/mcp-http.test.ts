import { type AddressInfo, connect, createServer } from "node:net";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as FirstTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { afterEach, describe, expect, it } from "vitest";
import { type McpHttpServer, type ServeMcpHttpOptions, serveMcpHttp } from "../src/mcp/index.ts";
import { endsInTime } from "./lateness.ts";
import { until } from "./mcp-requests.ts";
import { createSmallMcpServer } from "./small-mcp-server.ts";

const open: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close().catch(() => {});
});

async function start(options?: ServeMcpHttpOptions) {
  const small = createSmallMcpServer();
  const http = await serveMcpHttp(small, options);
  open.push({ close: () => http.close({ timeoutMs: 0 }) });
  return { small, http };
}

/** What both generations of clients share, for these tests. */
interface Peer {
  listTools(): Promise<{ readonly tools: readonly { readonly name: string }[] }>;
  call(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<string>;
  close(): Promise<void>;
}
interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onprogress?: (progress: { readonly progress: number }) => void;
}

function textOf(result: unknown): string {
  return (result as { readonly content: readonly { readonly text: string }[] }).content[0]?.text ?? "";
}

const answer = { action: "accept" as const, content: { colour: "green" } };

async function connectSecond(
  http: McpHttpServer,
  mode: "legacy" | "auto",
  onChange?: () => void,
): Promise<Peer> {
  const client = new Client(
    { name: "second", version: "1" },
    {
      capabilities: { elicitation: { form: {} } },
      jsonSchemaValidator: new CfWorkerJsonSchemaValidator(),
      versionNegotiation: { mode },
      ...(onChange && { listChanged: { tools: { onChanged: onChange, autoRefresh: false, debounceMs: 0 } } }),
    },
  );
  client.setRequestHandler("elicitation/create", () => answer);
  await client.connect(new StreamableHTTPClientTransport(new URL(http.url)));
  open.push(client);
  return {
    listTools: () => client.listTools(),
    call: async (name, args = {}, options = {}) =>
      textOf(await client.callTool({ name, arguments: args }, options)),
    close: () => client.close(),
  };
}

async function connectFirst(http: McpHttpServer, onChange?: () => void): Promise<Peer> {
  const client = new FirstClient({ name: "first", version: "1" }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, () => answer);
  if (onChange) client.setNotificationHandler(ToolListChangedNotificationSchema, onChange);
  await client.connect(new FirstTransport(new URL(http.url)) as never);
  open.push(client);
  return {
    listTools: () => client.listTools(),
    call: async (name, args = {}, options = {}) =>
      textOf(await client.callTool({ name, arguments: args }, undefined, options)),
    close: () => client.close(),
  };
}

const CLIENTS = {
  "SDK 1.x": connectFirst,
  "SDK 2.x, 2025": (http: McpHttpServer, onChange?: () => void) => connectSecond(http, "legacy", onChange),
  "SDK 2.x, 2026-07-28": (http: McpHttpServer, onChange?: () => void) =>
    connectSecond(http, "auto", onChange),
};

describe.each(Object.entries(CLIENTS))("%s over HTTP", (_, connectTo) => {
  it("RE-30 lists and calls tools, with progress", async () => {
    const { http } = await start();
    const peer = await connectTo(http);
    expect((await peer.listTools()).tools).toHaveLength(6);
    expect(await peer.call("echo", { text: "héllo 👋" })).toBe("héllo 👋");
    const seen: number[] = [];
    expect(await peer.call("slow", { ms: 20 }, { onprogress: ({ progress }) => seen.push(progress) })).toBe(
      "done",
    );
    expect(seen).toEqual([1]);
  });

  it("RE-30 asks the person behind the client", async () => {
    const { http } = await start();
    expect(await (await connectTo(http)).call("ask")).toBe("green");
  });

  it("RE-30 ends a call that the client cancels", async () => {
    const { small, http } = await start();
    const peer = await connectTo(http);
    const aborting = new AbortController();
    const call = peer.call("slow", { ms: 20_000 }, { signal: aborting.signal });
    call.catch(() => {});
    await until(() => small.running === 1);
    aborting.abort();
    await expect(call).rejects.toThrow();
    await until(() => small.aborted === 1);
    expect(await peer.call("echo", { text: "still here" })).toBe("still here");
  });

  it("RE-30 tells of changes", async () => {
    const { small, http } = await start();
    let changes = 0;
    await connectTo(http, () => {
      changes += 1;
    });
    await until(() => {
      small.change();
      return changes > 0;
    });
  });

  it("Mcp: lets running calls finish when it closes, and refuses new ones", async () => {
    const { small, http } = await start();
    const peer = await connectTo(http);
    const call = peer.call("slow", { ms: 600_000 });
    await until(() => small.running === 1);
    const closing = http.close({ timeoutMs: 600_000 });
    small.finish();
    expect(await call).toBe("done");
    await closing;
    await expect(fetch(http.url)).rejects.toThrow();
  });

  it("Mcp: ends running calls when they take longer than closing may", async () => {
    const { small, http } = await start();
    const peer = await connectTo(http);
    const call = peer.call("slow", { ms: 600_000 });
    call.catch(() => {});
    await until(() => small.running === 1);
    await http.close({ timeoutMs: 50 });
    await until(() => small.aborted === 1);
  });
});

function post(
  path: string,
  host: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): string {
  const all = {
    host,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "content-length": String(Buffer.byteLength(body)),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  return `POST ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n${body}`;
}

/** Sends bytes as they are, and reads until the other side has said `enough`. */
function raw(port: number, bytes: string, enough: RegExp): Promise<{ text: string; leave: () => void }> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    open.push({ close: async () => socket.destroy() });
    let text = "";
    socket.on("error", reject);
    socket.on("close", () => reject(new Error(`Closed after: ${text}`)));
    socket.on("data", (chunk) => {
      text += chunk.toString();
      if (enough.test(text)) resolve({ text, leave: () => socket.destroy() });
    });
  });
}

/** Passes connections on, and breaks, when it is told to, the first one over which something has been said. */
async function startBreakingProxy(port: number, enough: RegExp) {
  const proxy = { port: 0, break: (): void => expect.unreachable("Nothing was said.") };
  let isFound = false;
  const server = createServer((near) => {
    const far = connect(port, "127.0.0.1");
    const end = (): void => void [near.destroy(), far.destroy()];
    for (const socket of [near, far]) socket.on("error", end).on("close", end);
    near.pipe(far);
    far.on("data", (chunk) => {
      near.write(chunk);
      if (isFound || !enough.test(chunk.toString())) return;
      isFound = true;
      proxy.break = end;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push({ close: async () => server.close() });
  proxy.port = (server.address() as AddressInfo).port;
  return proxy;
}

const INITIALIZE = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
});

describe("serveMcpHttp", () => {
  it("Mcp: listens on a free loopback port, and only at its path", async () => {
    const { http } = await start({ path: "/tools" });
    expect(http.url).toBe(`http://127.0.0.1:${http.port}/tools`);
    expect((await fetch(new URL("/mcp", http.url))).status).toBe(404);
    expect((await fetch(http.url)).status).toBe(400);
  });

  it("Mcp: refuses an address others can reach while nobody is authenticated", async () => {
    const small = createSmallMcpServer();
    for (const host of ["0.0.0.0", "::", "192.168.1.5", "example.com"]) {
      await expect(serveMcpHttp(small, { host })).rejects.toThrow(TypeError);
    }
    const { http } = await start({ host: "0.0.0.0", unsafeOpen: true });
    expect((await fetch(`http://127.0.0.1:${http.port}/mcp`)).status).toBe(400);
    await start({ host: "0.0.0.0", authenticate: () => undefined });
  });

  it("Mcp: refuses a rebound host name and a foreign page", async () => {
    const { http } = await start();
    const rebound = await raw(http.port, post("/mcp", "evil.example", INITIALIZE), /HTTP\/1.1 \d+/);
    expect(rebound.text).toContain(" 403 ");
    const origin = { origin: "https://evil.example" };
    const foreign = await raw(
      http.port,
      post("/mcp", `localhost:${http.port}`, INITIALIZE, origin),
      /HTTP\/1.1 \d+/,
    );
    expect(foreign.text).toContain(" 403 ");
  });

  it("Mcp: lets the call of a 2025 client whose connection broke go on, and gives the result to it later", async () => {
    const { http, small } = await start();
    const opened = await raw(http.port, post("/mcp", "localhost", INITIALIZE), /serverInfo/);
    const session = /mcp-session-id: (\S+)/i.exec(opened.text)?.[1] ?? "";
    const params = { name: "slow", arguments: { ms: 600_000 }, _meta: { progressToken: 1 } };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 2, method: "tools/call", params });
    const call = await raw(
      http.port,
      post("/mcp", "localhost", body, { "mcp-session-id": session }),
      /progress/,
    );
    expect(small.running).toBe(1);
    call.leave();
    const last = /^id: (\S+)/m.exec(call.text)?.[1] ?? "";
    const headers = { "mcp-session-id": session, "last-event-id": last, accept: "text/event-stream" };
    const rest = await fetch(http.url, { headers });
    small.finish();
    expect(await rest.text()).toContain('"text":"done"');
    expect(small.aborted).toBe(0);
  });

  it.each(["legacy", "first"])(
    "Mcp: a client of SDK %s gets its result over a connection that breaks",
    async (kind) => {
      const { http, small } = await start();
      const proxy = await startBreakingProxy(http.port, /"progress":1/);
      const url = { ...http, url: `http://127.0.0.1:${proxy.port}/mcp` };
      const peer = kind === "first" ? await connectFirst(url) : await connectSecond(url, "legacy");
      const seen: number[] = [];
      const options = { onprogress: ({ progress }: { readonly progress: number }) => seen.push(progress) };
      const call = peer.call("slow", { ms: 600_000 }, options);
      await until(() => seen.length === 1);
      proxy.break();
      small.finish();
      expect(await call).toBe("done");
      expect([seen, small.aborted]).toEqual([[1], 0]);
    },
  );

  it("Mcp: drops a client that never finishes its headers and still serves others", async () => {
    const { http } = await start();
    const socket = connect(http.port, "127.0.0.1", () => socket.write("POST /mcp HTTP/1.1\r\nhost: local"));
    open.push({ close: async () => socket.destroy() });
    socket.on("error", () => {});
    expect(await (await connectFirst(http)).call("echo", { text: "x" })).toBe("x");
    // It would be dropped for its headers after ten seconds.
    expect(await endsInTime(0, () => http.close({ timeoutMs: 100 }), 5_000)).toBe(true);
  });

  it("Mcp: refuses a body without a declared length as soon as it is too long", async () => {
    const { http } = await start({ limits: { bodyBytes: 1_000 } });
    const head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    const chunk = `${(2_000).toString(16)}\r\n${" ".repeat(2_000)}\r\n`;
    const { text } = await raw(
      http.port,
      `${head}transfer-encoding: chunked\r\n\r\n${chunk}`,
      /HTTP\/1.1 \d+/,
    );
    expect(text).toContain(" 413 ");
  });
});
