import type { Tier } from "../../core/operation/operation-types.ts";
import type { FormatName } from "../../formats/index.ts";
import type { OpenApiOverlay } from "../../openapi/index.ts";
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
  /** Policies by pattern of operation id, such as `"github.*"`; of several that fit, later ones win field by field. @default none */
  readonly policies?: Readonly<Record<string, OperationPolicy>> | undefined;
  readonly limits?: GatewayLimits | undefined;
  readonly log?: LogConfig | undefined;
  /** Refuses tools of MCP servers that are not as approved in the lock file (`true` for `waybill.lock.json`). @default false */
  readonly lock?: boolean | string | undefined;
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
  /** The gateway's own credentials at the server's authorization server (client credentials). @default none */
  readonly oauth?:
    | {
        readonly clientId: string;
        readonly clientSecret?: string | undefined;
        /** The authorization server that knows the client; needed with a secret, which no other is shown. */
        readonly issuer?: string | undefined;
        readonly scope?: string | undefined;
      }
    | undefined;
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

/** A credential of an HTTP API: a key or token, a name and a password, or how tokens are had. */
export type OpenApiCredential =
  | string
  | { readonly username: string; readonly password: string }
  | {
      readonly clientId: string;
      readonly clientSecret?: string | undefined;
      readonly refreshToken?: string | undefined;
      readonly tokenUrl?: string | undefined;
      readonly scopes?: readonly string[] | undefined;
    };

/** One HTTP API with an OpenAPI document. */
export interface OpenApiConfig {
  /** A path beside the config, or a URL. */
  readonly document: string;
  /** Where the API is, in place of what the document says. */
  readonly baseUrl?: string | undefined;
  readonly server?: number | string | undefined;
  readonly serverVariables?: Readonly<Record<string, string>> | undefined;
  /** By the name of the scheme, or by kind: `bearer`, `basic`, `apiKey`, `oauth2`. @default none */
  readonly auth?: Readonly<Record<string, OpenApiCredential>> | undefined;
  readonly authOrigins?: readonly string[] | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Hosts whose addresses may be private: `host:port`, `host` for ports 80 and 443, `host:*`; or `true` for all. @default only those the config names */
  readonly allowPrivate?: readonly string[] | boolean | undefined;
  readonly overlay?: OpenApiOverlay | readonly OpenApiOverlay[] | undefined;
  /** Sends trace context on. @default false */
  readonly trace?: boolean | undefined;
  /** Keeps ids that Waybill serves: only for gateways you trust to name them. @default false */
  readonly keepIds?: boolean | undefined;
  /** @default false */
  readonly disabled?: boolean | undefined;
  /** Passes on what the source said when it failed, in `details.said`. @default true */
  readonly said?: boolean | undefined;
  /** Masks the credentials of the source, from 16 characters on, in its results too. @default true */
  readonly maskResults?: boolean | undefined;
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
        /** Where its keys are published. */
        readonly jwksUrl: string;
        readonly issuer?: string | readonly string[] | undefined;
        readonly algorithms?: readonly string[] | undefined;
        readonly requiredScopes?: readonly string[] | undefined;
      }
    | undefined;
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
