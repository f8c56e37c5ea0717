import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { Server as FirstServer } from "@modelcontextprotocol/sdk/server/index.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { createMcpHandler, Server } from "@modelcontextprotocol/server";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/server/validators/cf-worker";

/** A server that listens on this machine. */
export interface Listening {
  readonly url: string;
  close(): Promise<void>;
}

/** Serves requests on a free port of this machine. */
export async function listen(handler: RequestListener): Promise<Listening> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const INFO = { name: "http", version: "1.0.0" };
const OPTIONS = {
  capabilities: { tools: { listChanged: true } },
  jsonSchemaValidator: new CfWorkerJsonSchemaValidator(),
};
const TOOLS = { tools: [{ name: "echo", inputSchema: { type: "object" as const } }] };
const NEVER = new Promise<never>(() => {});

/** A server of SDK 1 with sessions, which can forget them all. */
export interface SessionServer extends Listening {
  readonly calls: unknown[];
  readonly cancelled: string[];
  readonly ended: string[];
  forget(): void;
}

/** Serves the 2025 revisions with the SDK 1 server, one session for each client. */
export async function serveFirstHttp(): Promise<SessionServer> {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const calls: unknown[] = [];
  const cancelled: string[] = [];
  const ended: string[] = [];
  const open = async (): Promise<StreamableHTTPServerTransport> => {
    const server = new FirstServer(INFO, OPTIONS);
    server.setRequestHandler(ListToolsRequestSchema, () => TOOLS);
    server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
      calls.push(params.arguments);
      if (params.name === "sleep") {
        signal.addEventListener("abort", () => cancelled.push("sleep"));
        await NEVER;
      }
      return { content: [{ type: "text", text: JSON.stringify(params.arguments) }], extra: 1 };
    });
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id) => {
        sessions.set(id, transport);
      },
      onsessionclosed: (id) => {
        ended.push(id);
      },
    });
    await server.connect(transport as never);
    return transport;
  };
  const listening = await listen(async (request, response) => {
    const id = request.headers["mcp-session-id"];
    const known = typeof id === "string" ? sessions.get(id) : undefined;
    if (id !== undefined && known === undefined) return refuse(response, 404);
    await (known ?? (await open())).handleRequest(request, response);
  });
  return { ...listening, calls, cancelled, ended, forget: () => sessions.clear() };
}

/** A server of the old HTTP+SSE transport. */
export interface OldSseServer extends Listening {
  readonly calls: unknown[];
  readonly cancelled: string[];
  /** The headers of every request, in order. */
  readonly requests: IncomingMessage[];
  /** Ends all streams of events. */
  drop(): void;
  /** How many streams are open. */
  streams(): number;
}

/** Serves the transport of 2024-11-05 with the SDK 1 server: events at one address, messages posted to another. */
export async function serveOldSse(): Promise<OldSseServer> {
  const sessions = new Map<string, { transport: SSEServerTransport; response: ServerResponse }>();
  const calls: unknown[] = [];
  const cancelled: string[] = [];
  const requests: IncomingMessage[] = [];
  const listening = await listen(async (request, response) => {
    requests.push(request);
    const { pathname, searchParams } = new URL(request.url ?? "", "http://localhost");
    if (request.method === "GET" && pathname === "/mcp") {
      const transport = new SSEServerTransport("/messages", response);
      sessions.set(transport.sessionId, { transport, response });
      response.on("close", () => sessions.delete(transport.sessionId));
      const server = new FirstServer(INFO, OPTIONS);
      server.setRequestHandler(ListToolsRequestSchema, () => ({
        tools: ["echo", "sleep"].map((name) => ({ name, inputSchema: { type: "object" as const } })),
      }));
      server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
        calls.push(params.arguments);
        if (params.name === "sleep") {
          signal.addEventListener("abort", () => cancelled.push("sleep"));
          await NEVER;
        }
        return { content: [{ type: "text", text: JSON.stringify(params.arguments) }] };
      });
      return await server.connect(transport);
    }
    const session = sessions.get(searchParams.get("sessionId") ?? "");
    if (request.method !== "POST" || pathname !== "/messages" || session === undefined) {
      return refuse(response, 404);
    }
    await session.transport.handlePostMessage(request, response);
  });
  const drop = (): void => {
    for (const { response } of sessions.values()) response.destroy();
  };
  return { ...listening, calls, cancelled, requests, drop, streams: () => sessions.size };
}

/** A server of SDK 2, whose requests can be looked at. */
export interface ModernServer extends Listening {
  readonly requests: IncomingMessage[];
  readonly calls: unknown[];
  readonly cancelled: string[];
  /** Tells all who listen that the tools have changed. */
  changeTools(): void;
}

/** Serves both revisions with the SDK 2 server. */
export async function serveSecondHttp(): Promise<ModernServer> {
  const requests: IncomingMessage[] = [];
  const calls: unknown[] = [];
  const cancelled: string[] = [];
  const handler = createMcpHandler(() => {
    const server = new Server(INFO, OPTIONS);
    server.setRequestHandler("tools/list", () => TOOLS);
    server.setRequestHandler("tools/call", async ({ params }, { mcpReq }) => {
      calls.push(params.arguments);
      if (params.name === "sleep") {
        mcpReq.signal.addEventListener("abort", () => cancelled.push("sleep"));
        await NEVER;
      }
      return { content: [{ type: "text", text: JSON.stringify(params.arguments) }] };
    });
    return server;
  });
  const serve = toNodeHandler(handler);
  const listening = await listen((request, response) => {
    requests.push(request);
    void serve(request as never, response);
  });
  return { ...listening, requests, calls, cancelled, changeTools: () => handler.notify.toolsChanged() };
}

/** Serves both revisions with servers of SDK 2 that a test makes. */
export function serveSecondOf(create: () => Server): Promise<Listening> {
  const serve = toNodeHandler(createMcpHandler(create));
  return listen((request, response) => void serve(request as never, response));
}

/** Reads a request to its end. */
export async function readBody(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text;
}

/** Ends a request with a status and nothing else. */
export function refuse(response: ServerResponse, status: number, headers: Record<string, string> = {}): void {
  response.writeHead(status, headers).end();
}

/** Answers a request with JSON. */
export function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

/** What the server written by hand does with a request that is neither the handshake nor a notification. */
export type Answer = (
  message: { id: number; method: string; params: Record<string, unknown> },
  response: ServerResponse,
) => void;

/** Serves the 2025 revisions by hand, so that anything can be answered. */
export function serveByHand(
  answer: Answer,
  before?: (request: IncomingMessage, response: ServerResponse) => boolean,
) {
  return listen(async (request, response) => {
    if (before?.(request, response) === true) return;
    if (request.method !== "POST") return refuse(response, 405);
    const message = JSON.parse(await readBody(request));
    if (message.id === undefined) return refuse(response, 202);
    if (message.method === "server/discover") return refuse(response, 400);
    if (message.method !== "initialize") return answer(message, response);
    const result = { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: INFO };
    sendJson(response, { jsonrpc: "2.0", id: message.id, result });
  });
}
