import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  CallHandler,
  createMemoryBus,
  createRemoteRegistry,
  type RemoteRegistry,
} from "../src/call/index.ts";
import { type Gateway, type GatewayConfig, loadConfig } from "../src/gateway/index.ts";
import { OperationRegistry, toCallError } from "../src/index.ts";
import { fromMcp } from "../src/mcp/index.ts";
import { fromOpenApi } from "../src/openapi/index.ts";
import { type InspectedGateway, inspectLoaded } from "./inspected-gateway.ts";
import { collect, rejection } from "./make-operation.ts";
import { runCommandLine } from "./run-command-line.ts";

const SECRET = "canary-4f1c9e27ab53d860";
const SHORT = "cnry-77z";
const WORDS = "the shelf is empty";
const escapeEach = (by: (hex: string) => string): string =>
  [...SECRET].map((letter) => by(letter.charCodeAt(0).toString(16).padStart(2, "0"))).join("");
/** Other ways in which programs write what they were sent. */
const SPELLED = [
  escapeEach((hex) => `%${hex}`),
  escapeEach((hex) => `\\u00${hex}`),
  escapeEach((hex) => `&#x${hex};`),
  escapeEach((hex) => `%25${hex}`),
  SECRET.replaceAll("-", "%2D"),
  Buffer.from(SECRET).toString("hex"),
];
/** Whatever a source answers with, it repeats what it was sent. */
const ECHO = `${WORDS} for ${SECRET} and ${Buffer.from(`me:${SECRET}`).toString("base64")}`;

/** An HTTP API that fails in one shape: its status, its type, its body. */
const SHAPES: Readonly<Record<string, readonly [number, string, unknown]>> = {
  message: [400, "application/json", { message: ECHO, documentation_url: "x" }],
  detail: [422, "application/problem+json", { title: "Unprocessable", detail: ECHO }],
  details: [422, "application/json", { detail: [{ loc: ["q"], msg: ECHO }] }],
  title: [404, "application/problem+json", { type: "about:blank", title: ECHO }],
  error: [403, "application/json", { error: ECHO }],
  nested: [401, "application/json", { error: { code: 7, message: ECHO } }],
  errors: [409, "application/json", { errors: [{ field: "q", message: ECHO }] }],
  other: [500, "application/json", { reason: ECHO }],
  text: [503, "text/plain", ECHO],
  html: [502, "text/html", `<h1>${ECHO}</h1>`],
  broken: [500, "application/json", `{"message": "${ECHO}`],
  spelled: [400, "application/json", { message: `${WORDS}: ${SPELLED.join(" ")}` }],
};
const FORMATS = ["mcp", "tool-envelope", "status-envelope", "response-envelope", "tiered-envelope"] as const;
const RPC_CODES = [-32602, -32603, -32601, -32000, 7];

function answerApi(name: string, response: ServerResponse): void {
  const [status, type, body] = SHAPES[name] ?? [200, "application/json", {}];
  response.writeHead(status, { "content-type": type });
  response.end(typeof body === "string" ? body : JSON.stringify(body));
}

interface RpcRequest {
  readonly id?: number;
  readonly method: string;
  readonly params?: { readonly name?: string; readonly protocolVersion?: string };
}

/** Tools that answer with JSON-RPC errors, one that says no, and one that works; each repeats what it was sent. */
function answerRpc({ id, method, params }: RpcRequest): object | undefined {
  if (id === undefined) return undefined;
  const names = [...RPC_CODES.map((code) => `e${Math.abs(code)}`), "no", "ok"];
  const reply = (member: object): object => ({ jsonrpc: "2.0", id, ...member });
  switch (method) {
    case "initialize": {
      const { protocolVersion } = params ?? {};
      const serverInfo = { name: "raw", version: "1.0.0" };
      return reply({ result: { protocolVersion, capabilities: { tools: {}, resources: {} }, serverInfo } });
    }
    case "tools/list":
      return reply({ result: { tools: names.map((name) => ({ name, inputSchema: { type: "object" } })) } });
    case "resources/read":
      return reply({ result: { contents: [{ uri: "a://b", text: ECHO }] } });
    case "tools/call": {
      const { name } = params ?? {};
      if (name === "no") return reply({ result: { isError: true, content: [{ type: "text", text: ECHO }] } });
      if (name === "ok") {
        const structuredContent = { at: [{ [SECRET]: ECHO }] };
        return reply({ result: { content: [{ type: "text", text: ECHO }], structuredContent } });
      }
      const code = RPC_CODES.find((one) => `e${Math.abs(one)}` === name);
      return reply({ error: { code, message: ECHO, data: { again: ECHO } } });
    }
    default:
      return reply({ error: { code: -32601, message: "no such method" } });
  }
}

async function readText(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text;
}

const upstream = createServer(async (request, response) => {
  const text = await readText(request);
  const path = new URL(request.url ?? "/", "http://x").pathname;
  if (path === "/mcp") {
    if (request.method !== "POST") return void response.writeHead(405).end();
    const answer = answerRpc(JSON.parse(text) as RpcRequest);
    if (answer === undefined) return void response.writeHead(202).end();
    return void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  }
  if (path === "/api/whole") {
    const cookie = `session=${SECRET}; Path=/`;
    const headers = { "content-type": "application/json", "x-echo": SECRET, "set-cookie": cookie };
    const body = {
      list: [1, { [`${SECRET}/x`]: "key", text: ECHO, url: `https://a/?k=${SECRET}` }],
      short: SHORT,
    };
    return void response.writeHead(200, headers).end(JSON.stringify(body));
  }
  if (path === "/api/bytes") {
    const bytes = Buffer.from(`\u00ff${ECHO} ${SPELLED.join(" ")}`, "latin1");
    return void response.writeHead(200, { "content-type": "application/octet-stream" }).end(bytes);
  }
  if (path === "/api/events") {
    response.writeHead(200, { "content-type": "text/event-stream" });
    return void response.end(
      `id: 1-${SECRET}\nevent: ${SECRET}\ndata: ${JSON.stringify({ text: ECHO })}\n\nid: 2\nevent: b\ndata: ${JSON.stringify({ n: 2 })}\n\n`,
    );
  }
  if (path === "/api/token") {
    response.writeHead(200, { "content-type": "application/json" });
    return void response.end(JSON.stringify({ access_token: `issued-${SECRET}`, token_type: "bearer" }));
  }
  if (path === "/api/sent") {
    response.writeHead(200, { "content-type": "application/json" });
    return void response.end(JSON.stringify({ sent: request.headers["authorization"] ?? null }));
  }
  answerApi(path.replace("/api/", ""), response);
});

function documentOf(base: string, oauth = false): object {
  const scheme = oauth
    ? { type: "oauth2", flows: { clientCredentials: { tokenUrl: `${base}/token`, scopes: {} } } }
    : { type: "http", scheme: "bearer" };
  const get = (operationId: string, type = "application/json") => ({
    get: {
      operationId,
      responses: {
        200: { description: "", content: { [type]: { schema: {} } } },
        default: { description: "" },
      },
    },
  });
  return {
    openapi: "3.1.0",
    info: { title: "a", version: "1.0.0" },
    servers: [{ url: base }],
    security: [{ key: [] }],
    components: { securitySchemes: { key: scheme } },
    paths: {
      ...Object.fromEntries([...Object.keys(SHAPES), "whole", "sent"].map((name) => [`/${name}`, get(name)])),
      "/events": get("events", "text/event-stream"),
      "/bytes": get("bytes", "application/octet-stream"),
    },
  };
}

/** Everything that runs for the tests: a folder with a config, its gateway, served, with an inspector and a bus. */
interface Running {
  readonly folder: string;
  readonly base: string;
  readonly gateway: Gateway;
  readonly server: InspectedGateway;
  readonly handler: CallHandler;
  readonly remote: RemoteRegistry;
}
let running: Running;

beforeAll(async () => {
  await new Promise<void>((resolve) => void upstream.listen(0, "127.0.0.1", resolve));
  const base = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  const folder = mkdtempSync(join(tmpdir(), "waybill-words-"));
  writeFileSync(join(folder, "api.json"), JSON.stringify(documentOf(`${base}/api`)));
  const config: GatewayConfig = {
    openapi: { api: { document: "api.json", baseUrl: `${base}/api`, auth: { bearer: SECRET } } },
    mcpServers: {
      rpc: { url: `${base}/mcp`, headers: { "X-Api-Key": SECRET } },
      silent: { url: `${base}/mcp`, headers: { "X-Api-Key": SECRET }, said: false, maskResults: false },
    },
    serve: {
      port: 0,
      clients: Object.fromEntries(FORMATS.map((format) => [`wants-${format}`, { format }])),
    },
  };
  writeFileSync(join(folder, "waybill.config.json"), JSON.stringify(config));
  const loaded = await loadConfig(join(folder, "waybill.config.json"), { env: {}, cwd: folder });
  const server = await inspectLoaded(loaded);
  const { gateway } = server;
  const bus = createMemoryBus();
  const handler = new CallHandler(gateway.executor, bus);
  await handler.start();
  running = { folder, base, gateway, server, handler, remote: await createRemoteRegistry(bus) };
}, 60_000);

afterAll(async () => {
  await running.remote.close();
  await running.handler.drain();
  await running.server.close();
  upstream.close().closeAllConnections();
  rmSync(running.folder, { recursive: true, force: true });
});

async function post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const accept = "application/json, text/event-stream";
  return await fetch(running.server.url + path, {
    method: "POST",
    headers: { "content-type": "application/json", accept, ...headers },
    body: JSON.stringify(body),
  });
}

const toolOf = (id: string): string => id.replaceAll(".", "_");

async function callModern(id: string, client: string): Promise<string> {
  const name = toolOf(id);
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: client, version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const headers = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name };
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: {}, _meta } };
  return await (await post("/mcp", call, headers)).text();
}

/** The ways to call an operation; each gives all that its caller can see. */
const SURFACES: Readonly<Record<string, (id: string) => Promise<string>>> = {
  registry: async (id) => {
    const error = await rejection(running.gateway.executor.execute(id, {}));
    // A program may print the error, with its causes and members.
    return `${JSON.stringify(error)}\n${inspect(error, { depth: 10, showHidden: true })}`;
  },
  CLI: async (id) => {
    const { code, stdout, stderr } = await runCommandLine(["call", id], { cwd: running.folder });
    expect(code).toBe(3);
    expect(stderr).toContain("The source said:\n  > ");
    return stdout + stderr;
  },
  "CLI --json": async (id) => {
    const { stdout, stderr } = await runCommandLine(["call", id, "--json"], { cwd: running.folder });
    return stdout + stderr;
  },
  "/api": async (id) => {
    const path = `/api/${id.replace(".", "/")}`;
    const isRead = id.startsWith("api.");
    return await (await (isRead ? fetch(running.server.url + path) : post(path, {}))).text();
  },
  "/call": async (id) => await (await post("/call", { operation: id, input: {} })).text(),
  "/batch": async (id) => await (await post("/batch", [{ operation: id, input: {} }])).text(),
  "MCP 2025": async (id) => {
    const clientInfo = { name: "t", version: "1" };
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
    const opened = await post("/mcp", { jsonrpc: "2.0", id: 1, method: "initialize", params });
    await opened.text();
    const session = { "mcp-session-id": opened.headers.get("mcp-session-id") ?? "" };
    const call = { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: toolOf(id), arguments: {} } };
    return await (await post("/mcp", call, session)).text();
  },
  "MCP 2026-07-28": (id) => callModern(id, "test"),
  bus: async (id) => {
    const error = await rejection(running.remote.execute(id, {}));
    return `${JSON.stringify(error)}\n${inspect(error, { depth: 10 })}`;
  },
  inspector: async (id) => await (await post("/inspect/api/run", { operation: id, input: {} })).text(),
};

const FAILING = [
  ...Object.keys(SHAPES).map((name) => `api.${name}`),
  ...RPC_CODES.map((code) => `rpc.e${Math.abs(code)}`),
];

/** Neither what is secret nor where things are on this machine. */
function expectClean(text: string): void {
  expect(text).not.toContain(SECRET);
  expect(text).not.toContain(SECRET.slice(0, 12));
  expect(text).not.toContain(Buffer.from(`me:${SECRET}`).toString("base64").slice(4, 24));
  expect(text).not.toContain(running.folder);
  const plain = text.replaceAll("\\\\", "\\");
  for (const spelled of SPELLED) expect(plain).not.toContain(spelled.slice(0, spelled.length / 2));
}

describe.each(Object.entries(SURFACES))("what a source said, over %s", (surface, ask) => {
  it.each(FAILING)("X-11 of %s is passed on as its words, without secrets", async (id) => {
    const text = await ask(id);
    expectClean(text);
    expect(text).toContain(WORDS);
    if (surface === "/api" || surface === "/call") {
      const { detail, details } = JSON.parse(text) as { detail: string; details: { said: string } };
      expect(details.said).toContain(WORDS);
      expect(details.said.length).toBeLessThanOrEqual(1_000);
      expect(detail).not.toContain(WORDS);
    }
  });

  it("X-11 is not passed on where the config of the source says so", async () => {
    if (surface.startsWith("CLI")) return;
    const text = await ask("silent.e32000");
    expectClean(text.replace(/"?\[?cause[\s\S]*$/, ""));
    expect(text.replace(/\[cause\][\s\S]*$/, "")).not.toContain(WORDS);
  });
});

describe("what a source said, in every format", () => {
  it.each(FORMATS)(
    "X-11 CS-6 %s says it, but for the one that keeps the text of errors back",
    async (format) => {
      for (const id of ["api.detail", "rpc.e32000"]) {
        const text = await callModern(id, `wants-${format}`);
        expectClean(text);
        const { result } = JSON.parse(text) as { result: { content: unknown; structuredContent?: unknown } };
        // What the format itself says, beside what `_meta` has for programs.
        const written = JSON.stringify([result.content, result.structuredContent]);
        expect(written.includes(WORDS)).toBe(format !== "tiered-envelope");
        if (format === "tiered-envelope") expect(text).not.toContain(WORDS);
      }
    },
  );
});

describe("what a tool wrote about its error", () => {
  it("X-11 stays whole, and is repeated as the source's words only where a problem is written", async () => {
    const { data, meta } = await running.gateway.executor.execute("rpc.no", {});
    const masked = `${WORDS} for *** and bWU6***`;
    expect(JSON.stringify([data, meta])).toContain(WORDS);
    expect(meta.waybill?.details).toBeUndefined();
    const problem = await (await post("/call", { operation: "rpc.no", input: {} })).json();
    expect(problem).toMatchObject({ status: 422, detail: "The operation reported an error" });
    expect((problem as { details: { said: string } }).details.said.startsWith(`${WORDS} for ***`)).toBe(true);
    expectClean(JSON.stringify([data, meta, problem, masked]));
  });
});

describe("secrets in results of a source that has credentials", () => {
  it("X-11 are masked in texts, keys, headers and cookies, each named by pointer", async () => {
    const { data, meta } = await running.gateway.executor.execute("api.whole", {});
    expectClean(JSON.stringify([data, meta]));
    expect(data).toMatchObject({ list: [1, { "***/x": "key", url: "https://a/?k=***" }], short: SHORT });
    expect(meta.waybill?.masked).toEqual([
      "/data/list/1/***~1x",
      "/data/list/1/text",
      "/data/list/1/url",
      "/meta/headers/x-echo",
      "/meta/setCookie/0",
    ]);
  });

  it("X-11 are masked in content blocks, structured content and resources of an MCP server", async () => {
    const { data, meta } = await running.gateway.executor.execute("rpc.ok", {});
    expectClean(JSON.stringify([data, meta]));
    expect(meta.waybill?.masked).toEqual([
      "/data/at/0/***",
      "/meta/content/0/text",
      "/meta/structuredContent/at/0/***",
    ]);
    const source = await fromMcp(`${running.base}/mcp`, {
      namespace: "own",
      headers: { "X-Api-Key": SECRET },
    });
    expectClean(JSON.stringify(await source.readResource("a://b")));
    await source.close();
  });

  it("X-11 are masked in bytes, in every spelling, and as many bytes stay", async () => {
    const { data, meta } = await running.gateway.executor.execute("api.bytes", {});
    const text = Buffer.from(data as Uint8Array).toString("latin1");
    expectClean(text);
    expect(text).toHaveLength(`\u00ff${ECHO} ${SPELLED.join(" ")}`.length);
    expect(text.startsWith(`\u00ff${WORDS} for ***`)).toBe(true);
    expect(meta.waybill?.masked).toEqual(["/data"]);
  });

  it("X-11 are masked in each value of a stream", async () => {
    const values = await collect(running.gateway.executor.subscribe("api.events", {}));
    expectClean(JSON.stringify(values));
    expect(values.map(({ meta }) => [meta.waybill?.event, meta.waybill?.cursor])).toEqual([
      ["***", "1-***"],
      ["b", "2"],
    ]);
    expect(values.map(({ meta }) => meta.waybill?.masked)).toEqual([
      ["/data/text", "/meta/waybill/event"],
      undefined,
    ]);
  });

  it("X-11 are masked on every way out, and not where the config of the source says so", async () => {
    for (const [surface, ask] of Object.entries(SURFACES)) {
      if (["registry", "bus", "CLI"].includes(surface)) continue;
      expectClean(await ask("api.whole"));
    }
    const { data, meta } = await running.gateway.executor.execute("silent.ok", {});
    expect(JSON.stringify(data)).toContain(SECRET);
    expect(meta.waybill?.masked).toBeUndefined();
  });
});

describe("sources of a program without a gateway", () => {
  it("X-11 know their credentials: fixed ones, those of functions, and tokens had at run time", async () => {
    const document = documentOf(`${running.base}/api`);
    const oauth = documentOf(`${running.base}/api`, true);
    const client = { clientId: "me", clientSecret: "the-secret-of-a-client" };
    for (const [given, auth, sent] of [
      [document, { bearer: SECRET }, "Bearer ***"],
      [document, { bearer: () => SECRET }, "Bearer ***"],
      [document, { bearer: async () => `fresh-${SECRET}` }, "Bearer ***"],
      [oauth, { oauth2: client }, "Bearer ***"],
    ] as const) {
      const source = await fromOpenApi(given, { namespace: "own", auth, allowPrivate: true });
      const registry = new OperationRegistry();
      registry.registerAll(source);
      const { data, meta } = await registry.execute("own.sent", {});
      expect(data).toEqual({ sent });
      expect(meta.waybill?.masked).toEqual(["/data/sent"]);
      await source.close();
    }
  });

  it("X-11 mask short credentials in errors alone", async () => {
    const document = documentOf(`${running.base}/api`);
    const source = await fromOpenApi(document, {
      namespace: "own",
      auth: { bearer: SHORT },
      allowPrivate: true,
    });
    const registry = new OperationRegistry();
    registry.registerAll(source);
    expect((await registry.execute("own.whole", {})).data).toMatchObject({ short: SHORT });
    await source.close();
  });

  it("X-11 know what functions give for the headers of an MCP server", async () => {
    const headers = async () => ({ authorization: `Token ${SECRET}` });
    const source = await fromMcp(`${running.base}/mcp`, { namespace: "own", headers });
    const registry = new OperationRegistry();
    registry.registerAll(source);
    const error = toCallError(await rejection(registry.execute("own.e32602", {})));
    expectClean(inspect(error, { depth: 10 }));
    expect(error.details).toMatchObject({ rpcCode: -32602, said: expect.stringContaining(WORDS) });
    await source.close();
  });
});

describe("over a hop", () => {
  it.each(["2025", "2026"] as const)("X-11 MCP %s keeps what the source said", async (protocol) => {
    const source = await fromMcp(`${running.server.url}/mcp`, { namespace: "hop", protocol });
    const said: unknown[] = [];
    for (const tool of ["api_detail", "rpc_e32000"]) {
      const { details, message } = toCallError(await rejection(source.call(tool, {})));
      said.push((details as { said: string }).said);
      expect(message).not.toContain(WORDS);
    }
    expect(said).toEqual([expect.stringContaining(WORDS), expect.stringContaining(WORDS)]);
    await source.close();
  });

  it("X-11 HTTP keeps what the source said", async () => {
    const source = await fromOpenApi(`${running.server.url}/openapi.json`, { namespace: "hop" });
    const registry = new OperationRegistry([], { onWarning: () => {} });
    registry.registerAll(source);
    const ids = [...registry.operations].map(({ id }) => id).filter((id) => /api.*detail$|e32000$/.test(id));
    expect(ids.length).toBeGreaterThan(1);
    for (const id of ids) {
      const error = toCallError(await rejection(registry.execute(id, {})));
      if (!id.includes("silent"))
        expect(error.details).toMatchObject({ said: expect.stringContaining(WORDS) });
      expect(error.message).not.toContain(WORDS);
    }
    await source.close();
  });
});
