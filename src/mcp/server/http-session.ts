import { randomUUID } from "node:crypto";
import {
  type AuthInfo,
  isJSONRPCErrorResponse,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  type RequestId,
  type Server,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { createRefusal, requestIdOf } from "./http-refusal.ts";
import {
  type EventBudget,
  readEventId,
  type SessionEventBounds,
  STANDING_STREAM,
  WorthwhileEvents,
} from "./http-session-events.ts";
import { isEventStream, watchStream, withBody } from "./http-stream.ts";

/** Bounds of one session. */
export interface SessionBounds extends SessionEventBounds {
  readonly sessionRequests: number;
  readonly streamBytes: number;
}

/** Whose session it is, its bounds, and what it shares with other sessions. */
export interface SessionOptions {
  readonly owner: string;
  readonly bounds: SessionBounds;
  readonly budget: EventBudget;
}

/** What a session tells whoever keeps it. */
export interface SessionListeners {
  opened(session: HttpSession): void;
  /** Something ended, and the session may now be idle. */
  rested(session: HttpSession): void;
  ended(session: HttpSession): void;
}

/** How long a client waits before it comes back for the rest of a stream, in milliseconds. */
const RETRY_MS = 1_000;

/** Streams that a client may read at a time, besides those that answer what it posts. */
const MAX_READERS = 8;

/** The transport of the SDK, which says when a request was answered and when it closed. */
class WatchedTransport extends WebStandardStreamableHTTPServerTransport {
  readonly #events: WorthwhileEvents;
  /** Tells whether an answer need not be kept. */
  isPassing: (id: RequestId) => boolean = () => false;
  /** What `initialize` settled on. */
  revision: string | undefined;
  onAnswer: (id: RequestId) => void = () => {};
  onEnd: () => void = () => {};

  constructor(id: string, events: WorthwhileEvents, onOpen: () => void) {
    super({
      sessionIdGenerator: () => id,
      onsessioninitialized: onOpen,
      eventStore: events,
      retryInterval: RETRY_MS,
    });
    this.#events = events;
  }

  override async send(message: JSONRPCMessage, options?: { relatedRequestId?: RequestId }): Promise<void> {
    const isAnswer = isJSONRPCResultResponse(message) || isJSONRPCErrorResponse(message);
    const answered = isAnswer ? message.id : undefined;
    if (this.revision === undefined && isJSONRPCResultResponse(message)) {
      this.revision = String(message.result["protocolVersion"] ?? "");
    }
    try {
      this.#events.passing = answered !== undefined && this.isPassing(answered);
      // The SDK hands the message to the store before anything else can run.
      const sending = super.send(message, options);
      this.#events.passing = false;
      await sending;
    } finally {
      if (answered !== undefined) this.onAnswer(answered);
    }
  }

  override async close(): Promise<void> {
    await super.close();
    this.onEnd();
  }
}

/** A 2025 client and the server of the SDK that was made for it. */
export class HttpSession {
  readonly id = randomUUID();
  readonly owner: string;
  readonly #server: Server;
  readonly #transport: WatchedTransport;
  readonly #bounds: SessionBounds;
  readonly #listeners: SessionListeners;
  readonly #events: WorthwhileEvents;
  /** Requests without an answer yet, and whether each came alone. */
  readonly #pending = new Map<RequestId, boolean>();
  /** Those that came alone and whose client has seen nothing of the response yet, and those that were called off. */
  readonly #passing = new Set<RequestId>();
  /** Who reads which stream that a client came back to, or the one for what nobody asked for. */
  readonly #readers = new Map<Request, string>();
  #exchanges = 0;
  #ended = false;

  constructor(server: Server, listeners: SessionListeners, options: SessionOptions) {
    const { owner, bounds, budget } = options;
    this.owner = owner;
    this.#server = server;
    this.#bounds = bounds;
    this.#listeners = listeners;
    this.#events = new WorthwhileEvents(bounds, { owner, budget });
    this.#transport = new WatchedTransport(this.id, this.#events, () => listeners.opened(this));
    this.#transport.isPassing = (id) => this.#passing.has(id);
    this.#transport.onAnswer = (id) => this.#pending.delete(id);
    this.#transport.onEnd = () => {
      if (this.#ended) return;
      this.#ended = true;
      this.#events.close();
      listeners.ended(this);
    };
  }

  /** Whether no client waits for anything. Calls whose client has left may still run: they end with the session. */
  get idle(): boolean {
    return this.#exchanges === 0;
  }

  /** How many requests have no answer yet. */
  get running(): number {
    return this.#pending.size;
  }

  async start(): Promise<void> {
    await this.#server.connect(this.#transport);
  }

  /** Serves one request of the client; `body` is what it posted. */
  async serve(request: Request, body: unknown, authInfo: AuthInfo | undefined): Promise<Response> {
    const ids = requestIdsOf(body);
    const refusal = this.#admit(ids, body) ?? this.#admitReader(request);
    if (refusal !== undefined) return refusal;
    const alone = !Array.isArray(body);
    for (const id of ids) {
      this.#pending.set(id, alone);
      // What leaves in one piece with the response arrives with it, or nothing does that one could resume from.
      if (alone) this.#passing.add(id);
    }
    this.#exchanges += 1;
    try {
      return await this.#exchange(request, body, ids, authInfo);
    } catch (thrown) {
      this.#settle(request, ids);
      throw thrown;
    } finally {
      for (const id of ids) this.#passing.delete(id);
    }
  }

  async #exchange(
    request: Request,
    body: unknown,
    ids: readonly RequestId[],
    authInfo: AuthInfo | undefined,
  ): Promise<Response> {
    const options = { ...(authInfo && { authInfo }), ...(body !== undefined && { parsedBody: body }) };
    const response = await this.#transport.handleRequest(this.#withRevision(request), options);
    for (const id of cancelledIdsOf(body)) this.#forget(id);
    if (ids.length > 0) await turn();
    // What has been answered by now is complete, and watching it would cost more than the answer did.
    const isComplete = ids.length > 0 && !ids.some((id) => this.#pending.has(id));
    if (isComplete || response.body === null || !isEventStream(response)) {
      this.#settle(request, ids);
      return response;
    }
    // Leaving is not cancelling: the call goes on, and the client may come back for the rest.
    const watched = watchStream(response.body, this.#bounds.streamBytes, () => this.#rest(request));
    return withBody(response, watched);
  }

  /** Ends the stream for what nobody asked for; requests go on. */
  endStream(): void {
    this.#transport.closeStandaloneSSEStream();
  }

  async end(): Promise<void> {
    await this.#server.close();
    await this.#transport.close();
  }

  /** The SDK would lose the answer to the first of two requests that share an id. */
  #admit(ids: readonly RequestId[], body: unknown): Response | undefined {
    if (ids.length === 0) return undefined;
    const id = requestIdOf(body);
    if (ids.some((each) => this.#pending.has(each)) || new Set(ids).size < ids.length) {
      return createRefusal(400, "A request with this id is still running.", { code: -32_600, id });
    }
    if (this.#pending.size + ids.length <= this.#bounds.sessionRequests) return undefined;
    const message = `More than ${this.#bounds.sessionRequests} requests of this session are running.`;
    return createRefusal(429, message, { id, headers: { "retry-after": "1" } });
  }

  /** The SDK believes those who do not repeat their revision to speak an old one, which would cost them the rest of streams. */
  #withRevision(request: Request): Request {
    const { revision = "" } = this.#transport;
    if (revision < "2025-11-25" || request.headers.has("mcp-protocol-version")) return request;
    const headers = new Headers(request.headers);
    headers.set("mcp-protocol-version", revision);
    return new Request(request.url, { method: request.method, headers, signal: request.signal });
  }

  /** Looks at who wants to read what nobody asked for, or the rest of a stream. */
  #admitReader(request: Request): Response | undefined {
    if (request.method !== "GET") return undefined;
    const last = request.headers.get("last-event-id") ?? "";
    const event = readEventId(last);
    if (last !== "" && (event === undefined || !this.#events.knows(event))) {
      return createRefusal(400, "The Last-Event-ID is none of this session's.");
    }
    const { stream } = event ?? { stream: STANDING_STREAM };
    // Whoever comes back to a stream takes it over.
    const read = new Set(this.#readers.values()).add(stream);
    if (read.size > MAX_READERS) {
      const message = `More than ${MAX_READERS} streams of this session are being read.`;
      return createRefusal(429, message, { headers: { "retry-after": "1" } });
    }
    if (last === "") this.#events.isStanding = true;
    this.#readers.set(request, stream);
    return undefined;
  }

  /** Ends an exchange whose requests have all been answered, or have never run. */
  #settle(request: Request, ids: readonly RequestId[]): void {
    for (const id of ids) this.#pending.delete(id);
    this.#rest(request);
  }

  #rest(request: Request): void {
    this.#readers.delete(request);
    this.#exchanges -= 1;
    this.#listeners.rested(this);
  }

  /** A cancelled request is never answered, and the SDK would keep its stream and its id until the session ends. */
  #forget(id: RequestId): void {
    const alone = this.#pending.get(id);
    if (alone === undefined) return;
    if (alone) this.#transport.closeSSEStream(id);
    const error = { code: -32_000, message: "The request was cancelled." };
    this.#passing.add(id);
    this.#transport.send({ jsonrpc: "2.0", id, error }).catch(() => {});
    this.#passing.delete(id);
  }
}

/** Waits until everything that needs no input or output has run. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function messagesOf(body: unknown): readonly Readonly<Record<string, unknown>>[] {
  const list: readonly unknown[] = Array.isArray(body) ? body : [body];
  return list.filter((item) => typeof item === "object" && item !== null) as Record<string, unknown>[];
}

function requestIdsOf(body: unknown): readonly RequestId[] {
  return messagesOf(body)
    .map(requestIdOf)
    .filter((id) => id !== null);
}

function cancelledIdsOf(body: unknown): readonly RequestId[] {
  return messagesOf(body)
    .filter(({ method, id }) => method === "notifications/cancelled" && id === undefined)
    .map(({ params }) => (params as { readonly requestId?: unknown } | undefined)?.requestId)
    .filter((id) => typeof id === "string" || typeof id === "number");
}
