import { openMcpConnection } from "./connect.ts";
import type { McpConnectionOptions } from "./connection-options.ts";
import type { ImportOptions } from "./import-options.ts";
import { checkImportOptions, importServer } from "./import-server.ts";
import type { ToolLock } from "./lock/tool-lock.ts";
import type { McpSource } from "./mcp-source.ts";

export type { McpSource };

/** How to reach an MCP server, and how its tools become operations. */
export type FromMcpOptions = McpConnectionOptions & ImportOptions;

/**
 * Connects to an MCP server and imports its tools. Rejects with a `CallError` when it cannot be reached or its tools cannot be
 * listed, and leaves nothing running then.
 */
export async function fromMcp(options: FromMcpOptions): Promise<McpSource> {
  checkImportOptions(options);
  const connection = await openMcpConnection(options);
  try {
    return await importServer(connection, options);
  } catch (thrown) {
    await connection.close();
    throw thrown;
  }
}

/** Approves the tools of a pinned source as they are listed now, all or those named, and writes its lock file if it has one. */
export function approveTools(source: McpSource, toolNames?: Iterable<string>): Promise<ToolLock> {
  return source.approve(toolNames);
}
