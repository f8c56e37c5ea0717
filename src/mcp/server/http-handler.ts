import {
  type AuthInfo,
  classifyInboundRequest,
  createMcpHandler as createSdkHandler,
  isJsonContentType,
  type McpHttpHandler,
  type McpRequestContext,
  type Server,
} from "@modelcontextprotocol/server";
import type { Identity } from "../../core/access/identity.ts";
import { createAuthentication } from "../../http/authentication.ts";
import { createHostGuard } from "../../http/host-guard.ts";
import { NO_SNIFFING } from "../../http/listen.ts";
import { checkServer } from "./check-server-options.ts";
import { readPostedBody } from "./http-body.ts";
import { MCP_CORS } from "./http-cors.ts";
import { checkHandlerOptions, type McpHandlerOptions, readHandlerBounds } from "./http-handler-options.ts";
import { withParamStatus } from "./http-params.ts";
import { createRefusal, requestIdOf } from "./http-refusal.ts";
import { readEventBounds } from "./http-session-events.ts";
import { HttpSessions } from "./http-sessions.ts";
import { isEventStream, watchStream, withBody } from "./http-stream.ts";
import type { McpPeer, McpServer } from "./mcp-server.ts";
import { withIdentity } from "./peer-identity.ts";
import { HeldResources, listenedResources, MAX_SUBSCRIPTIONS } from "./resource-subscriptions.ts";
import { spliced, splicedJsonOf } from "./spliced-list.ts";

/** What the host of a handler already knows about a request. */
export interface McpRequestInfo {
  /**
   * Who is asking; then `auth` and `authenticate` are not consulted. A host that says `undefined`, rather than nothing, says that
   * it is nobody: then the identity of the server's options is not used either.
   */
  readonly identity?: Identity | undefined;
  /** Tells whether they are still let in once their body has arrived. @default they are */
  readonly isCurrent?: (() => boolean) | undefined;
}

/** An MCP endpoint as a function from request to response, for 2025 and 2026-07-28 clients alike. */
export interface McpHandler {
  fetch(request: Request, info?: McpRequestInfo): Promise<Response>;
  /** Refuses what is new, ends open streams, waits for what runs and ends it after `timeoutMs`. */
  close(options?: CloseOptions): Promise<void>;
}

/** How long what still runs is waited for. */
export interface CloseOptions {
  /** @default 0 */
  readonly timeoutMs?: number | undefined;
}

interface Asked {
  readonly request: Request;
  readonly body?: unknown;
  readonly identity: McpPeer["identity"];
  readonly authInfo: AuthInfo | undefined;
}

const METHODS = ["GET", "POST", "DELETE"];
/** Stands for a caller who is known to be nobody. */
const NOBODY: AuthInfo = { token: "", clientId: "", scopes: [] };
const FAULT = "An MCP request over HTTP failed unexpectedly.";
/** How long answers to calls that were given up may take to be written, in milliseconds. */
const LAST_MS = 200;

const CREDENTIALS = ["authorization", "cookie", "proxy-authorization"];

/** Creates an MCP endpoint; put it behind any server that speaks `Request` and `Response`, or use `serveMcpHttp`. */
export function createMcpHandler(server: McpServer, options: McpHandlerOptions = {}): McpHandler {
  checkServer(server, "createMcpHandler");
  checkHandlerOptions(options);
  return new HttpHandler(server, options);
}

class HttpHandler implements McpHandler {
  readonly #server: McpServer;
  readonly #guard: ReturnType<typeof createHostGuard>;
  readonly #authentication: ReturnType<typeof createAuthentication>;
  readonly #bounds: ReturnType<typeof readHandlerBounds>;
  readonly #warn: (message: string, cause?: unknown) => void;
  readonly #sessions: HttpSessions;
  /** Streams of changes have a handler of their own, so that they can end before the calls do. */
  readonly #listens: McpHttpHandler;
  readonly #calls: McpHttpHandler;
  readonly #identities = new WeakMap<AuthInfo, Identity>();
  readonly #stopHearing: () => void;
  #running = 0;
  #closing: Promise<void> | undefined;

  constructor(server: McpServer, options: McpHandlerOptions) {
    this.#server = server;
    this.#guard = createHostGuard(options, MCP_CORS, createRefusal);
    this.#authentication = createAuthentication(options, createRefusal);
    this.#bounds = readHandlerBounds(options);
    this.#warn = options.onWarning ?? ((message, cause) => console.warn(message, cause));
    this.#sessions = new HttpSessions(server, { ...this.#bounds, ...readEventBounds(options) });
    const open = (context: McpRequestContext): Server => {
      const identity = context.authInfo && (this.#identities.get(context.authInfo) ?? "anonymous");
      try {
        return server.open({ era: "modern", identity, stays: false, splices: true });
      } catch (thrown) {
        // The SDK answers for it, and says nothing.
        this.#warn(FAULT, thrown);
        throw thrown;
      }
    };
    const { bodyBytes, subscriptions } = this.#bounds;
    const shared = { legacy: "reject", maxRequestBodySize: bodyBytes } as const;
    this.#listens = createSdkHandler(open, { ...shared, maxSubscriptions: subscriptions });
    this.#calls = createSdkHandler(open, shared);
    this.#stopHearing = server.onEvent((event) => this.#listens.bus.publish(event));
  }

  async fetch(request: Request, info: McpRequestInfo = {}): Promise<Response> {
    const response = await this.#answer(request, info);
    response.headers.set(...NO_SNIFFING);
    return response;
  }

  async #answer(request: Request, info: McpRequestInfo): Promise<Response> {
    if (this.#closing !== undefined || this.#server.isClosed === true) {
      return createRefusal(503, "The server is closing.", { headers: { connection: "close" } });
    }
    const refusal = this.#guard.check(request);
    if (refusal !== undefined) return refusal;
    this.#running += 1;
    try {
      return this.#guard.mark(request, await this.#admit(request, info));
    } catch (thrown) {
      this.#warn(FAULT, thrown);
      return createRefusal(500, "The server failed unexpectedly.", { code: -32_603 });
    } finally {
      this.#running -= 1;
    }
  }

  close({ timeoutMs = 0 }: CloseOptions = {}): Promise<void> {
    this.#closing ??= this.#close(timeoutMs);
    return this.#closing;
  }

  async #admit(request: Request, info: McpRequestInfo): Promise<Response> {
    const preflight = request.method === "OPTIONS" ? this.#guard.preflight(request) : undefined;
    const early = preflight ?? this.#authentication.describe(request);
    if (early !== undefined) return early;
    const known = info.identity && { identity: info.identity };
    const who = known ?? (await this.#authentication.identify(request));
    if ("refusal" in who) return who.refusal;
    if (!METHODS.includes(request.method)) return refuseMethod(METHODS);
    const isAnonymous = who.identity === undefined && (this.#authentication.decides || "identity" in info);
    const identity: McpPeer["identity"] = isAnonymous ? "anonymous" : who.identity;
    const authInfo = isAnonymous ? NOBODY : who.identity && this.#toAuthInfo(who.identity);
    const asked = { request: withoutCredentials(request), identity, authInfo };
    return request.method === "POST" ? this.#post(request, asked, info) : this.#session(asked);
  }

  async #post(posted: Request, { request, ...who }: Asked, info: McpRequestInfo): Promise<Response> {
    if (!isJsonContentType(request.headers.get("content-type"))) {
      return createRefusal(415, "The body must be JSON, and the Content-Type application/json.");
    }
    const read = await readPostedBody(posted, this.#bounds.bodyBytes);
    if ("refusal" in read) return read.refusal;
    if (info.isCurrent?.() === false) {
      return createRefusal(401, "Who may call has changed meanwhile; ask again.", {
        headers: { "www-authenticate": "Bearer" },
      });
    }
    const asked = { request, body: read.value, ...who };
    return isLegacy(request, read.value) ? this.#session(asked) : this.#modern(asked);
  }

  #session(asked: Asked): Promise<Response> | Response {
    const { headers } = asked.request;
    if (asked.body === undefined && !headers.has("mcp-session-id") && isModern(headers)) {
      return refuseMethod(["POST"]);
    }
    return this.#sessions.serve(asked);
  }

  async #modern(asked: Asked): Promise<Response> {
    const { request, body, authInfo } = asked;
    if ((body as { readonly method?: unknown } | null)?.method === "subscriptions/listen") {
      return this.#listen(asked);
    }
    const response = await this.#calls.fetch(request, { ...(authInfo && { authInfo }), parsedBody: body });
    const list = splicedJsonOf(request);
    // Lists that are text already are put in where the SDK has written a placeholder for them.
    if (list !== undefined) return withBody(response, spliced(await response.text(), list));
    if (response.body === null || !isEventStream(response)) return withParamStatus(request, response);
    this.#running += 1;
    const watched = watchStream(response.body, this.#bounds.streamBytes, () => {
      this.#running -= 1;
    });
    return withBody(response, watched);
  }

  /** Opens a stream of changes; the client hears of it when those who have the resources have been told. */
  async #listen({ request, body, identity, authInfo }: Asked): Promise<Response> {
    const uris = listenedResources(body);
    if (uris.length > MAX_SUBSCRIPTIONS) {
      const message = `At most ${MAX_SUBSCRIPTIONS} resources can be listened to in one stream.`;
      return createRefusal(400, message, { code: -32_602, id: requestIdOf(body) });
    }
    const response = await this.#listens.fetch(request, { ...(authInfo && { authInfo }), parsedBody: body });
    if (response.body === null || !isEventStream(response)) return response;
    const held = uris.length > 0 ? new HeldResources(this.#server, identity) : undefined;
    const watched = watchStream(response.body, this.#bounds.streamBytes, () => {
      held?.close().catch(() => {});
    });
    await held?.hold(uris);
    return withBody(response, watched);
  }

  /** The token itself is not in it: what a caller may do here is nobody else's to use. */
  #toAuthInfo(identity: Identity): AuthInfo {
    const { subject, scopes = [] } = identity;
    const authInfo: AuthInfo = { token: "", clientId: subject, scopes: [...scopes] };
    this.#identities.set(authInfo, identity);
    return withIdentity(authInfo, identity);
  }

  async #untilIdle(timeoutMs: number): Promise<void> {
    const until = performance.now() + timeoutMs;
    while (this.#running + this.#sessions.running > 0 && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async #close(timeoutMs: number): Promise<void> {
    this.#stopHearing();
    await this.#listens.close();
    this.#sessions.endStreams();
    await this.#untilIdle(timeoutMs);
    this.#server.giveUpCalls?.();
    await this.#untilIdle(LAST_MS);
    await Promise.allSettled([this.#calls.close(), this.#sessions.close()]);
  }
}

function refuseMethod(allowed: readonly string[]): Response {
  return createRefusal(405, "This HTTP method is not allowed here.", {
    headers: { allow: allowed.join(", ") },
  });
}

/** Tells whether a body is for a session. What names one and claims nothing else needs no closer look, which the SDK takes. */
function isLegacy(request: Request, body: unknown): boolean {
  if (request.headers.has("mcp-session-id") && !isModern(request.headers) && isUnclaimed(body)) return true;
  return classifyInboundRequest({ httpMethod: "POST", ...headersOf(request), body }).kind === "legacy";
}

/** Tells whether a single request says nothing about its revision. */
function isUnclaimed(body: unknown): boolean {
  const { jsonrpc, id, method, params } = (body ?? {}) as Readonly<Record<string, unknown>>;
  if (jsonrpc !== "2.0" || typeof id !== "number" || typeof method !== "string") return false;
  const { _meta } = (params ?? {}) as { readonly _meta?: unknown };
  return _meta === undefined;
}

function isModern(headers: Headers): boolean {
  return (headers.get("mcp-protocol-version") ?? "") >= "2026";
}

function headersOf({ headers }: Request): {
  protocolVersionHeader?: string;
  mcpMethodHeader?: string;
  mcpNameHeader?: string;
} {
  const [version, method, name] = [
    headers.get("mcp-protocol-version"),
    headers.get("mcp-method"),
    headers.get("mcp-name"),
  ];
  return {
    ...(version !== null && { protocolVersionHeader: version }),
    ...(method !== null && { mcpMethodHeader: method }),
    ...(name !== null && { mcpNameHeader: name }),
  };
}

/** Handlers see the request of the SDK: what authenticated the caller is taken out of it first. */
function withoutCredentials(request: Request): Request {
  if (!CREDENTIALS.some((name) => request.headers.has(name))) return request;
  const headers = new Headers(request.headers);
  for (const name of CREDENTIALS) headers.delete(name);
  return new Request(request.url, { method: request.method, headers, signal: request.signal });
}
