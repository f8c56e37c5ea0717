import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  createGateway,
  type Gateway,
  type GatewayServer,
  loadConfigObject,
  serveGateway,
} from "../src/gateway/index.ts";

/** Tag, bidi, C1, zero-width and other characters that nobody sees. */
const HIDING = "a\u{e0041}b\u202ec\u0085d\u200be\u2066f\ufeffg\u00adh\u{e0100}i\u001b[31mj";
const SHOWN = "abcdefghij";

/** What an MCP server says; every text for models and people hides something. */
const SAID: Readonly<Record<string, unknown>> = {
  initialize: {
    protocolVersion: "2025-06-18",
    capabilities: { tools: {}, prompts: {}, resources: {} },
    serverInfo: { name: "raw", version: "1.0.0" },
  },
  "tools/list": {
    tools: [
      {
        name: "tool",
        title: HIDING,
        description: HIDING,
        inputSchema: {
          type: "object",
          title: HIDING,
          properties: {
            title: { type: "string", description: HIDING },
            list: { type: "array", items: { $comment: HIDING, enum: [HIDING] } },
          },
          default: { description: HIDING },
        },
        outputSchema: { type: "object", properties: { of: { type: "string", title: HIDING } } },
      },
    ],
  },
  "prompts/list": {
    prompts: [
      { name: "p", title: HIDING, description: HIDING, arguments: [{ name: "x", description: HIDING }] },
    ],
  },
  "resources/list": { resources: [{ uri: "a://b", name: HIDING, title: HIDING, description: HIDING }] },
  "resources/templates/list": {
    resourceTemplates: [{ uriTemplate: "a://{x}", name: HIDING, description: HIDING }],
  },
};

/** An HTTP API whose document hides something too. */
const DOCUMENT = {
  openapi: "3.1.0",
  info: { title: "a", version: "1" },
  paths: {
    "/read": {
      get: {
        operationId: "read",
        summary: HIDING,
        description: HIDING,
        parameters: [{ name: "q", in: "query", description: HIDING, schema: { type: "string" } }],
        responses: { 200: { description: "" } },
      },
    },
  },
};

const upstream = createServer(async (request, response) => {
  const send = (value: unknown): void =>
    void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
  if (request.url === "/api.json") return send(DOCUMENT);
  if (request.method !== "POST") return void response.writeHead(405).end();
  let text = "";
  for await (const chunk of request) text += String(chunk);
  const { id, method } = JSON.parse(text) as { id?: number; method: string };
  if (id === undefined) return void response.writeHead(202).end();
  const error = { code: -32601, message: "no such method" };
  send({ jsonrpc: "2.0", id, ...(method in SAID ? { result: SAID[method] } : { error }) });
});

let gateway: Gateway;
const servers: GatewayServer[] = [];

beforeAll(async () => {
  await new Promise<void>((resolve) => void upstream.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  const config = {
    mcpServers: { raw: { url: `${url}/mcp` } },
    openapi: { api: { document: `${url}/api.json` } },
  };
  for (const catalogue of [false, true]) {
    const given = { ...config, serve: { port: 0, mcp: { catalogue } } };
    const loaded = await loadConfigObject(given, { baseDir: ".", env: {} });
    gateway ??= await createGateway(loaded);
    await gateway.ready;
    servers.push(await serveGateway(gateway, loaded));
  }
});
afterAll(async () => {
  for (const server of servers) await server.close({ timeoutMs: 0 });
  await gateway.close();
  upstream.close().closeAllConnections();
});

async function ask(server: GatewayServer | undefined, method: string, params: object = {}): Promise<unknown> {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "t", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const { name } = params as { name?: string };
  const response = await fetch(`${server?.url}/mcp`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...(name !== undefined && { "mcp-name": name }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } }),
  });
  return ((await response.json()) as { result: unknown }).result;
}

it("X-11 RE-30 nothing hides in what models are told of tools; what values must match stays as it is", async () => {
  const { tools } = (await ask(servers[0], "tools/list")) as { tools: readonly object[] };
  expect(tools).toMatchObject([
    { name: "api_read", title: SHOWN, description: expect.stringContaining(SHOWN) },
    {
      name: "raw_tool",
      title: SHOWN,
      description: SHOWN,
      inputSchema: {
        title: SHOWN,
        properties: {
          title: { description: SHOWN },
          list: { items: { $comment: SHOWN, enum: [HIDING] } },
        },
        default: { description: HIDING },
      },
      outputSchema: { properties: { of: { title: SHOWN } } },
    },
  ]);
  expect(JSON.stringify(tools[0])).not.toContain("\u{e0041}");
});

it("X-11 RE-30 nothing hides in what the catalogue finds and describes", async () => {
  for (const [name, input] of [
    ["search", { query: "read" }],
    ["search", { query: "tool" }],
    ["describe", { id: "api.read" }],
  ] as const) {
    const found = JSON.stringify(await ask(servers[1], "tools/call", { name, arguments: input }));
    expect(found).toContain(SHOWN);
    expect(found).not.toContain("\u{e0041}");
  }
});

it("X-11 RE-30 nothing hides in lists of prompts, resources and templates", async () => {
  expect(await ask(servers[0], "prompts/list")).toMatchObject({
    prompts: [
      {
        name: "raw_p",
        title: SHOWN,
        description: SHOWN,
        arguments: [{ name: "x", description: SHOWN }],
      },
    ],
  });
  expect(await ask(servers[0], "resources/list")).toMatchObject({
    resources: [{ uri: "a://b", name: SHOWN, title: SHOWN, description: SHOWN }],
  });
  expect(await ask(servers[0], "resources/templates/list")).toMatchObject({
    resourceTemplates: [{ name: SHOWN, description: SHOWN }],
  });
});

it("X-11 RE-30 nothing hides in what the document says of an imported operation", async () => {
  const document = (await (await fetch(`${servers[0]?.url}/openapi.json`)).json()) as {
    paths: Readonly<Record<string, { get: object }>>;
  };
  expect(document.paths["/api/api/read"]?.get).toMatchObject({
    summary: SHOWN,
    description: SHOWN,
    "x-waybill": { title: SHOWN },
  });
});
