import { isUtf8 } from "node:buffer";
import { type Identity, ownerOf } from "../../../core/access/identity.ts";
import { CallError, isCallError } from "../../../core/errors/errors.ts";
import { addAbortListener, LightSignal, removeAbortListener } from "../../../core/execution/cancellation.ts";
import { isPlainObject, isTextTooDeep, parseJsonText } from "../../../core/json/json-value.ts";
import { CallSlots } from "../../../core/limits/call-slots.ts";
import { CLOSE_TIMEOUT_MS, type CloseOptions } from "../../../core/options/shared-options.ts";
import { createAuthentication, type StepUp } from "../../../http/authentication.ts";
import { whenExpired } from "../../../http/caller.ts";
import { EVENT_STREAM_HEADERS, EventStream } from "../../../http/event-stream.ts";
import type { HttpAnswer, HttpRequest, Refusal } from "../../../http/exchange.ts";
import { FetchRequest, toResponse } from "../../../http/fetch-exchange.ts";
import { createHostGuard } from "../../../http/host-guard.ts";
import { NO_SNIFFING } from "../../../http/listen.ts";
import {
  isRpcId,
  ProtocolError,
  type RequestId,
  RPC_CODES,
  type RpcNotification,
  type RpcRequest,
  toProtocolError,
  toRpcError,
  toRpcMessage,
  writeCall,
  writeFailure,
  writeResult,
} from "../../protocol/messages.ts";
import {
  claimedRevision,
  claimsRevision,
  decodeHeader,
  envelopeFault,
  isModernRequest,
  isModernRevision,
  MODERN_REVISIONS,
  methodTraits,
  missingKeys,
  unsupportedRevision,
} from "../../protocol/revisions.ts";
import { ChangeStream } from "../change-stream.ts";
import type { AskingIdentity, ChannelServer, McpServer } from "../mcp-server.ts";
import type { McpServerOptions } from "../mcp-server-options.ts";
import { Peer } from "../peer-request.ts";
import { HeldElsewhere } from "../suspended-calls.ts";
import { toServed } from "../to-mcp-server.ts";
import type { ServedExecutor } from "../tools/served-tools.ts";
import { readEventBounds } from "./http-session-events.ts";
import { type HttpSessionRequest, HttpSessions } from "./http-sessions.ts";
import {
  checkMcpHandlerOptions,
  MCP_CORS,
  MCP_HANDLER_OPTIONS,
  type McpHandlerOptions,
  readMcpHandlerBounds,
} from "./serve-mcp-http.ts";
import type { SessionEventLog } from "./session-event-log.ts";
import type { SessionNotes } from "./session-notes.ts";

/** What the host of a handler already knows about a request. */
export interface McpRequestInfo {
  /**
   * Who is asking; then `auth` and `authenticate` are not consulted. A host that says `undefined`, rather than nothing, says that
   * it is nobody: then the identity of the server's options is not used either.
   */
  readonly identity?: Identity | undefined;
  /** Tells whether they are still let in once their body has arrived. @default they are */
  readonly isCurrent?: (() => boolean) | undefined;
  /** Writes the `WWW-Authenticate` of a call whose caller lacks scopes. @default nothing is said about it */
  readonly stepUp?: StepUp | undefined;
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

const METHODS = ["GET", "POST", "DELETE"];
const FORBIDDEN = ["TRACE", "TRACK", "CONNECT"];
const JSON_TYPE = { "content-type": "application/json" } as const;
/** When to ask again, in seconds. */
const SOON = { "retry-after": "1" } as const;
const FAULT = "An MCP request over HTTP failed unexpectedly.";
/** Of all streams of changes, one caller has the fourth part. */
const STREAM_SHARES = 4;
/** How long answers to calls that were given up may take to be written, in milliseconds. */
const LAST_MS = 200;
/** From this size on, the depth is looked at before the text is parsed: parsing deep text takes a hundred times as long. */
const LARGE_BYTES = 65_536;
/** The byte order mark that some clients begin a text with. */
const BOM = 0xfeff;

/**
 * Creates an MCP endpoint; put it behind any server that speaks `Request` and `Response`, or use `serveMcpHttp`. A server of its own is made of
 * an executor, with the options of `toMcpServer`, and closes with the handler.
 */
export function createMcpHandler(server: McpServer, options?: McpHandlerOptions): McpHandler;
export function createMcpHandler(
  executor: ServedExecutor,
  options?: McpHandlerOptions & McpServerOptions,
): McpHandler;
export function createMcpHandler(
  served: McpServer | ServedExecutor,
  given: McpHandlerOptions = {},
): McpHandler {
  const { server, own, closeServer } = toServed(served, given, {
    by: "createMcpHandler",
    names: MCP_HANDLER_OPTIONS,
  });
  checkMcpHandlerOptions(own);
  return new HttpHandler(server, own, { closeServer });
}

/** Creates an MCP endpoint for servers of our own, which have no `Request`; with a `path`, there is nothing at any other. */
export function createMcpEndpoint(
  server: McpServer,
  options: McpHandlerOptions,
  place: EndpointPlace = {},
): McpEndpoint {
  return new HttpHandler(server as ChannelServer, options, place);
}

interface EndpointPlace {
  readonly path?: string;
  readonly closeServer?: () => Promise<void>;
  /** Where replicas that share a key find each other's streams. */
  readonly log?: SessionEventLog | undefined;
  /** What replicas note of sessions. @default nothing */
  readonly notes?: SessionNotes | undefined;
}

class HttpHandler implements McpEndpoint {
  readonly #server: ChannelServer;
  readonly #path: string | undefined;
  readonly #closeServer: (() => Promise<void>) | undefined;
  readonly #guard: ReturnType<typeof createHostGuard>;
  readonly #authentication: ReturnType<typeof createAuthentication>;
  readonly #bounds: ReturnType<typeof readMcpHandlerBounds>;
  readonly #warn: (message: string, cause?: unknown) => void;
  readonly #sessions: HttpSessions;
  /** Streams of changes, with the name of the reader of each. */
  readonly #streams = new Map<ChangeStream, string>();
  /** Requests that are answered, or whose answers are not sent yet. */
  readonly #calls: CallSlots;
  /** Requests whose bodies are being read: the answer to a question must get through while the call that asks holds its slot. */
  readonly #bodies: CallSlots;
  #running = 0;
  #closing: Promise<void> | undefined;

  constructor(
    server: ChannelServer,
    options: McpHandlerOptions,
    { path, closeServer, log, notes }: EndpointPlace,
  ) {
    this.#server = server;
    this.#path = path;
    this.#closeServer = closeServer;
    this.#authentication = createAuthentication(options);
    const { keyHeader } = this.#authentication;
    const own = keyHeader === undefined ? [] : [keyHeader];
    this.#guard = createHostGuard(options, {
      ...MCP_CORS,
      requestHeaders: [...MCP_CORS.requestHeaders, ...own],
    });
    this.#bounds = readMcpHandlerBounds(options.limits);
    this.#calls = new CallSlots(this.#bounds, true);
    this.#bodies = new CallSlots(this.#bounds, true);
    this.#warn = options.onWarning ?? ((message, cause) => console.warn(message, cause));
    const bounds = { ...this.#bounds, ...readEventBounds(options.limits) };
    this.#sessions = new HttpSessions(server, bounds, { log, notes, onWarning: this.#warn });
  }

  async fetch(request: Request, info: McpRequestInfo = {}): Promise<Response> {
    const response = toResponse(await this.handle(new FetchRequest(request), info), request.method);
    response.headers.set(...NO_SNIFFING);
    return response;
  }

  async handle(request: HttpRequest, info: McpRequestInfo = {}): Promise<HttpAnswer> {
    // What waits here can be answered here alone, until the end.
    const isClosing = this.#closing !== undefined && request.isLed !== true;
    if (isClosing || this.#server.isClosed) {
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

  close({ timeoutMs = CLOSE_TIMEOUT_MS }: CloseOptions = {}): Promise<void> {
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
    if ((request.header("content-encoding") ?? "identity") !== "identity") {
      return refuse(415, "The body must be sent as it is, without a Content-Encoding.");
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
      const message = isUtf8(bytes)
        ? "The body of the request is not JSON, or it is nested too deeply."
        : "The body of the request is not UTF-8.";
      return refuse(400, message, { code: RPC_CODES.parseError });
    }
    if (info.isCurrent?.() === false) {
      return refuse(401, "Who may call has changed meanwhile; ask again.", {
        headers: { "www-authenticate": "Bearer" },
      });
    }
    const lacking = this.#refuseScopes(request, { body, identity, info });
    if (lacking !== undefined) return lacking;
    if (!isCall(body)) return withBody(await this.#answer(request, identity, body), bytes);
    try {
      this.#calls.take(owner);
    } catch (thrown) {
      return refuseCall(thrown, answeredIdOf(body));
    }
    try {
      return withBody(await this.#answer(request, identity, body), bytes);
    } finally {
      const done = (): void => this.#calls.giveBack(owner);
      if (request.onSent === undefined) done();
      else request.onSent(done);
    }
  }

  /** Refuses a call that the scopes of a token are too few for, so that its client can get another one; the call answers all others. */
  #refuseScopes(
    request: HttpRequest,
    { body, identity, info }: { body: unknown; identity: Identity | undefined; info: McpRequestInfo },
  ): HttpAnswer | undefined {
    const stepUp = info.stepUp ?? this.#authentication.stepUp;
    if (stepUp === undefined || identity === undefined) return undefined;
    const lacking = this.#server.lackingScopes(body, identity);
    const challenge = lacking && stepUp(request, identity, lacking);
    if (challenge === undefined) return undefined;
    const headers = { "www-authenticate": challenge };
    return refuse(403, "The token lacks a scope that the call needs.", { headers, id: answeredIdOf(body) });
  }

  async #answer(request: HttpRequest, identity: Identity | undefined, body: unknown): Promise<HttpAnswer> {
    const found = classify(body, request);
    switch (found.kind) {
      case "legacy":
        return await this.#session({ request, body, identity });
      case "refused":
        return refuse(400, found.error.message, { ...found.error.toJSON(), id: answeredIdOf(body) });
      case "notification":
        return { status: 202, headers: {}, body: undefined };
      case "modern":
        return await this.#modern(found.message, request, identity);
    }
  }

  #session(asked: HttpSessionRequest): Promise<HttpAnswer> | HttpAnswer {
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
      const finish = (text: string, status: number, held?: HeldElsewhere): void => {
        removeAbortListener(request.signal, leave);
        const headers = status === 503 ? { ...JSON_TYPE, ...SOON } : { ...JSON_TYPE };
        const answer: HttpAnswer = { status, headers, body: text };
        if (stream === undefined) resolve(held === undefined ? answer : asHeldBy(answer, held.replica, id));
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
          const held = thrown instanceof HeldElsewhere ? thrown : undefined;
          finish(writeFailure(id, error), STATUS[error.code] ?? 200, held);
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
      const { message: why, ...error } = toRpcError(thrown);
      return refuse(400, why, { ...error, id: message.id });
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
    await this.#closeServer?.();
  }
}

/** The HTTP statuses of errors that the protocol gives one; all others are answers like any other. */
const STATUS: Readonly<Record<number, number>> = {
  [RPC_CODES.methodNotFound]: 404,
  [RPC_CODES.missingCapability]: 400,
  [RPC_CODES.headerMismatch]: 400,
  [RPC_CODES.heldElsewhere]: 503,
};

/** Says that the handler of a call waits at a replica; where that is gone, nobody knows what the call has done. */
function asHeldBy(answer: HttpAnswer, replica: string, id: RequestId): HttpAnswer {
  const otherwise = (isGone: boolean): HttpAnswer => {
    if (!isGone) return answer;
    const message = "The replica that ran this call is gone; whether the call did its work is not known.";
    const error = { code: RPC_CODES.internalError, message, data: { reason: "replica_lost" } };
    return { status: 200, headers: { ...JSON_TYPE }, body: writeFailure(id, error) };
  };
  return { ...answer, heldBy: { replica, otherwise } };
}

/** Adds what was posted where another replica has to read it. */
function withBody(answer: HttpAnswer, body: Uint8Array): HttpAnswer {
  return answer.heldBy === undefined ? answer : { ...answer, heldBy: { ...answer.heldBy, body } };
}

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
  return answeredIdOf(body) !== null && !isStream;
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

/** A posted body as JSON; nothing where it is none, is no UTF-8 or is nested too deeply. */
function parseBody(bytes: Uint8Array): unknown {
  // Bytes that are none would be read as other signs than were meant.
  if (!isUtf8(bytes)) return undefined;
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

/** What a posted body is: for a session, a 2026-07-28 request or notification, or refused with the reason. */
type Classified =
  | { readonly kind: "legacy" }
  | { readonly kind: "notification" }
  | { readonly kind: "modern"; readonly message: RpcRequest }
  | { readonly kind: "refused"; readonly error: ProtocolError };

/** The headers that repeat what a 2026-07-28 request says of itself. */
interface Repeated {
  readonly revision: string | undefined;
  readonly method: string | undefined;
  readonly name: string | undefined;
}

const LEGACY: Classified = { kind: "legacy" };

/** Decides by what a body says of itself; headers must agree, since others may have routed by them. */
export function classify(body: unknown, request: Pick<HttpRequest, "header">): Classified {
  if (Array.isArray(body)) return classifyBatch(body);
  const message = toRpcMessage(body);
  if (message === undefined)
    return refusedAs(RPC_CODES.invalidRequest, "The body is not a message of JSON-RPC 2.0.");
  if (!("method" in message)) return LEGACY;
  const revision = request.header("mcp-protocol-version")?.trim();
  const isModernHeader = revision !== undefined && isModernRevision(revision);
  const isClaimed = claimsRevision(message.params);
  if (!isClaimed && !isModernHeader) return LEGACY;
  const headers = {
    revision,
    method: request.header("mcp-method")?.trim(),
    name: request.header("mcp-name")?.trim(),
  };
  const error =
    "id" in message ? headerFault(message, headers, isClaimed) : notificationFault(message, headers);
  if (error !== undefined) return { kind: "refused", error };
  if (!("id" in message)) return isModern(message, isModernHeader) ? { kind: "notification" } : LEGACY;
  if (message.method === "initialize" && !isModernRequest(message)) return LEGACY;
  return { kind: "modern", message };
}

function classifyBatch(body: readonly unknown[]): Classified {
  if (body.length === 0) return refusedAs(RPC_CODES.invalidRequest, "A list of messages must not be empty.");
  for (const item of body) {
    const message = toRpcMessage(item);
    if (message === undefined)
      return refusedAs(RPC_CODES.invalidRequest, "The list holds what is no message of JSON-RPC 2.0.");
    if ("method" in message && claimsRevision(message.params)) {
      return refusedAs(RPC_CODES.invalidRequest, "Since 2026-07-28, messages are not sent in lists.");
    }
  }
  return LEGACY;
}

function headerFault(message: RpcRequest, headers: Repeated, isClaimed: boolean): ProtocolError | undefined {
  const { method, params } = message;
  if (method === "initialize" && !isModernRequest(message)) {
    const isModernHeader = headers.revision !== undefined && isModernRevision(headers.revision);
    return isModernHeader ? mismatch(headers.revision, "an initialize of an older revision") : undefined;
  }
  if (!isClaimed) {
    const missing = missingKeys(params);
    const text = `The header names revision ${headers.revision}, and the request lacks: ${missing.join(", ")}.`;
    return new ProtocolError(RPC_CODES.invalidParams, text, { envelope: { missing } });
  }
  const fault = envelopeFault(params);
  if (fault !== undefined) return fault;
  const revision = claimedRevision(params);
  if (headers.revision !== undefined && headers.revision !== revision) {
    return mismatch(headers.revision, `revision ${revision}`);
  }
  if (headers.method !== undefined && headers.method !== method)
    return mismatch(headers.method, `method ${method}`);
  if (revision === undefined || !MODERN_REVISIONS.includes(revision)) return unsupportedRevision(revision);
  if (headers.revision === undefined)
    return mismatch("(missing)", `revision ${revision}; MCP-Protocol-Version must repeat it`);
  if (headers.method === undefined)
    return mismatch("(missing)", `method ${method}; Mcp-Method must repeat it`);
  return nameFault(message, headers.name);
}

/** `Mcp-Name` repeats the tool, prompt or resource that is asked for. */
function nameFault({ method, params }: RpcRequest, header: string | undefined): ProtocolError | undefined {
  const field = methodTraits(method)?.named;
  if (field === undefined) return undefined;
  const value = params?.[field];
  const wanted = typeof value === "string" ? value : undefined;
  if (header === undefined) {
    return wanted === undefined
      ? undefined
      : mismatch("(missing)", `params.${field}; Mcp-Name must repeat it`);
  }
  const given = decodeHeader(header);
  if (given === undefined) return mismatch(header, "Mcp-Name in broken base64");
  return wanted === undefined || wanted === given ? undefined : mismatch(header, `another params.${field}`);
}

function notificationFault(message: RpcNotification, headers: Repeated): ProtocolError | undefined {
  const { method, params } = message;
  const revision = claimedRevision(params);
  if (claimsRevision(params) && revision === undefined) return envelopeFault(params);
  if (revision !== undefined && headers.revision !== undefined && revision !== headers.revision) {
    return mismatch(headers.revision, `revision ${revision}`);
  }
  const isNamed = headers.method === undefined || headers.method === method;
  if (!isNamed && isModern(message, true)) return mismatch(headers.method, `method ${method}`);
  if (revision !== undefined && isModernRevision(revision) && !MODERN_REVISIONS.includes(revision)) {
    return unsupportedRevision(revision);
  }
  return undefined;
}

function isModern({ params }: RpcNotification, isModernHeader: boolean): boolean {
  const revision = claimedRevision(params);
  return revision === undefined ? isModernHeader : isModernRevision(revision);
}

function mismatch(header: string | undefined, body: string): ProtocolError {
  const message = `The headers and the body disagree: the body has ${body}.`;
  return new ProtocolError(RPC_CODES.headerMismatch, message, { mismatch: { header, body } });
}

function refusedAs(code: number, message: string): Classified {
  return { kind: "refused", error: new ProtocolError(code, message) };
}

interface RefusalOptions {
  /** The code of JSON-RPC. @default -32_000 */
  readonly code?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The id of the request that is refused, where it is known. @default null */
  readonly id?: RequestId | null | undefined;
  readonly data?: unknown;
}

/** Refuses a request, with a JSON-RPC error as the body. */
export function refuse(status: number, message: string, options: RefusalOptions = {}): HttpAnswer {
  const { code = -32_000, headers = {}, id = null, data } = options;
  const error = { code, message, ...(data !== undefined && { data }) };
  return {
    status,
    headers: { "content-type": "application/json", ...headers },
    body: writeFailure(id, error),
  };
}

/** Writes why a request is not heard, as checks that are shared with other servers say it. */
export function refuseFor({ status, message, headers }: Refusal): HttpAnswer {
  return refuse(status, message, { headers });
}

/** Finds the id to answer a body under: that of a single request, `null` for anything else. */
export function answeredIdOf(body: unknown): RequestId | null {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return null;
  const { method, id } = body as { readonly method?: unknown; readonly id?: unknown };
  return typeof method === "string" && isRpcId(id) ? id : null;
}
