import { type Identity, ownerOf } from "../../core/access/identity.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { addAbortListener, LightSignal, removeAbortListener } from "../../core/execution/abort-listeners.ts";
import { isTextTooDeep } from "../../core/json/json-depth.ts";
import { parseJsonText } from "../../core/json/json-text.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { CallSlots } from "../../core/limits/call-slots.ts";
import { createAuthentication } from "../../http/authentication.ts";
import { EVENT_STREAM_HEADERS, EventStream } from "../../http/event-stream.ts";
import type { HttpAnswer, HttpRequest } from "../../http/exchange.ts";
import { whenExpired } from "../../http/expiry.ts";
import { FetchRequest, toResponse } from "../../http/fetch-exchange.ts";
import { createHostGuard } from "../../http/host-guard.ts";
import { NO_SNIFFING } from "../../http/listen.ts";
import {
  type RequestId,
  RPC_CODES,
  type RpcRequest,
  toRpcError,
  writeCall,
  writeFailure,
  writeResult,
} from "../protocol/messages.ts";
import { isModernRevision } from "../protocol/revisions.ts";
import { ChangeStream } from "./change-stream.ts";
import { checkServer } from "./check-server-options.ts";
import { classify } from "./classify-request.ts";
import { MCP_CORS } from "./http-cors.ts";
import { checkHandlerOptions, type McpHandlerOptions, readHandlerBounds } from "./http-handler-options.ts";
import { refuse, refuseFor, requestIdOf } from "./http-refusal.ts";
import { readEventBounds } from "./http-session-events.ts";
import { HttpSessions } from "./http-sessions.ts";
import type { AskingIdentity, McpServer, ServedMcp } from "./mcp-server.ts";
import { Peer } from "./peer.ts";
import { toProtocolError } from "./protocol-errors.ts";

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

/** An MCP endpoint, for 2025 and 2026-07-28 clients alike. */
export interface McpHandler {
  /** Answers a request of the platform. */
  fetch(request: Request, info?: McpRequestInfo): Promise<Response>;
  /** Refuses what is new, ends open streams, waits for what runs and ends it after `timeoutMs`. */
  close(options?: CloseOptions): Promise<void>;
}

/** The same for servers of our own, which make no objects of the platform for each request. */
export interface McpEndpoint extends McpHandler {
  handle(request: HttpRequest, info?: McpRequestInfo): Promise<HttpAnswer>;
}

/** How long what still runs is waited for. */
export interface CloseOptions {
  /** @default 0 */
  readonly timeoutMs?: number | undefined;
}

interface Asked {
  readonly request: HttpRequest;
  readonly body?: unknown;
  readonly identity: Identity | undefined;
}

const METHODS = ["GET", "POST", "DELETE"];
const FORBIDDEN = ["TRACE", "TRACK", "CONNECT"];
const JSON_TYPE = { "content-type": "application/json" } as const;
const FAULT = "An MCP request over HTTP failed unexpectedly.";
/** Of all streams of changes, one caller has the fourth part. */
const STREAM_SHARES = 4;
/** How long answers to calls that were given up may take to be written, in milliseconds. */
const LAST_MS = 200;
/** From this size on, the depth is looked at before the text is parsed: parsing deep text takes a hundred times as long. */
const LARGE_BYTES = 65_536;
/** The byte order mark that some clients begin a text with. */
const BOM = 0xfeff;

/** Creates an MCP endpoint; put it behind any server that speaks `Request` and `Response`, or use `serveMcpHttp`. */
export function createMcpHandler(server: McpServer, options: McpHandlerOptions = {}): McpHandler {
  return createMcpEndpoint(server, options);
}

/** Creates an MCP endpoint for servers of our own too; with a `path`, there is nothing at any other. */
export function createMcpEndpoint(
  server: McpServer,
  options: McpHandlerOptions = {},
  path?: string,
): McpEndpoint {
  checkServer(server, "createMcpHandler");
  checkHandlerOptions(options);
  return new HttpHandler(server as ServedMcp, options, path);
}

class HttpHandler implements McpEndpoint {
  readonly #server: ServedMcp;
  readonly #path: string | undefined;
  readonly #guard: ReturnType<typeof createHostGuard>;
  readonly #authentication: ReturnType<typeof createAuthentication>;
  readonly #bounds: ReturnType<typeof readHandlerBounds>;
  readonly #warn: (message: string, cause?: unknown) => void;
  readonly #sessions: HttpSessions;
  /** Streams of changes, with the name of whoever reads each. */
  readonly #streams = new Map<ChangeStream, string>();
  /** Requests that are answered, or whose answers are not sent yet. */
  readonly #calls: CallSlots;
  /** Requests whose bodies are being read: the answer to a question must get through while the call that asks holds its slot. */
  readonly #bodies: CallSlots;
  #running = 0;
  #closing: Promise<void> | undefined;

  constructor(server: ServedMcp, options: McpHandlerOptions, path: string | undefined) {
    this.#server = server;
    this.#path = path;
    this.#guard = createHostGuard(options, MCP_CORS);
    this.#authentication = createAuthentication(options);
    this.#bounds = readHandlerBounds(options);
    this.#calls = new CallSlots(this.#bounds, true);
    this.#bodies = new CallSlots(this.#bounds, true);
    this.#warn = options.onWarning ?? ((message, cause) => console.warn(message, cause));
    this.#sessions = new HttpSessions(server, { ...this.#bounds, ...readEventBounds(options) });
  }

  async fetch(request: Request, info: McpRequestInfo = {}): Promise<Response> {
    const response = toResponse(await this.handle(new FetchRequest(request), info), request.method);
    response.headers.set(...NO_SNIFFING);
    return response;
  }

  async handle(request: HttpRequest, info: McpRequestInfo = {}): Promise<HttpAnswer> {
    if (this.#closing !== undefined || this.#server.isClosed) {
      return refuse(503, "The server is closing.", { headers: { connection: "close" } });
    }
    const refusal = this.#guard.check(request);
    if (refusal !== undefined) return refuseFor(refusal);
    this.#running += 1;
    try {
      const answer = await this.#admit(request, info);
      const cors = this.#guard.corsHeaders(request);
      return cors === undefined ? answer : { ...answer, headers: { ...answer.headers, ...cors } };
    } catch (thrown) {
      this.#warn(FAULT, thrown);
      return refuse(500, "The server failed unexpectedly.", { code: RPC_CODES.internalError });
    } finally {
      this.#running -= 1;
    }
  }

  close({ timeoutMs = 0 }: CloseOptions = {}): Promise<void> {
    this.#closing ??= this.#close(timeoutMs);
    return this.#closing;
  }

  #admit(request: HttpRequest, info: McpRequestInfo): Promise<HttpAnswer> | HttpAnswer {
    const described = this.#authentication.describe(request);
    if (this.#path !== undefined && request.path !== this.#path && described === undefined) {
      return refuse(404, `There is nothing here; the endpoint is ${this.#path}.`);
    }
    const preflight = request.method === "OPTIONS" ? this.#guard.preflight(request) : undefined;
    if (preflight !== undefined) return preflight;
    if (described !== undefined) {
      return "refusal" in described ? refuseFor(described.refusal) : described.answer;
    }
    // Nobody can be asked about a method that requests of the platform do not have.
    if (FORBIDDEN.includes(request.method)) return refuseMethod(METHODS);
    if (info.identity !== undefined) return this.#admitted(request, info.identity, info);
    if (this.#authentication.decides) return this.#authenticate(request, info);
    return this.#admitted(request, "identity" in info ? "anonymous" : undefined, info);
  }

  async #authenticate(request: HttpRequest, info: McpRequestInfo): Promise<HttpAnswer> {
    const who = await this.#authentication.identify(request);
    if ("refusal" in who) return refuseFor(who.refusal);
    return await this.#admitted(request, who.identity ?? "anonymous", info);
  }

  #admitted(
    request: HttpRequest,
    asking: AskingIdentity,
    info: McpRequestInfo,
  ): Promise<HttpAnswer> | HttpAnswer {
    if (!METHODS.includes(request.method)) return refuseMethod(METHODS);
    const identity = this.#server.identify(asking);
    if (identity !== undefined) request.owner = ownerOf(identity);
    return request.method === "POST"
      ? this.#post(request, identity, info)
      : this.#session({ request, identity });
  }

  async #post(
    request: HttpRequest,
    identity: Identity | undefined,
    info: McpRequestInfo,
  ): Promise<HttpAnswer> {
    if (!isJsonType(request.header("content-type"))) {
      return refuse(415, "The body must be JSON, and the Content-Type application/json.");
    }
    const owner = ownerOf(identity);
    let bytes: Uint8Array;
    try {
      this.#bodies.take(owner);
    } catch (thrown) {
      return refuseCall(thrown, null);
    }
    try {
      bytes = await request.body(this.#bounds.bodyBytes);
    } catch (thrown) {
      return refuseUnread(thrown, this.#bounds.bodyBytes);
    } finally {
      this.#bodies.giveBack(owner);
    }
    const body = parseBody(bytes);
    if (body === undefined) {
      const message = "The body of the request is not JSON, or it is nested too deeply.";
      return refuse(400, message, { code: RPC_CODES.parseError });
    }
    if (info.isCurrent?.() === false) {
      return refuse(401, "Who may call has changed meanwhile; ask again.", {
        headers: { "www-authenticate": "Bearer" },
      });
    }
    if (!isCall(body)) return await this.#answer(request, identity, body);
    try {
      this.#calls.take(owner);
    } catch (thrown) {
      return refuseCall(thrown, requestIdOf(body));
    }
    try {
      return await this.#answer(request, identity, body);
    } finally {
      const done = (): void => this.#calls.giveBack(owner);
      if (request.onSent === undefined) done();
      else request.onSent(done);
    }
  }

  async #answer(request: HttpRequest, identity: Identity | undefined, body: unknown): Promise<HttpAnswer> {
    const found = classify(body, request);
    switch (found.kind) {
      case "legacy":
        return await this.#session({ request, body, identity });
      case "refused":
        return refuse(400, found.error.message, { ...found.error.toJSON(), id: requestIdOf(body) });
      case "notification":
        return { status: 202, headers: {}, body: undefined };
      case "modern":
        return await this.#modern(found.message, request, identity);
    }
  }

  #session(asked: Asked): Promise<HttpAnswer> | HttpAnswer {
    const { request, body } = asked;
    const isModern = isModernRevision(request.header("mcp-protocol-version") ?? "");
    if (body === undefined && request.header("mcp-session-id") === undefined && isModern) {
      return refuseMethod(["POST"]);
    }
    return this.#sessions.serve(asked);
  }

  /** Answers one request of a 2026-07-28 client: with JSON, or with a stream where something has to go first. */
  #modern(message: RpcRequest, request: HttpRequest, identity: Identity | undefined): Promise<HttpAnswer> {
    if (message.method === "subscriptions/listen") return this.#listen(message, request, identity);
    const { id, method, params = {} } = message;
    const signal = new LightSignal();
    const leave = {
      onAbort: () => signal.abort(new CallError("ABORTED", "The caller left.", { stack: false })),
    };
    if (request.signal.aborted) leave.onAbort();
    else addAbortListener(request.signal, leave);
    return new Promise((resolve) => {
      let stream: EventStream | undefined;
      const notify = (name: string, given: object): void => {
        if (stream === undefined) {
          stream = new EventStream({
            maxBytes: this.#bounds.streamBytes,
            onEnd: (end) => {
              this.#running -= 1;
              if (end === "left") leave.onAbort();
            },
          });
          this.#running += 1;
          resolve({ status: 200, headers: { ...EVENT_STREAM_HEADERS }, body: stream });
        }
        stream.push(toEvent(writeCall(name, given)));
      };
      const finish = (text: string, status: number): void => {
        removeAbortListener(request.signal, leave);
        if (stream === undefined) resolve({ status, headers: { ...JSON_TYPE }, body: text });
        stream?.push(toEvent(text));
        stream?.end();
      };
      const peer = new Peer({ era: "modern", identity });
      const incoming = {
        id,
        method,
        params,
        signal: signal as unknown as AbortSignal,
        identity,
        abort: (reason: unknown) => signal.abort(reason),
        header: (name: string) => request.header(name),
        notify,
      };
      this.#server.answer(peer, incoming).then(
        (result) => finish(writeResult(id, result), 200),
        (thrown) => {
          const error = toRpcError(thrown);
          finish(writeFailure(id, error), STATUS[error.code] ?? 200);
        },
      );
    });
  }

  /** Opens a stream of changes. */
  async #listen(
    message: RpcRequest,
    request: HttpRequest,
    identity: Identity | undefined,
  ): Promise<HttpAnswer> {
    const owner = ownerOf(identity);
    if (!this.#hasRoom(identity)) {
      const error = { code: RPC_CODES.internalError, message: "Subscription limit reached" };
      return { status: 200, headers: { ...JSON_TYPE }, body: writeFailure(message.id, error) };
    }
    const leave = { onAbort: () => changes.drop() };
    const gone = (): void => {
      cancelExpiry();
      removeAbortListener(request.signal, leave);
      this.#streams.delete(changes);
      changes.drop();
    };
    const stream = new EventStream({ maxBytes: this.#bounds.streamBytes, onEnd: gone });
    let changes: ChangeStream;
    try {
      changes = new ChangeStream(this.#server, message, {
        identity,
        send: (text) => stream.push(toEvent(text)),
        onEnd: () => stream.end(),
      });
    } catch (thrown) {
      return refuse(400, toRpcError(thrown).message, { code: toRpcError(thrown).code, id: message.id });
    }
    const cancelExpiry = whenExpired(identity, () => changes.end());
    this.#streams.set(changes, owner);
    if (request.signal.aborted) gone();
    else addAbortListener(request.signal, leave);
    await changes.open();
    return { status: 200, headers: { ...EVENT_STREAM_HEADERS }, body: stream };
  }

  /** Where callers say who they are, one of them may have a quarter of all streams. */
  #hasRoom(identity: Identity | undefined): boolean {
    const { subscriptions } = this.#bounds;
    if (this.#streams.size >= subscriptions) return false;
    if (identity === undefined) return true;
    const owner = ownerOf(identity);
    let own = 0;
    for (const one of this.#streams.values()) if (one === owner) own += 1;
    return own < Math.ceil(subscriptions / STREAM_SHARES);
  }

  async #untilIdle(timeoutMs: number): Promise<void> {
    const until = performance.now() + timeoutMs;
    while (this.#running + this.#sessions.running > 0 && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async #close(timeoutMs: number): Promise<void> {
    for (const stream of [...this.#streams.keys()]) stream.end();
    this.#sessions.endStreams();
    await this.#untilIdle(timeoutMs);
    this.#server.giveUpCalls();
    await this.#untilIdle(LAST_MS);
    this.#sessions.close();
  }
}

/** The HTTP statuses of errors that the protocol gives one; all others are answers like any other. */
const STATUS: Readonly<Record<number, number>> = {
  [RPC_CODES.methodNotFound]: 404,
  [RPC_CODES.missingCapability]: 400,
  [RPC_CODES.headerMismatch]: 400,
};

function refuseMethod(allowed: readonly string[]): HttpAnswer {
  return refuse(405, "This HTTP method is not allowed here.", { headers: { allow: allowed.join(", ") } });
}

/** Refuses for want of a slot: as the answer to a request where its id is known, so that clients can say why. */
function refuseCall(thrown: unknown, id: RequestId | null): HttpAnswer {
  if (!isCallError(thrown)) throw thrown;
  if (id === null) return refuse(429, thrown.message, { headers: { "retry-after": "1" } });
  const { code, message, data } = toProtocolError(thrown, () => {});
  return { status: 200, headers: { ...JSON_TYPE }, body: writeFailure(id, { code, message, data }) };
}

/** Tells whether a body asks for something that holds a slot; streams of changes are counted by themselves. */
function isCall(body: unknown): boolean {
  if (Array.isArray(body)) return body.some(isCall);
  const isStream = isPlainObject(body) && body["method"] === "subscriptions/listen";
  return requestIdOf(body) !== null && !isStream;
}

function isJsonType(type: string | undefined): boolean {
  if (type === "application/json") return true;
  const [essence = "", ...rest] = (type ?? "").split(";");
  return essence.trim().toLowerCase() === "application/json" && !rest.some((part) => part.includes(","));
}

/** Says why a body was not read: one that is too long is refused before it has been read, or as soon as that shows. */
function refuseUnread(thrown: unknown, maxBytes: number): HttpAnswer {
  const isLong = isCallError(thrown) && thrown.code === "TOO_LARGE";
  if (isLong) return refuse(413, `The body of the request is longer than ${maxBytes} bytes.`);
  return refuse(400, "The body of the request could not be read.", { code: RPC_CODES.parseError });
}

/** A posted body as JSON; nothing where it is none, or nested too deeply. */
function parseBody(bytes: Uint8Array): unknown {
  try {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
    if (bytes.length >= LARGE_BYTES && isTextTooDeep(text)) return undefined;
    return parseJsonText(text.charCodeAt(0) === BOM ? text.slice(1) : text);
  } catch {
    return undefined;
  }
}

function toEvent(json: string): string {
  return `event: message\ndata: ${json}\n\n`;
}
