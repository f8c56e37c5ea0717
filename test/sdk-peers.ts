import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as FirstStdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { Server as FirstServer } from "@modelcontextprotocol/sdk/server/index.js";
import {
  CallToolRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import {
  InMemoryTransport,
  McpServer,
  ResourceTemplate,
  Server,
  type StandardSchemaWithJSON,
} from "@modelcontextprotocol/server";
import {
  type CallToolResult,
  composeToolPayload,
  createToolResponseEnvelopeSchema,
  type ResultStore,
  type ToolPayload,
  type ToolResponseStatus,
  toReadResourceResult,
} from "../src/formats/index.ts";
import type { AnySchema, JsonSchemaObject } from "../src/index.ts";
import { HARDENED, HARDENED_FLAGS, ROOT } from "./run-node.ts";

/** A tool without arguments, and what it answers. */
export interface ServedTool {
  readonly name: string;
  readonly outputSchema: JsonSchemaObject;
  call(): unknown;
}

/** What a server offers. */
export interface Served {
  readonly tools: readonly ServedTool[];
  readonly store: ResultStore;
}

/** What both generations of servers share. */
interface PeerServer {
  connect(transport: never): Promise<void>;
  close(): Promise<void>;
}

/** What both generations of clients share. */
export interface PeerClient {
  connect(transport: never): Promise<void>;
  listTools(): Promise<{
    readonly tools: readonly { readonly name: string; readonly outputSchema?: unknown }[];
  }>;
  callTool(params: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
  readResource(params: { uri: string }): Promise<{ readonly contents: readonly { readonly uri: string }[] }>;
  close(): Promise<void>;
}

const INFO = { name: "peer", version: "1.0.0" };
const CAPABILITIES = { capabilities: { tools: {}, resources: {} } };

/** Every way to serve. */
const SERVERS = {
  "the Server of SDK 1": (served) => {
    const server = new FirstServer(INFO, CAPABILITIES);
    server.setRequestHandler(ListToolsRequestSchema, () => onWire(list(served)));
    server.setRequestHandler(CallToolRequestSchema, async ({ params }) =>
      onWire(await call(served, params.name)),
    );
    server.setRequestHandler(ReadResourceRequestSchema, async ({ params }) =>
      onWire(await read(served, params.uri)),
    );
    return server;
  },
  "the Server of SDK 2": (served) => {
    const server = new Server(INFO, CAPABILITIES);
    server.setRequestHandler("tools/list", () => onWire(list(served)));
    server.setRequestHandler("tools/call", async ({ params }) => onWire(await call(served, params.name)));
    server.setRequestHandler("resources/read", async ({ params }) => onWire(await read(served, params.uri)));
    return server;
  },
  "the McpServer of SDK 2": (served) => {
    const server = new McpServer(INFO);
    for (const { name, outputSchema } of served.tools) {
      const schema = outputSchema as JsonSchemaObject & StandardSchemaWithJSON;
      server.registerTool(name, { outputSchema: schema }, async () => onWire(await call(served, name)));
    }
    const template = new ResourceTemplate("waybill://results/{+address}", { list: undefined });
    server.registerResource("results", template, {}, async ({ href }) => onWire(await read(served, href)));
    return server;
  },
} as const satisfies Record<string, (served: Served) => PeerServer>;

/** A row of `SERVERS`. */
export type ServerName = keyof typeof SERVERS;

/** The validator of clients that may not generate code. */
const INTERPRETING = { jsonSchemaValidator: new CfWorkerJsonSchemaValidator() };

/** Every client; in the hardened run all of them interpret schemas, for their usual validator generates code. */
const CLIENTS = {
  "a client of SDK 1": () => new FirstClient(INFO, HARDENED ? INTERPRETING : {}),
  "a client of SDK 1 in a worker": () => new FirstClient(INFO, INTERPRETING),
  "a client of SDK 2": () => new Client(INFO, HARDENED ? INTERPRETING : {}),
  "a client of SDK 2 in a worker": () => new Client(INFO, INTERPRETING),
} as const satisfies Record<string, () => PeerClient>;

/** A row of `CLIENTS`. */
type ClientName = keyof typeof CLIENTS;

/** Every server with every client. */
export const PAIRS: readonly { readonly server: ServerName; readonly client: ClientName }[] = (
  Object.keys(SERVERS) as ServerName[]
).flatMap((server) => (Object.keys(CLIENTS) as ClientName[]).map((client) => ({ server, client })));

/** Connects a client to a server in memory, lets a test use it, and closes both. */
export async function withPeers(
  server: ServerName,
  client: ClientName,
  served: Served,
  use: (client: PeerClient) => Promise<void>,
): Promise<void> {
  const [here, there] = InMemoryTransport.createLinkedPair();
  const peers = { server: SERVERS[server](served) as PeerServer, client: CLIENTS[client]() as PeerClient };
  try {
    await peers.server.connect(there as never);
    await peers.client.connect(here as never);
    await use(peers.client);
  } finally {
    await peers.client.close();
    await peers.server.close();
  }
}

/** What tools answer, by their names. */
export type Replies = ReadonlyMap<string, ToolPayload>;

/** Writes a short reply. */
export function reply(status: ToolResponseStatus, data: unknown): ToolPayload {
  return composeToolPayload({ meta: { status, summary: "Looked", details: ["Once."] }, data });
}

/** Makes a tool of each reply, all of them with the schema of the same data. */
export function toTools(replies: Replies, schema: AnySchema): ServedTool[] {
  const outputSchema = createToolResponseEnvelopeSchema(schema);
  return [...replies].map(([name, sent]) => ({ name, outputSchema, call: () => sent }));
}

/** Calls a tool without arguments. */
export function callTool(client: PeerClient, name: string): Promise<unknown> {
  return client.callTool({ name, arguments: {} });
}

/** The URIs of the links of a result. */
export function linksOf(result: unknown): string[] {
  return (result as CallToolResult).content.flatMap((block) =>
    block.type === "resource_link" ? [block.uri] : [],
  );
}

/** Reads the text of a resource that has nothing else. */
export async function readText(client: PeerClient, uri: string): Promise<string> {
  const { contents } = await client.readResource({ uri });
  const [{ text } = {}, ...others] = contents as readonly { readonly text?: string }[];
  if (text === undefined || others.length > 0) throw new Error(`${uri} is not one text.`);
  return text;
}

/** Reads a stored result in ranges, each from where the one before ended, until nothing is left of its length. */
export async function readParts(client: PeerClient, uri: string, total: number): Promise<string[]> {
  const parts: string[] = [];
  for (let offset = 0; offset < total; offset += parts.at(-1)?.length || total) {
    parts.push(await readText(client, `${uri}?offset=${offset}&length=999`));
  }
  return parts;
}

function list({ tools }: Served): unknown {
  return {
    tools: tools.map(({ name, outputSchema }) => ({ name, inputSchema: { type: "object" }, outputSchema })),
  };
}

function call({ tools }: Served, name: string): unknown {
  const tool = tools.find((candidate) => candidate.name === name);
  if (tool === undefined) throw new Error(`There is no tool ${name}.`);
  return tool.call();
}

async function read({ store }: Served, uri: string): Promise<unknown> {
  const found = await toReadResourceResult(store, uri);
  if (found === undefined) throw new Error(`There is no resource ${uri}.`);
  return found;
}

/** In memory nothing is written down; this makes it what a wire would carry. */
function onWire<T>(value: unknown): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

/** What a server in a process of its own is told. */
export interface ChildPlan {
  /** The JSON Schema of the data of every tool. */
  readonly schema: JsonSchemaObject;
  /** What the tools answer, by name. */
  readonly results: Readonly<Record<string, unknown>>;
  /** What the tool "truncated" shows a preview of. */
  readonly big: unknown;
}

/** Runs against the built package, as a server of somebody else's would. */
const CHILD = `
import { createMemoryStore, createToolResponseEnvelopeSchema, previewToolPayload, toReadResourceResult } from "waybill/formats";
const { schema, results, big } = JSON.parse(process.argv[1]);
const store = createMemoryStore();
const outputSchema = createToolResponseEnvelopeSchema(schema);
const names = [...Object.keys(results), "truncated"];
const info = ${JSON.stringify(INFO)};
const capabilities = ${JSON.stringify(CAPABILITIES)};
const list = () => ({ tools: names.map((name) => ({ name, inputSchema: { type: "object" }, outputSchema })) });
const call = ({ params: { name } }) =>
  results[name] ?? previewToolPayload({ meta: { status: "ok", summary: "Found" }, data: big, schema, store });
const read = ({ params: { uri } }) => toReadResourceResult(store, uri);
`;

const CHILDREN = {
  "SDK 1": `${CHILD}
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import * as types from "@modelcontextprotocol/sdk/types.js";
const server = new Server(info, capabilities);
server.setRequestHandler(types.ListToolsRequestSchema, list);
server.setRequestHandler(types.CallToolRequestSchema, call);
server.setRequestHandler(types.ReadResourceRequestSchema, read);
await server.connect(new StdioServerTransport());`,
  "SDK 2": `${CHILD}
import { Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
serveStdio(() => {
  const server = new Server(info, capabilities);
  server.setRequestHandler("tools/list", list);
  server.setRequestHandler("tools/call", call);
  server.setRequestHandler("resources/read", read);
  return server;
});`,
} as const;

const REVISION_2026 = { versionNegotiation: { mode: { pin: "2026-07-28" } } };

/** Clients that start a server process. */
const PARENTS = {
  "a client of SDK 1": (parameters) => ({
    client: CLIENTS["a client of SDK 1"](),
    transport: new FirstStdioClientTransport(parameters),
  }),
  "a client of SDK 2": (parameters) => ({
    client: CLIENTS["a client of SDK 2"](),
    transport: new StdioClientTransport(parameters),
  }),
  "a client of the 2026 revision": (parameters) => ({
    client: new Client(INFO, { ...REVISION_2026, ...(HARDENED && INTERPRETING) }),
    transport: new StdioClientTransport(parameters),
  }),
} as const satisfies Record<string, (parameters: ChildParameters) => Parent>;

interface ChildParameters {
  command: string;
  args: string[];
  cwd: string;
}

interface Parent {
  readonly client: PeerClient;
  readonly transport: { readonly pid: number | null };
}

/** Starts a server in a process of its own, lets a test use it, and ends the process; gives back its id. */
export async function withChild(
  server: keyof typeof CHILDREN,
  client: keyof typeof PARENTS,
  plan: ChildPlan,
  use: (client: PeerClient) => Promise<void>,
): Promise<number | null> {
  const flags = HARDENED ? HARDENED_FLAGS : [];
  const args = [...flags, "--input-type=module", "--eval", CHILDREN[server], "--", JSON.stringify(plan)];
  const parent: Parent = PARENTS[client]({ command: process.execPath, args, cwd: ROOT });
  try {
    await parent.client.connect(parent.transport as never);
    const { pid } = parent.transport;
    await use(parent.client);
    return pid;
  } finally {
    await parent.client.close();
  }
}
