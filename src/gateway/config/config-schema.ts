import type { GatewayConfig, GatewayLimits, LogConfig } from "./gateway-config.ts";
import { PATTERN, POLICY_DEFINITIONS } from "./policy-schema.ts";
import {
  anyText,
  type ConfigSchema,
  choice,
  definition,
  either,
  fields,
  map,
  text,
  texts,
  whole,
} from "./schema-parts.ts";
import { SERVE_DEFINITIONS } from "./serve-schema.ts";
import { SOURCE_DEFINITIONS } from "./source-schemas.ts";

const LIMITS = {
  calls: whole("Calls that run at a time; one more is RESOURCE_EXHAUSTED. Default: 10000.", 1),
  bodyBytes: whole("Bytes of one request's body. Default: 4194304.", 1),
  timeoutMs: whole("The longest time a caller over HTTP may ask for, in milliseconds. Default: 60000.", 1),
  cacheEntries: whole("Results of read-only operations that are kept. Default: 10000.", 0),
  cacheCharacters: whole("Characters of those results, written as JSON. Default: 67108864.", 0),
  idempotencyKeys: whole("Results kept for idempotency keys. Default: 10000.", 0),
  queue: whole("Calls that wait for their turn under a rate or concurrency limit. Default: 10000.", 0),
} satisfies Record<keyof GatewayLimits, ConfigSchema>;

const LOG = {
  level: choice("The least that is logged. Default: info.", ["debug", "info", "warn", "error", "silent"]),
  format: choice("How it is logged. Default: lines for people on a terminal, JSON otherwise.", [
    "json",
    "text",
  ]),
} satisfies Record<keyof LogConfig, ConfigSchema>;

const NAME: ConfigSchema = { minLength: 1, maxLength: 256 };

const CONFIG = {
  $schema: anyText("For editors; not read."),
  name: text("What the gateway calls itself. Default: waybill."),
  envFile: texts(
    "Files with NAME=value lines for references, beside the config; the environment wins. Default: none.",
  ),
  mcpServers: map(
    "MCP servers by name, in the shape that desktop hosts and editors use; operations stand under the name. Default: none.",
    definition("mcpServer", "One MCP server."),
    NAME,
  ),
  openapi: map(
    "HTTP APIs by name; operations stand under the name. Default: none.",
    definition("openapi", "One HTTP API."),
    NAME,
  ),
  operations: texts(
    "Globs of modules that export operations, TypeScript included, beside the config. Default: none.",
  ),
  serve: definition("serve", "What is served, where, to whom and how."),
  bus: definition("bus", "The message bus. Default: none."),
  policies: map(
    "Policies by pattern of operation id, such as github.*; of several that fit, later ones win field by field. Default: none.",
    definition("operationPolicy", "One policy."),
    PATTERN,
  ),
  limits: fields("Bounds of the gateway as a whole.", LIMITS),
  log: fields("What is logged; always to stderr.", LOG),
  lock: either(
    "Refuses tools of MCP servers that are not as approved in the lock file: true for waybill.lock.json, or a path. Default: false.",
    { type: "boolean" },
    { type: "string", minLength: 1 },
  ),
} satisfies Record<keyof GatewayConfig, ConfigSchema>;

/** The JSON Schema (2020-12) of `waybill.config.*`, for editors and for what reads it. */
export const CONFIG_SCHEMA: ConfigSchema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "Waybill config",
  ...fields("What a gateway mounts and serves.", CONFIG),
  $defs: { ...POLICY_DEFINITIONS, ...SOURCE_DEFINITIONS, ...SERVE_DEFINITIONS },
};
