import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/server";
import type { Identity } from "../src/index.ts";
import { createMcpHandler, type McpServer } from "../src/mcp/index.ts";
import { HARDENED } from "./run-node.ts";

/** How a client in a test is made. */
export interface PeerOptions {
  readonly capabilities?: Record<string, unknown>;
  readonly identity?: Identity;
  /** Whether results are checked as clients do by themselves; where code must not be generated, as in workers. @default false: as in workers */
  readonly checksAsItComes?: boolean;
  /** Called before the client connects, to answer what the server asks. */
  readonly prepare?: (client: Client) => void;
}

const INFO = { name: "peer", version: "1.0.0" };

function optionsOf({ capabilities = {}, checksAsItComes = false }: PeerOptions) {
  return {
    capabilities: capabilities as never,
    ...((!checksAsItComes || HARDENED) && {
      jsonSchemaValidator: new CfWorkerJsonSchemaValidator() as never,
    }),
  };
}

/** In memory nothing is written down; this makes every message what a wire would carry. */
function written(transport: InMemoryTransport): InMemoryTransport {
  const send = transport.send.bind(transport);
  transport.send = (message, options) => send(JSON.parse(JSON.stringify(message)), options);
  return transport;
}

async function inMemory(server: McpServer, client: Client, options: PeerOptions): Promise<Client> {
  const [here, there] = InMemoryTransport.createLinkedPair().map(written);
  const { identity } = options;
  options.prepare?.(client);
  await server.connect(there as InMemoryTransport, { identity });
  await client.connect(here as never);
  return client;
}

/** A client of the first SDK, which speaks 2025 revisions alone. */
async function firstClient(server: McpServer, options: PeerOptions = {}): Promise<Client> {
  return await inMemory(server, new FirstClient(INFO, optionsOf(options)) as unknown as Client, options);
}

/** A client of the second SDK on a 2025 connection. */
export async function legacyClient(server: McpServer, options: PeerOptions = {}): Promise<Client> {
  return await inMemory(server, new Client(INFO, optionsOf(options)), options);
}

/** A client of the 2026-07-28 revision, each of whose requests is a request of its own. */
export async function modernClient(server: McpServer, options: PeerOptions = {}): Promise<Client> {
  const { identity } = options;
  const handler = createMcpHandler(server);
  const client = new Client(INFO, {
    ...optionsOf(options),
    versionNegotiation: { mode: { pin: "2026-07-28" } },
  });
  options.prepare?.(client);
  const transport = new StreamableHTTPClientTransport(new URL("http://127.0.0.1/mcp"), {
    fetch: async (url, init) => await handler.fetch(new Request(url, init), identity && { identity }),
  });
  await client.connect(transport);
  return client;
}

/** Every kind of client. */
export const CLIENTS = {
  "SDK 1": firstClient,
  "SDK 2, 2025": legacyClient,
  "SDK 2, 2026": modernClient,
} as const;

const AS_IT_COMES = { checksAsItComes: true };

/** Every kind of client, with the check of results that it comes with. */
export const CHECKING_CLIENTS = {
  "SDK 1": (server: McpServer) => firstClient(server, AS_IT_COMES),
  "SDK 2, 2025": (server: McpServer) => legacyClient(server, AS_IT_COMES),
  "SDK 2, 2026": (server: McpServer) => modernClient(server, AS_IT_COMES),
} as const;
