import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  LOG_LEVEL_META_KEY,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { isPlainObject } from "../../core/json/json-value.ts";
import { MCP_LOG_LEVELS, type McpLogLevel } from "../provider.ts";

/** The capabilities a 2026-07-28 client declares with each request. */
export function declaredCapabilities(context: ServerContext): unknown {
  return envelopeOf(context)[CLIENT_CAPABILITIES_META_KEY];
}

/** What a 2026-07-28 client calls itself in a request. */
export function declaredName(context: ServerContext): string | undefined {
  const info = envelopeOf(context)[CLIENT_INFO_META_KEY];
  const name = isPlainObject(info) ? info["name"] : undefined;
  return typeof name === "string" ? name : undefined;
}

/** The least important level a 2026-07-28 client wants to hear of while this request runs; it hears nothing unless it asks. */
export function wantedLogLevel(context: ServerContext): McpLogLevel | "off" {
  return readLogLevel(envelopeOf(context)[LOG_LEVEL_META_KEY]) ?? "off";
}

/** Takes a level of MCP for one; nothing for anything else. */
export function readLogLevel(value: unknown): McpLogLevel | undefined {
  return MCP_LOG_LEVELS.find((level) => level === value);
}

function envelopeOf(context: ServerContext): Readonly<Record<string, unknown>> {
  return (context.mcpReq.envelope ?? {}) as Readonly<Record<string, unknown>>;
}
