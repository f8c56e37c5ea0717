import { randomUUID } from "node:crypto";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Server as FirstServer } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import {
  CallToolRequestSchema,
  ListResourcesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { Server } from "@modelcontextprotocol/server";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/server/validators/cf-worker";
import { createGateway, type GatewayConfig, serveGateway } from "../src/gateway/index.ts";
import { atEnd } from "./gateway-sources.ts";
import { type Listening, listen, serveSecondOf } from "./mcp-servers/http-servers.ts";
import { loadedConfig } from "./served-gateway.ts";

/** The address of the page that every server of these tests has. */
export const PAGE = "ui://board/view.html";
export const UI = "io.modelcontextprotocol/ui";
export const APP = "text/html;profile=mcp-app";

/** What a server with a page says and offers besides it. */
export interface AppServerOptions {
  readonly label: string;
  readonly instructions?: string;
  readonly capabilities?: Readonly<Record<string, unknown>>;
  /** Further tools, as they are listed. */
  readonly tools?: readonly object[];
}

/** A server with a page, and what clients said they can do: one entry for each request, or each session. */
export interface AppServer extends Listening {
  readonly told: unknown[];
}

/** What a server with a page answers: a tool that shows the page in every way there is, and the page. */
function appAnswers({ label, tools = [] }: AppServerOptions) {
  return {
    tools: () => ({
      tools: [
        {
          name: "show",
          inputSchema: { type: "object" as const },
          _meta: {
            ui: { resourceUri: PAGE, visibility: ["model", "app"] },
            "ui/resourceUri": PAGE,
            other: "kept",
          },
        },
        ...tools,
      ] as never,
    }),
    call: () => ({
      content: [
        { type: "text" as const, text: `${label} shows ${PAGE}` },
        { type: "resource_link" as const, uri: PAGE, name: "view" },
        {
          type: "resource" as const,
          resource: { uri: PAGE, mimeType: APP, text: `<p>${label}</p>`, _meta: { "ui/resourceUri": PAGE } },
        },
      ],
      _meta: { ui: { resourceUri: PAGE }, by: label },
    }),
    resources: () => ({
      resources: [{ uri: PAGE, name: "view", mimeType: APP, _meta: { ui: { prefersBorder: true } } }],
    }),
    read: (uri: string) => {
      if (uri !== PAGE) throw new Error(`${label} has no ${uri}`);
      const _meta = { ui: { csp: { connectDomains: ["https://example.com"] } } };
      return { contents: [{ uri, mimeType: APP, text: `<p>${label}</p>`, _meta }] };
    },
  };
}

function settingsOf({ instructions, capabilities = {} }: AppServerOptions) {
  return {
    capabilities: { tools: {}, resources: {}, ...capabilities } as never,
    ...(instructions !== undefined && { instructions }),
    jsonSchemaValidator: new CfWorkerJsonSchemaValidator(),
  };
}

/** Serves a page with SDK 1, in sessions of the 2025 revisions. */
async function serveFirst(options: AppServerOptions): Promise<AppServer> {
  const told: unknown[] = [];
  const answers = appAnswers(options);
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const open = async () => {
    const server = new FirstServer({ name: options.label, version: "1.0.0" }, settingsOf(options));
    server.oninitialized = () => told.push(server.getClientCapabilities());
    server.setRequestHandler(ListToolsRequestSchema, answers.tools);
    server.setRequestHandler(CallToolRequestSchema, answers.call);
    server.setRequestHandler(ListResourcesRequestSchema, answers.resources);
    server.setRequestHandler(ReadResourceRequestSchema, ({ params }) => answers.read(params.uri));
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    await server.connect(transport as never);
    return transport;
  };
  const listening = await listen(async (request, response) => {
    const known = sessions.get(String(request.headers["mcp-session-id"]));
    await (known ?? (await open())).handleRequest(request, response);
  });
  return { ...listening, told };
}

/** Serves the same with SDK 2, in both revisions. */
async function serveSecond(options: AppServerOptions): Promise<AppServer> {
  const told: unknown[] = [];
  const answers = appAnswers(options);
  const note = (meta: unknown) =>
    told.push((meta as Record<string, unknown>)?.["io.modelcontextprotocol/clientCapabilities"]);
  const listening = await serveSecondOf(() => {
    const server = new Server({ name: options.label, version: "1.0.0" }, settingsOf(options));
    server.setRequestHandler("tools/list", answers.tools);
    server.setRequestHandler("tools/call", (_, { mcpReq }) => {
      note(mcpReq.envelope);
      return answers.call();
    });
    server.setRequestHandler("resources/list", answers.resources);
    server.setRequestHandler("resources/read", ({ params }) => answers.read(params.uri));
    return server;
  });
  return { ...listening, told };
}

/** Servers of both SDKs; each ends with its test. */
export const APP_SERVERS = {
  "SDK 1": async (options: AppServerOptions) => ended(await serveFirst(options)),
  "SDK 2": async (options: AppServerOptions) => ended(await serveSecond(options)),
} as const;

function ended<T extends Listening>(listening: T): T {
  atEnd(() => listening.close());
  return listening;
}

/** Serves a gateway of a config until the test ends; its address is that of its MCP endpoint. */
export async function serveConfig(config: GatewayConfig): Promise<string> {
  const loaded = loadedConfig(config);
  const gateway = await createGateway(loaded);
  atEnd(() => gateway.close());
  await gateway.ready;
  const server = await serveGateway(gateway, loaded);
  atEnd(() => server.close({ timeoutMs: 0 }));
  return `${server.url}/mcp`;
}

const NEGOTIATIONS = { 2025: "legacy", 2026: { pin: "2026-07-28" } } as const;

/** A client of SDK 2 in one of the two eras, which ends with the test. */
export async function clientOf(
  url: string,
  era: keyof typeof NEGOTIATIONS,
  { extensions, token }: { readonly extensions?: object; readonly token?: string } = {},
): Promise<Client> {
  const client = new Client(
    { name: "peer", version: "1.0.0" },
    {
      capabilities: (extensions === undefined ? {} : { extensions }) as never,
      versionNegotiation: { mode: NEGOTIATIONS[era] },
      jsonSchemaValidator: new CfWorkerJsonSchemaValidator() as never,
    },
  );
  const requestInit = token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  atEnd(() => client.close());
  return client;
}
