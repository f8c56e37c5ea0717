import type { Tier } from "../../core/operation/operation-types.ts";
import type { FormatName } from "../../formats/index.ts";
import type { DpopAuth } from "../../http/dpop-proof.ts";
import type { TokenIntrospection } from "../../http/introspection.ts";
import type { OpenApiOptions } from "../../openapi/index.ts";
import type { ApprovalWebhook } from "../approvals/approval-webhook.ts";
import type { AuditOptions } from "../audit/audit-file.ts";
import type { OperationPolicy, SourcePolicy } from "../policy/policy.ts";

/**
 * What a gateway mounts and serves: what `waybill.config.{ts,js,json,yaml}` holds. Texts may refer to what is kept elsewhere:
 * `${NAME}`, `${env:NAME}` and `${NAME:-default}` to the environment, `${file:path}` to a file; `$${` is a plain `${`.
 */
export interface GatewayConfig {
  /** For editors; not read. */
  readonly $schema?: string | undefined;
  /** What the gateway calls itself. @default "waybill" */
  readonly name?: string | undefined;
  /** Files with `NAME=value` lines for references, beside the config; the environment wins. @default none */
  readonly envFile?: string | readonly string[] | undefined;
  /** MCP servers by name, in the shape that desktop hosts and editors use; operations stand under the name. @default none */
  readonly mcpServers?: Readonly<Record<string, McpServerConfig>> | undefined;
  /** HTTP APIs by name; operations stand under the name. @default none */
  readonly openapi?: Readonly<Record<string, OpenApiConfig>> | undefined;
  /** Globs of modules that export operations, TypeScript included, beside the config. @default none */
  readonly operations?: string | readonly string[] | undefined;
  readonly serve?: ServeConfig | undefined;
  readonly bus?: BusConfig | undefined;
  readonly state?: StateConfig | undefined;
  /** Calls that are answered later, for clients that take that; `false` for none. @default true */
  readonly tasks?: boolean | TasksConfig | undefined;
  /** Policies by pattern of operation id, such as `"github.*"`; of several that fit, later ones win field by field. @default none */
  readonly policies?: Readonly<Record<string, OperationPolicy>> | undefined;
  readonly limits?: GatewayLimits | undefined;
  readonly log?: LogConfig | undefined;
  readonly audit?: AuditConfig | undefined;
  readonly approvals?: ApprovalsConfig | undefined;
  /** Refuses tools of MCP servers that are not as approved in the lock file (`true` for `waybill.lock.json`). @default false */
  readonly lock?: boolean | string | undefined;
}

/** How people are asked about calls that a policy holds. */
export interface ApprovalsConfig {
  /** Serves the page on which people decide, at `/approvals`. @default true where a policy holds calls */
  readonly page?: boolean | undefined;
  /** A service that is told of each call that waits. @default none */
  readonly webhook?: ApprovalWebhook | undefined;
}

/** A file of audit records, each of which names the one before it. */
export interface AuditConfig extends AuditOptions {
  /** Beside the config; each gateway has one of its own. */
  readonly file: string;
}

/** One MCP server: a process to start, or an address. Members that other hosts use and Waybill does not are left alone. */
export interface McpServerConfig {
  readonly type?: "stdio" | "http" | "streamable-http" | "sse" | undefined;
  readonly command?: string | undefined;
  readonly args?: readonly string[] | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Beside the config. @default the folder of the config */
  readonly cwd?: string | undefined;
  /** Further variables of this process that the child gets, or all of them. @default none */
  readonly inheritEnv?: readonly string[] | "all" | undefined;
  readonly url?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** A token for `Authorization: Bearer`. @default none */
  readonly bearer?: string | undefined;
  /**
   * The gateway's own credentials at the server's authorization server (client credentials), or, with `login`, how a person logs in
   * with `waybill login`. @default none; a person may log in where nothing else is given
   */
  readonly oauth?: (LoginConfig & { readonly scope?: string | undefined }) | undefined;
  /** As whom the server is asked. Its tools are listed with the credentials above in every case. @default "shared" */
  readonly identity?: IdentityMode | SourceIdentityConfig | undefined;
  /** Allows plain http to hosts other than this machine. @default false */
  readonly allowHttp?: boolean | undefined;
  /** @default false */
  readonly disabled?: boolean | undefined;
  /** @default "auto" */
  readonly protocol?: "auto" | "2025" | "2026" | undefined;
  /** Milliseconds to connect, starting the process included. @default 30_000 */
  readonly connectTimeoutMs?: number | undefined;
  /** Takes a single text block that is JSON for the data. @default false */
  readonly recoverJson?: boolean | undefined;
  /** Keeps ids that Waybill serves: only for gateways you trust to name them. @default false */
  readonly keepIds?: boolean | undefined;
  /** Passes on what the server tells models about itself. @default true */
  readonly instructions?: boolean | undefined;
  /** @default `lock` of the gateway */
  readonly lock?: boolean | undefined;
  /** Passes on what the source said when it failed, in `details.said`. @default true */
  readonly said?: boolean | undefined;
  /** Masks the credentials of the source, from 16 characters on, in its results too. @default true */
  readonly maskResults?: boolean | undefined;
  readonly policy?: SourcePolicy | undefined;
}

/**
 * As whom a source is asked: as one for all (`shared`), as each caller by a login of their own (`caller`) or a key of their own (`key`), by a
 * token that is had for the caller's (`exchange`), or by the caller's token itself (`forward`).
 */
export type IdentityMode = "shared" | "caller" | "key" | "exchange" | "forward";

/** An authorization server that takes assertions of who somebody is, and the client that brings them. */
export interface AssertionConfig {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret?: string | undefined;
}

/** As whom a source is asked, and what that takes. */
export interface SourceIdentityConfig {
  readonly mode: IdentityMode;
  /**
   * Whom the token is for: with `forward` what the caller's token has to say in `aud`, and needed; with `exchange` what is asked for.
   * @default none
   */
  readonly audience?: string | undefined;
  /** What an exchange asks for. @default what the authorization server gives */
  readonly scope?: string | undefined;
  /** The authorization server that exchanges tokens; needed for `exchange`. */
  readonly issuer?: string | undefined;
  /** The client that exchanges tokens; needed for `exchange`. */
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
  /**
   * The authorization server of the source, where it takes an assertion of the caller's identity that the one above gives (RFC 7523).
   * @default the one above gives the token itself
   */
  readonly assertion?: AssertionConfig | undefined;
  /** Of an MCP server: the header that a caller's key is sent in. @default `Authorization: Bearer` */
  readonly header?: string | undefined;
  /** Of an API: the credential that a key or token serves, by the name of its scheme or kind. @default "bearer" */
  readonly scheme?: string | undefined;
  /** Of an MCP server: callers that are connected at a time. @default 100 */
  readonly connections?: number | undefined;
  /** Of an MCP server: milliseconds after which the connection of a caller who does nothing is closed. @default 300_000 */
  readonly idleMs?: number | undefined;
}

/** A client of an authorization server: one that a person logs in with, or the gateway's own. */
export interface LoginConfig {
  /** A person logs in with `waybill login`. @default false */
  readonly login?: boolean | undefined;
  /** @default registered with the authorization server, where a person logs in */
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
  /** The authorization server that knows the client; needed with a secret, which no other is shown. */
  readonly issuer?: string | undefined;
  /** An https address that describes the client, which is its id where the authorization server reads such. @default none */
  readonly clientMetadataUrl?: string | undefined;
  /** Where the browser comes back to after a login, on this machine. @default a free port of 127.0.0.1 */
  readonly redirectUrl?: string | undefined;
}

/** A credential of an HTTP API: a key or token, a name and a password, how tokens are had, or a person who logs in. */
export type OpenApiCredential =
  | string
  | { readonly username: string; readonly password: string }
  | {
      readonly clientId: string;
      readonly clientSecret?: string | undefined;
      readonly refreshToken?: string | undefined;
      readonly tokenUrl?: string | undefined;
      readonly scopes?: readonly string[] | undefined;
    }
  | (LoginConfig & { readonly login: true; readonly scopes?: readonly string[] | undefined });

/** One HTTP API with an OpenAPI document. */
export interface OpenApiConfig
  extends Pick<
    OpenApiOptions,
    | "server"
    | "serverVariables"
    | "authOrigins"
    | "headers"
    | "overlay"
    | "trace"
    | "keepIds"
    | "said"
    | "maskResults"
  > {
  /** A path beside the config, or a URL. */
  readonly document: string;
  /** Where the API is, in place of what the document says. */
  readonly baseUrl?: string | undefined;
  /** By the name of the scheme, or by kind: `bearer`, `basic`, `apiKey`, `oauth2`. @default none */
  readonly auth?: Readonly<Record<string, OpenApiCredential>> | undefined;
  /** As whom the API is asked. @default "shared" */
  readonly identity?: IdentityMode | SourceIdentityConfig | undefined;
  /** Hosts whose addresses may be private: `host:port`, `host` for ports 80 and 443, `host:*`; or `true` for all. @default only those the config names */
  readonly allowPrivate?: readonly string[] | boolean | undefined;
  /** @default false */
  readonly disabled?: boolean | undefined;
  readonly policy?: SourcePolicy | undefined;
}

/** What is served, where, to whom and how. */
export interface ServeConfig {
  /** @default "127.0.0.1" */
  readonly host?: string | undefined;
  /** @default 4100 */
  readonly port?: number | undefined;
  /** MCP at `/mcp`. @default true */
  readonly mcp?: boolean | ServeMcpConfig | undefined;
  /** HTTP at `/api`, `/openapi.json` and `/docs`. @default true */
  readonly http?: boolean | ServeHttpConfig | undefined;
  /** Prometheus at `/metrics`. @default true */
  readonly metrics?: boolean | undefined;
  /** The inspector at `/inspect`, of `waybill serve`. @default false; the embedded default serves it */
  readonly inspect?: boolean | undefined;
  readonly auth?: ServeAuthConfig | undefined;
  readonly sessions?: ServeSessionsConfig | undefined;
  /** Names the gateway is reached under besides those of the loopback interface. @default none */
  readonly hosts?: readonly string[] | undefined;
  /** Where clients reach the gateway, such as `https://tools.example`, for its OpenAPI document. @default where the document was asked for */
  readonly publicUrl?: string | undefined;
  /** Origins of web pages that may use the gateway. @default none */
  readonly origins?: readonly string[] | undefined;
  /** How results are written where nobody asks for anything else. @default plain data */
  readonly format?: FormatName | undefined;
  /** Formats that may be asked for. @default all */
  readonly formats?: readonly FormatName[] | undefined;
  /** Formats by pattern of the name an MCP client gives itself. @default none */
  readonly clients?: Readonly<Record<string, { readonly format: FormatName }>> | undefined;
  /**
   * Milliseconds that `waybill serve` goes on serving after SIGTERM while `/ready` says 503, so that load balancers look elsewhere
   * first. @default 5_000
   */
  readonly lameDuckMs?: number | undefined;
  /** Milliseconds that calls have to end when the gateway stops. @default 10_000 */
  readonly drainMs?: number | undefined;
}

/** How operations are served over MCP. */
export interface ServeMcpConfig {
  /** Keeps the dots of ids in names of tools. @default false */
  readonly dots?: boolean | undefined;
  /** Serves `search`, `describe`, `call` and `batch` instead of a tool per operation. @default false */
  readonly catalogue?: boolean | undefined;
  /** Told to models about the gateway as a whole. @default none */
  readonly instructions?: string | undefined;
}

/** What several gateways that serve the same clients share of MCP. */
export interface ServeSessionsConfig {
  /**
   * The same at each of them, best a reference; at least 32 characters. Of several, the first seals and each opens. @default a gateway knows its
   * own sessions alone
   */
  readonly key?: string | readonly string[] | undefined;
}

/** How operations are served over HTTP. */
export interface ServeHttpConfig {
  /** @default true */
  readonly docs?: boolean | undefined;
  /** @default the gateway's name */
  readonly title?: string | undefined;
  /** @default "1.0.0" */
  readonly version?: string | undefined;
}

/** Who may call; with neither member everybody who can reach the gateway may. */
export interface ServeAuthConfig {
  /** Tokens by the name of who holds them. @default none */
  readonly tokens?: Readonly<Record<string, ServeTokenConfig>> | undefined;
  /** Signed tokens of an authorization server. @default none */
  readonly jwt?:
    | {
        readonly audience: string | readonly string[];
        /** Where its keys are published. @default where the metadata of the `issuer` says */
        readonly jwksUrl?: string | undefined;
        readonly issuer?: string | readonly string[] | undefined;
        readonly algorithms?: readonly string[] | undefined;
        readonly requiredScopes?: readonly string[] | undefined;
        /** Scopes that clients are told of. @default `requiredScopes` */
        readonly scopes?: readonly string[] | undefined;
        /** Several authorization servers, in place of `issuer`, `jwksUrl`, `algorithms` and `introspection`. @default one */
        readonly issuers?: readonly ServeIssuerConfig[] | undefined;
        /** How the issuer is asked about tokens that are not signed, and without `jwksUrl` about all. @default such tokens are refused */
        readonly introspection?: TokenIntrospection | undefined;
        /** How tokens that are bound to a key are checked. @default they are, and others are taken too */
        readonly dpop?: DpopAuth | undefined;
      }
    | undefined;
}

/** One of several authorization servers whose tokens are believed. */
export interface ServeIssuerConfig {
  readonly issuer: string;
  /** @default where the metadata of the issuer says */
  readonly jwksUrl?: string | undefined;
  readonly algorithms?: readonly string[] | undefined;
  /** @default tokens that are not signed are refused */
  readonly introspection?: TokenIntrospection | undefined;
}

/** One token and what its holder may do. */
export interface ServeTokenConfig {
  /** Best a reference; at least 16 characters. */
  readonly token: string;
  readonly scopes?: readonly string[] | undefined;
  readonly tier?: Tier | undefined;
  /** How results are written for this holder. @default that of `serve` */
  readonly format?: FormatName | undefined;
}

/** The message bus: operations of others are mounted, and ours served, beyond this process. */
export interface BusConfig {
  /** Addresses of NATS servers. */
  readonly nats: string | readonly string[];
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  readonly token?: string | undefined;
  /** Text of a credentials file, as `nsc` makes it: best `${file:waybill.creds}`. @default none */
  readonly credentials?: string | undefined;
  /** Seed of an NKey, best a reference. @default none */
  readonly nkey?: string | undefined;
  /** Certificates, as PEM: best references to files. An address that begins with `tls://` is encrypted without them too. @default those of Node */
  readonly tls?: BusTlsConfig | undefined;
  /** What the subjects of replies begin with; one for each user where permissions keep users apart. @default "_INBOX" */
  readonly inboxPrefix?: string | undefined;
  /**
   * Shared with all who may vouch for callers, best a reference; at least 32 characters. Calls of mounted operations say who is asking, signed
   * with it, and calls of ours are believed when they are. @default callers with an identity cannot use the bus, those on it are anonymous
   */
  readonly secret?: string | undefined;
  /** Serves the gateway's operations on the bus, under this name. @default they are not */
  readonly serveAs?: string | undefined;
  /** Mounts operations of these namespaces, or all. @default none */
  readonly mount?: readonly string[] | boolean | undefined;
  /** Passes on what sources of other services said when they failed, in `details.said`. @default true */
  readonly said?: boolean | undefined;
  readonly policy?: SourcePolicy | undefined;
}

/** How a broker is trusted, and how it knows this side by a certificate. */
export interface BusTlsConfig {
  /** Who issues certificates of brokers. @default those Node trusts */
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/** What outlives a call: idempotency keys and their answers. */
export interface StateConfig {
  /**
   * Where it is kept: in this process, in a folder that belongs to one process and survives its end, or at the broker of `bus` for all replicas.
   * @default "nats" with a `bus` whose broker has JetStream, else "memory"
   */
  readonly store?: "memory" | "nats" | { readonly files: string } | undefined;
  /** What becomes of what replicas share while the store cannot be reached; one word holds for all of it. */
  readonly lost?: "refuse" | "alone" | StateLostConfig | undefined;
  /** Copies in a cluster of brokers, 1 to 5; counts when the stream is made. @default 1 */
  readonly copies?: number | undefined;
}

/** What is done without the store that replicas share, for each thing that has a choice. */
export interface StateLostConfig {
  /** Calls with an idempotency key: they are refused, or run with a key that this replica alone knows. @default "refuse" */
  readonly keys?: "refuse" | "alone" | undefined;
  /** Calls under a rate or concurrency: those beyond what is leased are refused, or this replica counts for itself. @default "alone" */
  readonly limits?: "refuse" | "alone" | undefined;
}

/** Calls that are answered later, and how much of them is kept, where `state` says. */
export interface TasksConfig {
  /** Milliseconds after which a call that still runs becomes a task; durable operations are tasks at once. @default 30_000 */
  readonly afterMs?: number | undefined;
  /** Milliseconds that a task is kept from its beginning, and may run; at most a week. @default 86_400_000 */
  readonly keepMs?: number | undefined;
  /** Milliseconds between two looks, as clients are told. @default 1_000 */
  readonly pollMs?: number | undefined;
  /** Tasks that run in one gateway. @default 1_000 */
  readonly running?: number | undefined;
  /** Tasks that are kept, of all replicas. @default 10_000 */
  readonly tasks?: number | undefined;
  /** Tasks of one caller. @default 1_000 */
  readonly ownTasks?: number | undefined;
  /** Bytes of results that are kept. @default 134_217_728 */
  readonly bytes?: number | undefined;
  /** Bytes of results of one caller. @default 33_554_432 */
  readonly ownBytes?: number | undefined;
  /** Bytes of one result. @default 8_388_608 */
  readonly resultBytes?: number | undefined;
}

/** Bounds of the gateway as a whole. */
export interface GatewayLimits {
  /** Calls that run at a time; one more is `RESOURCE_EXHAUSTED`. @default 10_000 */
  readonly calls?: number | undefined;
  /** Bytes of one request's body. @default 4_194_304 */
  readonly bodyBytes?: number | undefined;
  /** The longest time a caller over HTTP may ask for, in milliseconds. @default 60_000 */
  readonly timeoutMs?: number | undefined;
  /** Results of read-only operations that are kept. @default 10_000 */
  readonly cacheEntries?: number | undefined;
  /** Characters of those results, written as JSON. @default 67_108_864 */
  readonly cacheCharacters?: number | undefined;
  /** Results kept for idempotency keys. @default 10_000 */
  readonly idempotencyKeys?: number | undefined;
  /** Calls that wait for their turn under a rate or concurrency limit. @default 10_000 */
  readonly queue?: number | undefined;
  /** Requests for approval that wait, or were approved and are not used yet. @default 1_000 */
  readonly approvals?: number | undefined;
}

/** What is logged; always to stderr. */
export interface LogConfig {
  /** @default "info" */
  readonly level?: "debug" | "info" | "warn" | "error" | "silent" | undefined;
  /** @default lines for people on a terminal, JSON otherwise */
  readonly format?: "json" | "text" | undefined;
}

/** Returns the config as it is; helps editors and the type checker. */
export function defineConfig(config: GatewayConfig): GatewayConfig {
  return config;
}
