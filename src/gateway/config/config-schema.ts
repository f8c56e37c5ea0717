import { TIERS } from "../../core/access/tier.ts";
import { FORMAT_NAMES } from "../../core/result/tool-result.ts";
import type { DpopAuth } from "../../http/dpop-proof.ts";
import type { TokenIntrospection } from "../../http/introspection.ts";
import type { ApprovalWebhook } from "../approvals/approval-webhook.ts";
import {
  anyText,
  type ConfigSchema,
  choice,
  definition,
  delay,
  either,
  fields,
  flag,
  list,
  map,
  text,
  texts,
  whole,
} from "./config-schema-parts.ts";
import type {
  ApprovalsConfig,
  AuditConfig,
  GatewayConfig,
  GatewayLimits,
  LogConfig,
  ServeAuthConfig,
  ServeConfig,
  ServeHttpConfig,
  ServeIssuerConfig,
  ServeMcpConfig,
  ServeSessionsConfig,
  ServeTokenConfig,
  StateConfig,
  TasksConfig,
} from "./gateway-config.ts";
import { PATTERN, POLICY_DEFINITIONS } from "./policy-schema.ts";
import { SOURCE_DEFINITIONS } from "./source-schemas.ts";

const MCP = {
  dots: flag("Keeps the dots of ids in names of tools. Default: false."),
  catalogue: flag("Serves search, describe, call and batch instead of a tool per operation. Default: false."),
  instructions: anyText("Told to models about the gateway as a whole. Default: none."),
} satisfies Record<keyof ServeMcpConfig, ConfigSchema>;

const SESSIONS = {
  key: texts(
    "The same at each gateway that serves the same MCP clients, best a reference; at least 32 characters. Of several, the first seals and each opens. Default: a gateway knows its own sessions alone.",
  ),
} satisfies Record<keyof ServeSessionsConfig, ConfigSchema>;

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

const INTROSPECTION = {
  url: text("Where the issuer is asked. Default: as its metadata says."),
  clientId: text("What this gateway is known by at the issuer."),
  clientSecret: text("Its secret; best a reference."),
  privateKey: text("A private key, as PEM, in place of a secret; best a reference. Default: none."),
  signingAlgorithm: text("What the private key signs with. Default: ES256."),
  cacheMs: whole("Milliseconds that an answer is believed for. Default: 30000.", 0),
} satisfies Record<keyof TokenIntrospection, ConfigSchema>;

const ISSUER = {
  jwksUrl: text("Where the keys of the authorization server are published. Default: as its metadata says."),
  algorithms: list("Signatures that are accepted. Default: those with public keys.", text("An algorithm.")),
  introspection: fields(
    "How the issuer is asked about tokens that are not signed, and without jwksUrl about all. Default: such tokens are refused.",
    INTROSPECTION,
    ["clientId"],
  ),
} satisfies Record<Exclude<keyof ServeIssuerConfig, "issuer">, ConfigSchema>;

const DPOP = {
  required: flag("Refuses tokens that are bound to no key. Default: false."),
  algorithms: list(
    "Signatures of proofs that are accepted. Default: those with public keys.",
    text("An algorithm."),
  ),
  maxAgeMs: whole("Milliseconds that a proof may be old. Default: 60000.", 1),
  nonce: flag("Takes proofs alone that hold a nonce of this process. Default: false."),
} satisfies Record<keyof DpopAuth, ConfigSchema>;

const JWT = {
  ...ISSUER,
  audience: texts("Whom tokens must be meant for."),
  issuer: texts("Who must have issued tokens. Default: anybody whose key is published there."),
  requiredScopes: list("Scopes that every caller must hold. Default: none.", text("A scope.")),
  scopes: list("Scopes that clients are told of. Default: requiredScopes.", text("A scope.")),
  issuers: list(
    "Several authorization servers, in place of issuer, jwksUrl, algorithms and introspection. Default: one.",
    fields("An authorization server.", { issuer: text("Its address."), ...ISSUER }, ["issuer"]),
  ),
  dpop: fields("How tokens that are bound to a key are checked. Default: others are taken too.", DPOP),
} satisfies Record<keyof NonNullable<ServeAuthConfig["jwt"]>, ConfigSchema>;

const AUTH = {
  tokens: map("Tokens by the name of who holds them. Default: none.", definition("token", "One token."), {
    minLength: 1,
  }),
  jwt: fields("Signed tokens of an authorization server. Default: none.", JWT, ["audience"]),
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
  sessions: fields("What several gateways that serve the same clients share of MCP.", SESSIONS),
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
  lameDuckMs: delay(
    "Milliseconds that waybill serve goes on serving after SIGTERM while /ready says 503. Default: 5000.",
    0,
  ),
  drainMs: delay("Milliseconds that calls have to end when the gateway stops. Default: 10000.", 0),
} satisfies Record<keyof ServeConfig, ConfigSchema>;

/** What stands under `$defs` for serving. */
const SERVE_DEFINITIONS = {
  serve: fields("What is served, where, to whom and how.", SERVE),
  token: fields("One token and what its holder may do.", TOKEN, ["token"]),
} satisfies Record<string, ConfigSchema>;

const LIMITS = {
  calls: whole("Calls that run at a time; one more is RESOURCE_EXHAUSTED. Default: 10000.", 1),
  bodyBytes: whole("Bytes of one request's body. Default: 4194304.", 1),
  timeoutMs: whole("The longest time a caller over HTTP may ask for, in milliseconds. Default: 60000.", 1),
  cacheEntries: whole("Results of read-only operations that are kept. Default: 10000.", 0),
  cacheCharacters: whole("Characters of those results, written as JSON. Default: 67108864.", 0),
  idempotencyKeys: whole("Results kept for idempotency keys. Default: 10000.", 0),
  queue: whole("Calls that wait for their turn under a rate or concurrency limit. Default: 10000.", 0),
  approvals: whole(
    "Requests for approval that wait, or were approved and are not used yet. Default: 1000.",
    1,
    100_000,
  ),
} satisfies Record<keyof GatewayLimits, ConfigSchema>;

const LOG = {
  level: choice("The least that is logged. Default: info.", ["debug", "info", "warn", "error", "silent"]),
  format: choice("How it is logged. Default: lines for people on a terminal, JSON otherwise.", [
    "json",
    "text",
  ]),
} satisfies Record<keyof LogConfig, ConfigSchema>;

const AUDIT = {
  file: text("A file of audit records beside the config; each gateway has one of its own."),
  maxBytes: whole(
    "Bytes of one file; then it is set aside and another one begins. Default: 67108864.",
    65_536,
  ),
  required: flag("Refuses calls while records cannot be written. Default: false."),
} satisfies Record<keyof AuditConfig, ConfigSchema>;

const WEBHOOK = {
  url: text("Where it is told, by POST."),
  secret: text("Signs what it is told; at least 32 characters, best a reference."),
  headers: map("Headers of what it is told.", text("A value.")),
  timeoutMs: delay("Milliseconds that it may take. Default: 5000.", 1),
} satisfies Record<keyof ApprovalWebhook, ConfigSchema>;

const APPROVALS = {
  page: flag(
    "Serves the page on which people decide, at /approvals. Default: true where a policy holds calls.",
  ),
  webhook: fields("A service that is told of each call that waits. Default: none.", WEBHOOK, [
    "url",
    "secret",
  ]),
} satisfies Record<keyof ApprovalsConfig, ConfigSchema>;

const STATE = {
  store: either(
    "Where it is kept: memory, a folder of one process, or nats: at the broker of bus, for all replicas. Default: nats with a bus whose broker has JetStream, else memory.",
    { enum: ["memory", "nats"] },
    fields("A folder of one process.", { files: text("The folder, beside the config.") }, ["files"]),
  ),
  lost: either(
    "What becomes of what replicas share while the store cannot be reached: refuse calls that need it, or go on alone. One word holds for all.",
    { enum: ["refuse", "alone"] },
    fields("For each.", {
      keys: choice(
        "Calls with an idempotency key: refuse them, or run them with a key that this replica alone knows. Default: refuse.",
        ["refuse", "alone"],
      ),
      limits: choice(
        "Calls under a rate or concurrency beyond what this replica has leased: refuse them, or count for itself. Default: alone.",
        ["refuse", "alone"],
      ),
    }),
  ),
  copies: whole("Copies in a cluster of brokers; counts when the stream is made. Default: 1.", 1, 5),
} satisfies Record<keyof StateConfig, ConfigSchema>;

const TASKS = {
  afterMs: delay("Milliseconds after which a call that still runs becomes a task. Default: 30000.", 0),
  keepMs: whole(
    "Milliseconds that a task is kept from its beginning, and may run. Default: 86400000.",
    1_000,
    604_800_000,
  ),
  pollMs: delay("Milliseconds between two looks, as clients are told. Default: 1000.", 1),
  running: whole("Tasks that run in one gateway. Default: 1000.", 1),
  tasks: whole("Tasks that are kept, of all replicas. Default: 10000.", 1),
  ownTasks: whole("Tasks of one caller. Default: 1000.", 1),
  bytes: whole("Bytes of results that are kept. Default: 134217728.", 1),
  ownBytes: whole("Bytes of results of one caller. Default: 33554432.", 1),
  resultBytes: whole("Bytes of one result. Default: 8388608.", 1, 33_554_432),
} satisfies Record<keyof TasksConfig, ConfigSchema>;

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
  state: fields("What outlives a call: idempotency keys and their answers.", STATE),
  tasks: either(
    "Calls that are answered later, for clients that take that; false for none. Default: true.",
    { type: "boolean" },
    fields("How much of them is kept.", TASKS),
  ),
  policies: map(
    "Policies by pattern of operation id, such as github.*; of several that fit, later ones win field by field. Default: none.",
    definition("operationPolicy", "One policy."),
    PATTERN,
  ),
  limits: fields("Bounds of the gateway as a whole.", LIMITS),
  log: fields("What is logged; always to stderr.", LOG),
  audit: fields("A file of audit records, each of which names the one before it. Default: none.", AUDIT, [
    "file",
  ]),
  approvals: fields("How people are asked about calls that a policy holds.", APPROVALS),
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
