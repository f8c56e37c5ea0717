import { openMcpConnection } from "./connect.ts";
import { checkConnectionOptions, type McpConnectionOptions } from "./connection-options.ts";
import type { ImportOptions } from "./import-options.ts";
import { checkImportOptions, importServer } from "./import-server.ts";
import type { ToolLock } from "./lock/tool-lock.ts";
import { McpSource } from "./mcp-source.ts";
import { checkOptionNames } from "./option-names.ts";

export { McpSource };

/** How to reach an MCP server, and how its tools become operations. */
export type FromMcpOptions = McpConnectionOptions & ImportOptions;

/**
 * Connects to an MCP server and imports its tools. Rejects with a `CallError` when it cannot be reached or its tools cannot be
 * listed, and leaves nothing running then.
 */
export async function fromMcp(options: FromMcpOptions): Promise<McpSource> {
  checkOptionNames(options);
  checkConnectionOptions(options);
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
export async function approveTools(source: McpSource, toolNames?: Iterable<string>): Promise<ToolLock> {
  if (!(source instanceof McpSource)) {
    const hint = (source as unknown) instanceof Promise ? "; await fromMcp() first" : "";
    throw new TypeError(`approveTools takes a source made by fromMcp()${hint}.`);
  }
  return await source.approve(toolNames);
}
