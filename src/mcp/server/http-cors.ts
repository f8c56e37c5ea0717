import type { CorsRules } from "../../http/host-guard.ts";

const PARAM_HEADER = /^mcp-param-[a-z0-9!#$%&'*+.^_`|~-]{1,128}$/;

/** What web pages may send to an MCP endpoint, and read of its responses. */
export const MCP_CORS: CorsRules = {
  methods: ["GET", "POST", "DELETE"],
  requestHeaders: [
    "accept",
    "authorization",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
  ],
  isRequestHeader: (name) => PARAM_HEADER.test(name),
  exposedHeaders: ["mcp-session-id", "www-authenticate", "retry-after"],
};
