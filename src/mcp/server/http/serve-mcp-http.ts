import { isCallError } from "../../../core/errors/errors.ts";
import { checkOption, checkOptionsObject, completeLimits } from "../../../core/options/check-options.ts";
import { splitLimits } from "../../../core/options/shared-options.ts";
import { checkAuthentication, type HttpAuthenticationOptions } from "../../../http/authentication.ts";
import type { CorsRules, HostGuardOptions } from "../../../http/host-guard.ts";
import {
  checkListenOptions,
  type HttpListener,
  LISTEN_LIMITS,
  LISTEN_OPTIONS,
  type Listened,
  type ListenLimits,
  type ListenOptions,
  listenHttp,
} from "../../../http/listen.ts";
import type { McpServer } from "../mcp-server.ts";
import type { McpServerOptions } from "../mcp-server-options.ts";
import { toServed } from "../to-mcp-server.ts";
import { type ServedExecutor, showBound } from "../tools/served-tools.ts";
import type { SessionEventLimits } from "./http-session-events.ts";
import { createMcpEndpoint, type McpEndpoint } from "./mcp-endpoint.ts";

/** Where and how an MCP endpoint listens. */
export interface ServeMcpHttpOptions
  extends Omit<McpHandlerOptions, "limits">,
    Omit<ListenOptions, "limits"> {
  /** @default "/mcp" */
  readonly path?: string | undefined;
  /** @default those of each */
  readonly limits?: (McpHandlerLimits & ListenLimits) | undefined;
}

/** An MCP endpoint that listens. */
export interface McpHttpServer extends Pick<HttpListener, "port" | "close"> {
  readonly url: string;
}

/**
 * Serves operations, or a server made by `toMcpServer`, over HTTP. An address beyond this machine needs `auth` or `authenticate`, or else it is
 * a `TypeError`.
 */
export async function serveMcpHttp(server: McpServer, options?: ServeMcpHttpOptions): Promise<McpHttpServer>;
export async function serveMcpHttp(
  executor: ServedExecutor,
  options?: ServeMcpHttpOptions & McpServerOptions,
): Promise<McpHttpServer>;
export async function serveMcpHttp(
  served: McpServer | ServedExecutor,
  given: ServeMcpHttpOptions = {},
): Promise<McpHttpServer> {
  const { server, own, closeServer } = toServed(served, given, { by: "serveMcpHttp", names: NAMES });
  checkMcpHandlerOptions(own, { options: [...LISTEN_OPTIONS, "path"], limits: LISTEN_LIMITS });
  const { port, host, unsafeOpen, path = "/mcp", limits, ...handling } = own;
  const split = splitLimits<ListenLimits, McpHandlerLimits>(limits, LISTEN_LIMITS);
  const listening = { port, host, unsafeOpen, limits: split.own };
  checkOption("path", path, "a string", typeof path === "string");
  if (!path.startsWith("/")) throw new TypeError('path must begin with "/".');
  const isAuthenticated = own.auth !== undefined || own.authenticate !== undefined;
  checkListenOptions(listening, isAuthenticated);
  const handler = createMcpEndpoint(server, { ...handling, limits: split.rest }, { path, closeServer });
  const warn = own.onWarning ?? ((message, cause) => console.warn(message, cause));
  const onRequest = createListener(handler, warn);
  const onClose = (timeoutMs: number) => handler.close({ timeoutMs });
  const listener = await listenHttp({ onRequest, onClose }, listening);
  return {
    url: listener.origin + path,
    port: listener.port,
    close: (closing) => listener.close(closing),
  };
}

function createListener(
  handler: McpEndpoint,
  warn: (message: string, cause: unknown) => void,
): Listened["onRequest"] {
  return (request) => {
    handler
      .handle(request)
      .then((answer) => request.send(answer))
      .catch((thrown) => {
        // A reader that was too slow is no fault of this side.
        if (!isCallError(thrown)) warn("An answer could not be sent.", thrown);
        request.response.destroy();
      });
  };
}

/** Bounds of an MCP endpoint over HTTP. */
export interface McpHandlerLimits extends SessionEventLimits {
  /** Bytes of one posted body. @default 4_194_304 */
  readonly bodyBytes?: number | undefined;
  /**
   * Requests that are answered at a time, or whose answers their clients have not read yet, and as many again whose bodies are being read;
   * one more is refused. While others ask, one caller has three quarters. @default 10_000
   */
  readonly calls?: number | undefined;
  /** Sessions of 2025 clients; those that have been idle for longest make room. @default 1_000 */
  readonly sessions?: number | undefined;
  /** How long a session is kept when nothing runs in it and no stream is open, in milliseconds. @default 1_800_000 */
  readonly sessionIdleMs?: number | undefined;
  /** How long the id of a session is good for at replicas that share a `sessionKey`, in milliseconds. @default 86_400_000 */
  readonly sessionLifetimeMs?: number | undefined;
  /** Requests of one session that run at a time. @default 1_000 */
  readonly sessionRequests?: number | undefined;
  /** Streams of changes (`subscriptions/listen`) that 2026-07-28 clients hold open; a caller with an identity has a quarter. @default 1_000 */
  readonly subscriptions?: number | undefined;
  /** Bytes a reader of a stream may be behind when more is to be sent. @default 4_194_304 */
  readonly streamBytes?: number | undefined;
}

/** How an MCP endpoint over HTTP is reached, by whom, and within which bounds. */
export interface McpHandlerOptions extends HostGuardOptions, HttpAuthenticationOptions {
  /** @default those of each */
  readonly limits?: McpHandlerLimits | undefined;
  /** Hears of faults of this side, which clients are told nothing about. @default console.warn */
  readonly onWarning?: ((message: string, cause?: unknown) => void) | undefined;
}

const DEFAULTS = {
  bodyBytes: 4_194_304,
  calls: 10_000,
  sessions: 1_000,
  sessionIdleMs: 1_800_000,
  sessionLifetimeMs: 86_400_000,
  sessionRequests: 1_000,
  subscriptions: 1_000,
  streamBytes: 4_194_304,
} as const satisfies Required<Omit<McpHandlerLimits, keyof SessionEventLimits>>;

/** Names of the options of a handler. */
export const MCP_HANDLER_OPTIONS = Object.keys({
  hosts: true,
  origins: true,
  auth: true,
  authenticate: true,
  limits: true,
  onWarning: true,
} satisfies Record<keyof McpHandlerOptions, true>) as (keyof McpHandlerOptions)[];

const NAMES: readonly (keyof ServeMcpHttpOptions)[] = [
  ...MCP_HANDLER_OPTIONS,
  ...(LISTEN_OPTIONS as (keyof ListenOptions)[]),
  "path",
];

const LIMITS: readonly string[] = Object.keys({
  ...DEFAULTS,
  events: true,
  eventBytes: true,
  allEventBytes: true,
} satisfies Record<keyof McpHandlerLimits, unknown>);

/** Throws a `TypeError` for options that cannot work, or are none; `more` are the names that a caller adds, among options and limits. */
export function checkMcpHandlerOptions(
  options: McpHandlerOptions,
  more: { readonly options?: readonly string[]; readonly limits?: readonly string[] } = {},
): void {
  checkOptionsObject(options, [...MCP_HANDLER_OPTIONS, ...(more.options ?? [])]);
  const { limits, onWarning } = options;
  if (limits !== undefined) checkOptionsObject(limits, [...LIMITS, ...(more.limits ?? [])], "limits.");
  checkAuthentication(options);
  checkOption("onWarning", onWarning, "a function", typeof onWarning === "function");
}

/** Reads the bounds of a handler; one that is not a whole number above 0 is a `TypeError`. */
export function readMcpHandlerBounds(
  limits: McpHandlerLimits | undefined,
): Readonly<Record<keyof typeof DEFAULTS, number>> {
  return completeLimits(
    DEFAULTS,
    limits,
    (value) => `must be a whole number, 1 or more; it is ${showBound(value)}`,
  );
}

const PARAM_HEADER = /^mcp-param-[a-z0-9!#$%&'*+.^_`|~-]{1,128}$/;

/** What web pages may send to an MCP endpoint, and read of its responses. */
export const MCP_CORS: CorsRules = {
  methods: ["GET", "POST", "DELETE"],
  requestHeaders: [
    "accept",
    "authorization",
    "content-type",
    "dpop",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
  ],
  isRequestHeader: (name) => PARAM_HEADER.test(name),
  exposedHeaders: ["mcp-session-id", "www-authenticate", "dpop-nonce", "retry-after"],
};
