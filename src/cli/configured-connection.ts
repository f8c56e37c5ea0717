import type { McpServerConfig } from "../gateway/config/gateway-config.ts";
import { toMcpConnection } from "../gateway/sources/mcp-source.ts";
import { SourceFault } from "../gateway/sources/source-fault.ts";
import type { McpConnectionOptions } from "../mcp/client/connection-options.ts";
import { CommandError } from "./io.ts";

/** How a server of a config is connected to, without a gateway around it; what cannot work is a `CommandError`. */
export async function configuredConnection(
  server: McpServerConfig,
  baseDir: string,
): Promise<McpConnectionOptions> {
  try {
    return await toMcpConnection(server, baseDir);
  } catch (thrown) {
    if (thrown instanceof SourceFault) throw new CommandError(thrown.message.replace(/[^.!?]$/, "$&."));
    throw thrown;
  }
}
