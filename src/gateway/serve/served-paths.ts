import type { ServeConfig } from "../config/gateway-config.ts";

/** Where a gateway serves what, below its address; absent where it does not. */
export interface ServedPaths {
  readonly mcp?: string;
  readonly api?: string;
  readonly document?: string;
  readonly docs?: string;
  readonly metrics?: string;
}

/** Where MCP is served. */
export const MCP_PATH = "/mcp";

/** Says what a config wants served, and where. */
export function servedPaths({ mcp = true, http = true, metrics = true }: ServeConfig = {}): ServedPaths {
  const hasDocs = http === true || (http !== false && http.docs !== false);
  return {
    ...(mcp !== false && { mcp: MCP_PATH }),
    ...(http !== false && { api: "/api", document: "/openapi.json" }),
    ...(hasDocs && { docs: "/docs" }),
    ...(metrics && { metrics: "/metrics" }),
  };
}
