import { createMemoryBus, createRemoteRegistry, serveCalls } from "../src/call/index.ts";
import { type CallToolResult, createResultFormat, createToolCaller } from "../src/formats/index.ts";
import { type Executor, type Identity, OperationRegistry, type OperationSource } from "../src/index.ts";
import { fromMcp, serveMcpHttp, toMcpServer } from "../src/mcp/index.ts";
import { fromOpenApi, serveHttp } from "../src/openapi/index.ts";
import { CLIENTS } from "./mcp-server-peers.ts";

/** A surface by which the operations of a registry are called. */
export interface Surface {
  readonly executor: Executor;
  close(): Promise<void>;
}

/** Serves a registry over MCP and imports it again. */
async function overMcp(registry: OperationRegistry, protocol: "2025" | "2026"): Promise<Surface> {
  const server = toMcpServer(registry);
  const http = await serveMcpHttp(server);
  const source = await fromMcp(http.url, { namespace: "imported", keepIds: true, protocol });
  return imported(source, http, server);
}

interface Closing {
  close(): Promise<void>;
}

/** A registry of what was imported; closing it closes the source, and then what served it. */
function imported(source: OperationSource & Closing, ...servers: readonly Closing[]): Surface {
  const executor = new OperationRegistry();
  executor.registerAll(source);
  return {
    executor,
    close: async () => {
      for (const each of [source, ...servers]) await each.close();
    },
  };
}

/** Every surface: served, imported again where that is how it is reached, and called. */
export const SURFACES: Readonly<Record<string, (registry: OperationRegistry) => Promise<Surface>>> = {
  local: async (executor) => ({ executor, close: async () => {} }),
  bus: async (registry) => {
    const bus = createMemoryBus();
    const handler = await serveCalls(registry, bus);
    const executor = await createRemoteRegistry(bus);
    return {
      executor,
      close: async () => {
        await executor.close();
        await handler.drain();
        await bus.close();
      },
    };
  },
  HTTP: async (registry) => {
    const http = await serveHttp(registry);
    return imported(
      await fromOpenApi(`${http.url}/openapi.json`, { namespace: "imported", keepIds: true }),
      http,
    );
  },
  "MCP 2025": (registry) => overMcp(registry, "2025"),
  "MCP 2026": (registry) => overMcp(registry, "2026"),
};

/** The formats that a surface can answer in. */
export const TOOL_FORMATS = ["tool-envelope", "tiered-envelope", "status-envelope", "mcp"] as const;

/** One of them. */
export type ToolFormat = (typeof TOOL_FORMATS)[number];

/** A surface that answers in a format of the caller's choice, as it sends the result. */
export interface Written {
  write(
    format: ToolFormat,
    id: string,
    input?: unknown,
    options?: { readonly requestId?: string },
  ): Promise<CallToolResult>;
  close(): Promise<void>;
}

/** Opens a surface for one caller. */
export type OpenWritten = (registry: OperationRegistry, identity?: Identity) => Promise<Written>;

const formats = () => TOOL_FORMATS.map((name) => createResultFormat(name));

function writtenOverMcp(connect: (typeof CLIENTS)[keyof typeof CLIENTS]): OpenWritten {
  return async (registry, identity) => {
    const server = toMcpServer(registry, { formats: formats() });
    const client = await connect(server, identity === undefined ? {} : { identity });
    return {
      write: async (format, id, input = {}, { requestId } = {}) => {
        const _meta = { "dev.waybill/format": format, ...(requestId !== undefined && { requestId }) };
        const params = { name: id.replace(".", "_"), arguments: input as never, _meta };
        return (await client.callTool(params)) as CallToolResult;
      },
      close: async () => {
        await client.close();
        await server.close();
      },
    };
  };
}

function writtenOver(name: keyof typeof SURFACES): OpenWritten {
  return async (registry, identity) => {
    const surface = await SURFACES[name]?.(registry);
    if (surface === undefined) throw new Error(`There is no surface ${name}.`);
    return {
      write: (format, id, input = {}, options = {}) =>
        createToolCaller(surface.executor, { format })(id, input, { ...options, identity }),
      close: () => surface.close(),
    };
  };
}

/** Every surface by which results reach a caller in a published format. */
export const WRITERS: Readonly<Record<string, OpenWritten>> = {
  local: writtenOver("local"),
  bus: writtenOver("bus"),
  "MCP 2025": writtenOverMcp(CLIENTS["SDK 2, 2025"]),
  "MCP 2025, first SDK": writtenOverMcp(CLIENTS["SDK 1"]),
  "MCP 2026-07-28": writtenOverMcp(CLIENTS["SDK 2, 2026"]),
  HTTP: async (registry, identity) => {
    const http = await serveHttp(registry, {
      formats: formats(),
      ...(identity && { authenticate: () => identity }),
    });
    return {
      write: async (format, operation, input = {}, { requestId } = {}) => {
        const response = await fetch(`${http.url}/call`, {
          method: "POST",
          headers: {
            "content-type": "application/json",
            accept: `application/vnd.waybill.${format}+json`,
            ...(requestId !== undefined && { "x-request-id": requestId }),
          },
          body: JSON.stringify({ operation, input }),
        });
        return (await response.json()) as CallToolResult;
      },
      close: () => http.close(),
    };
  },
};
