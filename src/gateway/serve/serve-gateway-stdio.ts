import { type ServeStdioOptions, type StdioConnection, serveStdio } from "../../mcp/server/serve-stdio.ts";
import type { LoadedConfig } from "../config/loaded-config.ts";
import type { Gateway } from "../gateway.ts";
import { GatewayAuth } from "./gateway-auth.ts";
import { GatewayParts } from "./gateway-parts.ts";
import type { CallTelemetry, ReadRecord } from "./observe/observer.ts";
import { readServeSettings } from "./serve-settings.ts";

/** How a gateway is served over stdin and stdout. */
export interface ServeGatewayStdioOptions extends Pick<ServeStdioOptions, "stdin" | "stdout" | "identity"> {
  /** Begins the spans of calls. @default nobody does */
  readonly telemetry?: CallTelemetry | undefined;
  /** Hears of every resource that was read and every prompt that was filled in. @default nobody does */
  readonly onRead?: ((record: ReadRecord) => void) | undefined;
  /** Hears what is odd; it must mask secrets. @default nobody does */
  readonly onWarning?: ((message: string, cause?: unknown) => void) | undefined;
}

/** A gateway that serves one client over stdin and stdout. */
export interface GatewayStdio extends StdioConnection {
  /** Serves as another config says, formats above all; what the client was told when it came (names of tools) stays. */
  reload(loaded: LoadedConfig): Promise<void>;
}

/** Serves a gateway to one MCP client over stdin and stdout, until stdin ends; nothing listens. */
export function serveGatewayStdio(
  gateway: Gateway,
  loaded: LoadedConfig,
  options: ServeGatewayStdioOptions = {},
): GatewayStdio {
  const { stdin, stdout, identity, telemetry, onRead, onWarning = () => {} } = options;
  // Where the config would listen is of no matter here, nor who may call.
  const settingsOf = (config: LoadedConfig) => readServeSettings(config, { host: "127.0.0.1", port: 0 });
  const auth = new GatewayAuth(undefined);
  const parts = new GatewayParts(settingsOf(loaded), { gateway, auth, telemetry, onRead, onWarning });
  const { config } = loaded;
  const always = { ...loaded, config: { ...config, serve: { ...config.serve, mcp: mcpOf(loaded) } } };
  const server = parts.createMcpServer(always, "stdio");
  if (server === undefined) throw new Error("unreachable");
  const connection = serveStdio(server, {
    onWarning,
    drainMs: settingsOf(loaded).drainMs,
    ...(stdin !== undefined && { stdin }),
    ...(stdout !== undefined && { stdout }),
    ...(identity !== undefined && { identity }),
  });
  const closed = connection.closed.then(() => server.close());
  return {
    closed,
    async reload(next) {
      parts.formats.set(settingsOf(next).serve);
    },
    async close(ending) {
      await connection.close(ending);
      await closed;
    },
  };
}

/** A gateway over stdio serves MCP, whatever the config says of HTTP. */
function mcpOf({ config }: LoadedConfig) {
  const { mcp = true } = config.serve ?? {};
  return mcp === false ? true : mcp;
}
