import { checkConnectionOptions, type McpConnectionOptions } from "./connection-options.ts";
import type { McpConnection } from "./mcp-connection.ts";
import { ReconnectingConnection } from "./reconnecting-connection.ts";

/**
 * Connects to an MCP server. Rejects with a `CallError` that names the command or host (`UNAVAILABLE`, `UNAUTHENTICATED`,
 * `ACCESS_DENIED`, `TIMEOUT`) when the first attempt fails, and leaves no process behind; with a `TypeError` for options that
 * cannot work.
 */
export async function openMcpConnection(options: McpConnectionOptions): Promise<McpConnection> {
  checkConnectionOptions(options);
  const connection = new ReconnectingConnection(options);
  await connection.open();
  return connection;
}
