import { checkMcp, type McpCheckOptions } from "../src/cli/check/check-mcp.ts";
import type { CheckReport } from "../src/cli/check/check-report.ts";
import type { McpConnectionOptions } from "../src/mcp/client/connection-options.ts";

/** Checks an MCP server as `waybill check` does, and calls nothing unless told to. */
export function checkMcpServer(
  connection: McpConnectionOptions,
  calls: Partial<McpCheckOptions["calls"]> = {},
  timeoutMs = 20_000,
): Promise<CheckReport> {
  return checkMcp({
    target: "a server",
    connection: { connectTimeoutMs: 20_000, ...connection },
    timeoutMs,
    calls: { all: false, named: new Set(), inputs: new Map(), ...calls },
    onProgress: () => {},
  });
}
