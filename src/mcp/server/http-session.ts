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
import { isEventStream, watchStream, withBody } from "./http-stream.ts";

/** Bounds of one session. */
export interface SessionBounds {
  readonly sessionRequests: number;
  readonly streamBytes: number;
}

/** What a session tells whoever keeps it. */
export interface SessionEvents {
  opened(session: HttpSession): void;
  /** Something ended, and the session may now be idle. */
  rested(session: HttpSession): void;
  ended(session: HttpSession): void;
}

/** The transport of the SDK, which says when a request was answered and when it closed. */
class WatchedTransport extends WebStandardStreamableHTTPServerTransport {
  onAnswer: (id: RequestId) => void = () => {};
  onEnd: () => void = () => {};

  override async send(message: JSONRPCMessage, options?: { relatedRequestId?: RequestId }): Promise<void> {
    try {
      await super.send(message, options);
    } finally {
      const isAnswer = isJSONRPCResultResponse(message) || isJSONRPCErrorResponse(message);
      if (isAnswer && message.id !== undefined) this.onAnswer(message.id);
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
  readonly #events: SessionEvents;
  /** Requests without an answer yet, and whether each came alone. */
  readonly #pending = new Map<RequestId, boolean>();
  #exchanges = 0;
  #ended = false;

  constructor(server: Server, owner: string, bounds: SessionBounds, events: SessionEvents) {
    this.owner = owner;
    this.#server = server;
    this.#bounds = bounds;
    this.#events = events;
    this.#transport = new WatchedTransport({
      sessionIdGenerator: () => this.id,
      onsessioninitialized: () => events.opened(this),
    });
    this.#transport.onAnswer = (id) => this.#pending.delete(id);
    this.#transport.onEnd = () => {
      if (this.#ended) return;
      this.#ended = true;
      events.ended(this);
    };
  }

  /** Whether nothing runs and no stream is open. */
  get idle(): boolean {
    return this.#exchanges === 0 && this.#pending.size === 0;
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
    const refusal = this.#admit(ids, body);
    if (refusal !== undefined) return refusal;
    const alone = !Array.isArray(body);
    for (const id of ids) this.#pending.set(id, alone);
    this.#exchanges += 1;
    let response: Response;
    try {
      const options = { ...(authInfo && { authInfo }), ...(body !== undefined && { parsedBody: body }) };
      response = await this.#transport.handleRequest(request, options);
    } catch (thrown) {
      this.#rest(ids);
      throw thrown;
    }
    for (const id of cancelledIdsOf(body)) this.#forget(id);
    if (ids.length > 0) await turn();
    // What has been answered by now is complete, and watching it would cost more than the answer did.
    const isComplete = ids.length > 0 && !ids.some((id) => this.#pending.has(id));
    if (isComplete || response.body === null || !isEventStream(response)) {
      this.#rest(ids);
      return response;
    }
    const watched = watchStream(response.body, this.#bounds.streamBytes, (end) => {
      if (end === "left") for (const id of ids) this.#abandon(id);
      this.#rest(ids);
    });
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

  #rest(ids: readonly RequestId[]): void {
    for (const id of ids) this.#pending.delete(id);
    this.#exchanges -= 1;
    this.#events.rested(this);
  }

  /** Streams cannot be resumed here, so that an answer nobody waits for would be lost: the call is ended instead. */
  #abandon(requestId: RequestId): void {
    if (!this.#pending.has(requestId)) return;
    const params = { requestId, reason: "The client left." };
    this.#transport.onmessage?.({ jsonrpc: "2.0", method: "notifications/cancelled", params });
    this.#forget(requestId);
  }

  /** A cancelled request is never answered, and the SDK would keep its stream and its id until the session ends. */
  #forget(id: RequestId): void {
    const alone = this.#pending.get(id);
    if (alone === undefined) return;
    if (alone) this.#transport.closeSSEStream(id);
    const heard = this.#transport.onerror;
    this.#transport.onerror = () => {};
    const error = { code: -32_000, message: "The request was cancelled." };
    this.#transport.send({ jsonrpc: "2.0", id, error }).catch(() => {});
    if (heard !== undefined) this.#transport.onerror = heard;
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
