import { TIERS } from "../../core/access/tier.ts";
import { FORMAT_NAMES } from "../../core/result/tool-result.ts";
import type {
  ServeAuthConfig,
  ServeConfig,
  ServeHttpConfig,
  ServeMcpConfig,
  ServeTokenConfig,
} from "./gateway-config.ts";
import { PATTERN } from "./policy-schema.ts";
import {
  anyText,
  type ConfigSchema,
  choice,
  definition,
  either,
  fields,
  flag,
  list,
  map,
  text,
  texts,
  whole,
} from "./schema-parts.ts";

const MCP = {
  dots: flag("Keeps the dots of ids in names of tools. Default: false."),
  catalogue: flag("Serves search, describe, call and batch instead of a tool per operation. Default: false."),
  instructions: anyText("Told to models about the gateway as a whole. Default: none."),
} satisfies Record<keyof ServeMcpConfig, ConfigSchema>;

const HTTP = {
  docs: flag("Serves the API page at /docs. Default: true."),
  title: text("The title of the API. Default: the gateway's name."),
  version: text("The version of the API. Default: 1.0.0."),
} satisfies Record<keyof ServeHttpConfig, ConfigSchema>;

const TOKEN = {
  token: text("The token; best a reference; at least 16 characters."),
  scopes: list("What its holder may do. Default: nothing that asks for a scope.", text("A scope.")),
  tier: choice("The plan of its holder. Default: the lowest.", TIERS),
  format: choice("How results are written for this holder. Default: that of serve.", FORMAT_NAMES),
} satisfies Record<keyof ServeTokenConfig, ConfigSchema>;

const JWT = {
  audience: texts("Whom tokens must be meant for."),
  jwksUrl: text("Where the keys of the authorization server are published."),
  issuer: texts("Who must have issued tokens. Default: anybody whose key is published there."),
  algorithms: list("Signatures that are accepted. Default: those with public keys.", text("An algorithm.")),
  requiredScopes: list("Scopes that every caller must hold. Default: none.", text("A scope.")),
} satisfies Record<keyof NonNullable<ServeAuthConfig["jwt"]>, ConfigSchema>;

const AUTH = {
  tokens: map("Tokens by the name of who holds them. Default: none.", definition("token", "One token."), {
    minLength: 1,
  }),
  jwt: fields("Signed tokens of an authorization server. Default: none.", JWT, ["audience", "jwksUrl"]),
} satisfies Record<keyof ServeAuthConfig, ConfigSchema>;

const CLIENT = fields(
  "How results are written for such a client.",
  { format: choice("The format.", FORMAT_NAMES) },
  ["format"],
);

const SERVE = {
  host: text("The address that is listened on. Default: 127.0.0.1."),
  port: whole("The port that is listened on; 0 takes a free one. Default: 4100.", 0, 65_535),
  mcp: either("MCP at /mcp. Default: true.", { type: "boolean" }, fields("How it is served.", MCP)),
  http: either(
    "HTTP at /api, /openapi.json and /docs. Default: true.",
    { type: "boolean" },
    fields("How it is served.", HTTP),
  ),
  metrics: flag("Prometheus at /metrics. Default: true."),
  inspect: flag("Serves the inspector at /inspect. Default: false; the embedded default serves it."),
  auth: fields("Who may call. Default: everybody who can reach the gateway.", AUTH),
  hosts: list(
    "Names the gateway is reached under besides those of the loopback interface. Default: none.",
    text("A host."),
  ),
  publicUrl: text(
    "Where clients reach the gateway, such as https://tools.example, for its OpenAPI document. Default: where the document was asked for.",
  ),
  origins: list("Origins of web pages that may use the gateway. Default: none.", text("An origin.")),
  format: choice(
    "How results are written where nobody asks for anything else. Default: plain data.",
    FORMAT_NAMES,
  ),
  formats: list("Formats that may be asked for. Default: all.", choice("A format.", FORMAT_NAMES)),
  clients: map("Formats by pattern of the name an MCP client gives itself. Default: none.", CLIENT, PATTERN),
  lameDuckMs: whole(
    "Milliseconds that waybill serve goes on serving after SIGTERM while /ready says 503. Default: 5000.",
    0,
  ),
  drainMs: whole("Milliseconds that calls have to end when the gateway stops. Default: 10000.", 0),
} satisfies Record<keyof ServeConfig, ConfigSchema>;

/** What stands under `$defs` for serving. */
export const SERVE_DEFINITIONS = {
  serve: fields("What is served, where, to whom and how.", SERVE),
  token: fields("One token and what its holder may do.", TOKEN, ["token"]),
} satisfies Record<string, ConfigSchema>;
