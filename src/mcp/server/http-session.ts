import { randomUUID } from "node:crypto";
import { type Identity, ownerOf } from "../../core/access/identity.ts";
import {
  addAbortListener,
  type LightSignal,
  removeAbortListener,
} from "../../core/execution/abort-listeners.ts";
import { EVENT_STREAM_HEADERS, EventStream } from "../../http/event-stream.ts";
import type { HttpAnswer, HttpRequest } from "../../http/exchange.ts";
import { whenExpired } from "../../http/expiry.ts";
import {
  isRequest,
  type RequestId,
  RPC_CODES,
  type RpcMessage,
  type RpcRequest,
  requestFault,
  toRpcError,
  toRpcMessage,
} from "../protocol/messages.ts";
import { type MessagePlace, RpcPeer } from "../protocol/peer.ts";
import { initializeFault, LEGACY_REVISIONS } from "../protocol/revisions.ts";
import { refuse, requestIdOf } from "./http-refusal.ts";
import {
  type EventBudget,
  readEventId,
  type SessionEventBounds,
  SessionEvents,
  STANDING_STREAM,
} from "./http-session-events.ts";
import type { ServedMcp } from "./mcp-server.ts";
import { Peer } from "./peer.ts";

/** Bounds of one session. */
export interface SessionBounds extends SessionEventBounds {
  readonly sessionRequests: number;
  readonly streamBytes: number;
}

/** Whose session it is, its bounds, and what it shares with other sessions. */
export interface SessionOptions {
  readonly identity: Identity | undefined;
  readonly bounds: SessionBounds;
  readonly budget: EventBudget;
  /** Hears that something ended, and the session may now be idle. */
  readonly onRest: (session: HttpSession) => void;
  readonly onEnd: (session: HttpSession) => void;
}

/** How long a client waits before it comes back for the rest of a stream, in milliseconds. */
const RETRY_MS = 1_000;

/** How long a call takes before its client gets a stream to come back to, in milliseconds. */
const STREAM_AFTER_MS = 1_000;

/** Streams that a client may read at a time, besides those that answer what it posts. */
const MAX_READERS = 8;

/** Messages in one posted list. */
const MAX_BATCH = 100;

/** Bytes of an answer that leaves in one write: a client whose connection breaks has all of it, or nothing. */
const ONE_WRITE_BYTES = 16_384;

/** From this revision on, a stream begins with an event to come back to. */
const PRIMED_SINCE = "2025-11-25";

/** What was posted in one piece, and the answer to it: plain JSON where nothing has to go first, else a stream. */
interface Post {
  readonly isBatch: boolean;
  /** Whether its stream begins with an event to come back to. */
  readonly isPrimed: boolean;
  /** Requests without an answer yet. */
  readonly open: Set<RequestId>;
  /** Of `performance.now()`. */
  readonly startedAt: number;
  /** Gives the HTTP answer; nothing once that is done. */
  settle: ((answer: HttpAnswer) => void) | undefined;
  /** The name of its stream, once there is one. */
  stream: string | undefined;
  /** Who reads the stream; nothing when the client has left. */
  reader: EventStream | undefined;
}

/** A 2025 client over HTTP. */
export class HttpSession {
  readonly id = randomUUID();
  readonly owner: string;
  readonly #server: ServedMcp;
  readonly #options: SessionOptions;
  readonly #peer: Peer;
  readonly #rpc: RpcPeer;
  readonly #events: SessionEvents;
  readonly #leave: () => void;
  readonly #posts = new Map<RequestId, Post>();
  /** Who reads which stream that a client came back to, or the standing one. */
  readonly #readers = new Map<EventStream, string>();
  #standing: EventStream | undefined;
  /** Whether the client has ever opened the stream for what belongs to no request. */
  #hasStandingStream = false;
  #exchanges = 0;
  /** Looks for posts that take long; there while there may be one, as a timer for each would cost more than the look-up of its tool. */
  #timer: NodeJS.Timeout | undefined;
  #isEnded = false;
  /** Who makes the request that is being read right now: a renewed token may have other scopes. */
  #asking: Identity | undefined;

  constructor(server: ServedMcp, options: SessionOptions) {
    const { identity, bounds, budget } = options;
    this.#server = server;
    this.#options = options;
    this.owner = ownerOf(identity);
    this.#asking = identity;
    this.#events = new SessionEvents(bounds, { owner: this.owner, budget });
    this.#rpc = new RpcPeer({
      answer: (request, signal) => this.#answer(request, signal),
      toError: toRpcError,
      send: (text, place) => this.#send(text, place),
      onCancel: (id) => this.#finish(id),
    });
    this.#peer = new Peer({
      era: "legacy",
      identity,
      notify: (method, params) => this.#rpc.notify(method, params),
      end: () => this.end(),
    });
    this.#leave = server.follow(this.#peer);
  }

  /** Whether no client waits for anything. Calls whose client has left may still run: they end with the session. */
  get idle(): boolean {
    return this.#exchanges === 0;
  }

  /** How many requests have no answer yet. */
  get running(): number {
    return this.#rpc.running;
  }

  /** Whether it was opened: `initialize` has been answered. */
  get isOpen(): boolean {
    return this.#peer.revision !== undefined;
  }

  /** Serves one request of the client; `body` is what it posted. */
  serve(
    request: HttpRequest,
    body: unknown,
    identity: Identity | undefined,
  ): Promise<HttpAnswer> | HttpAnswer {
    const refusal = this.#admit(request);
    if (refusal !== undefined) return refusal;
    if (request.method === "POST") return this.#post(request, body, identity);
    if (request.method === "GET") return this.#read(request, identity);
    this.end();
    return { status: 200, headers: {}, body: undefined };
  }

  /** Ends the stream for what belongs to no request; requests go on. */
  endStream(): void {
    this.#standing?.end();
  }

  /** Ends the session and what runs in it. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    clearTimeout(this.#timer);
    this.#rpc.close();
    for (const id of [...this.#posts.keys()]) this.#finish(id);
    for (const reader of [...this.#readers.keys()]) reader.end();
    this.#events.close();
    this.#leave();
    this.#options.onEnd(this);
  }

  #admit(request: HttpRequest): HttpAnswer | undefined {
    if (this.#isEnded) return refuse(404, "There is no such session; initialize again.", { code: -32_001 });
    const refusal = refuseAccept(request);
    if (refusal !== undefined) return refusal;
    const revision = this.isOpen ? request.header("mcp-protocol-version") : undefined;
    if (revision === undefined || LEGACY_REVISIONS.includes(revision)) return undefined;
    return refuse(400, `This revision is not spoken here; these are: ${LEGACY_REVISIONS.join(", ")}.`);
  }

  #post(
    request: HttpRequest,
    body: unknown,
    identity: Identity | undefined,
  ): Promise<HttpAnswer> | HttpAnswer {
    const read = this.#readMessages(body);
    if ("status" in read) return read;
    const requests = read.filter(isRequest);
    this.#asking = identity;
    if (requests.length === 0) {
      for (const message of read) this.#rpc.receive(message);
      return { status: 202, headers: {}, body: undefined };
    }
    const refusal = this.#admitRequests(requests, body);
    if (refusal !== undefined) return refusal;
    return new Promise((resolve) => {
      const listener = { onAbort: () => settle(undefined) };
      const settle = (answer: HttpAnswer | undefined): void => {
        if (post.settle === undefined) return;
        post.settle = undefined;
        removeAbortListener(request.signal, listener);
        // A client that has left reads nothing; its calls go on.
        resolve(answer ?? { status: 202, headers: {}, body: undefined });
        if (post.reader === undefined) this.#release();
      };
      const open = new Set(requests.map(({ id }) => id));
      const post: Post = {
        isBatch: Array.isArray(body),
        isPrimed: (request.header("mcp-protocol-version") ?? this.#peer.revision ?? "") >= PRIMED_SINCE,
        open,
        startedAt: performance.now(),
        settle,
        stream: undefined,
        reader: undefined,
      };
      for (const id of open) this.#posts.set(id, post);
      this.#timer ??= this.#streamAfter(STREAM_AFTER_MS);
      this.#exchanges += 1;
      if (request.signal.aborted) settle(undefined);
      else addAbortListener(request.signal, listener);
      if (post.isBatch) this.#stream(post);
      for (const message of read) this.#rpc.receive(message);
    });
  }

  /** Gives clients whose calls take long a stream to come back to, once the oldest of them has taken that long. */
  #streamAfter(ms: number): NodeJS.Timeout {
    const timer = setTimeout(() => {
      this.#timer = undefined;
      const now = performance.now();
      for (const post of [...this.#posts.values()]) {
        const left = post.startedAt + STREAM_AFTER_MS - now;
        // They are in the order in which they began; a timer may be early by a fraction of a millisecond.
        if (left >= 1) {
          this.#timer = this.#streamAfter(left);
          return;
        }
        // A client that has left gets none.
        if (post.settle !== undefined) this.#stream(post);
      }
    }, ms);
    return timer.unref();
  }

  #readMessages(body: unknown): readonly RpcMessage[] | HttpAnswer {
    const list: readonly unknown[] = Array.isArray(body) ? body : [body];
    const id = requestIdOf(body);
    if (Array.isArray(body) && (list.length === 0 || list.length > MAX_BATCH)) {
      return refuse(400, `A list holds 1 to ${MAX_BATCH} messages.`, { code: RPC_CODES.invalidRequest });
    }
    const messages: RpcMessage[] = [];
    for (const item of list) {
      const message = toRpcMessage(item);
      if (message === undefined) {
        return refuse(400, "The body is not a message of JSON-RPC 2.0.", { code: RPC_CODES.parseError, id });
      }
      messages.push(message);
    }
    const isInitialize = (message: RpcMessage): boolean =>
      "method" in message && message.method === "initialize";
    if (messages.some(isInitialize) && (messages.length > 1 || this.isOpen)) {
      return refuse(400, "A session is initialized once, by a message of its own.", {
        code: RPC_CODES.invalidRequest,
        id,
      });
    }
    return messages;
  }

  /** Of two requests that share an id, the answer to one would be taken for that to the other. */
  #admitRequests(requests: readonly RpcRequest[], body: unknown): HttpAnswer | undefined {
    const id = requestIdOf(body);
    const ids = new Set(requests.map((request) => request.id));
    if (requests.some((request) => this.#posts.has(request.id)) || ids.size < requests.length) {
      return refuse(400, "A request with this id is still running.", { code: RPC_CODES.invalidRequest, id });
    }
    if (this.running + requests.length <= this.#options.bounds.sessionRequests) return undefined;
    const message = `More than ${this.#options.bounds.sessionRequests} requests of this session are running.`;
    return refuse(429, message, { id, headers: { "retry-after": "1" } });
  }

  #answer(request: RpcRequest, signal: AbortSignal): Promise<string> {
    const { id, method, params = {} } = request;
    const fault = requestFault(request) ?? (method === "initialize" ? initializeFault(params) : undefined);
    if (fault !== undefined) throw fault;
    return this.#server.answer(this.#peer, {
      id,
      method,
      params,
      signal,
      identity: this.#asking,
      abort: (reason) => (signal as unknown as LightSignal).abort(reason),
      notify: (name, given) => this.#rpc.notify(name, given, id),
      ask: (name, given, options) => this.#rpc.ask(name, given, { ...options, during: id }),
    });
  }

  /** Sends a message over the stream it belongs to. */
  #send(text: string, { answers, during }: MessagePlace): void {
    if (answers !== undefined) this.#sendAnswer(answers, text);
    else if (during !== undefined) this.#sendDuring(during, text);
    else if (this.#hasStandingStream) {
      const id = this.#events.keep(STANDING_STREAM, text);
      this.#standing?.push(toEvent(text, id));
    }
  }

  #sendAnswer(id: RequestId, text: string): void {
    const post = this.#posts.get(id);
    if (post === undefined) return;
    if (post.stream === undefined && (!post.isPrimed || Buffer.byteLength(text) <= ONE_WRITE_BYTES)) {
      this.#posts.delete(id);
      post.open.delete(id);
      const headers = { "content-type": "application/json", "mcp-session-id": this.id };
      post.settle?.({ status: 200, headers, body: text });
      return;
    }
    this.#stream(post);
    this.#push(post, text);
    this.#finish(id);
  }

  #sendDuring(id: RequestId, text: string): void {
    const post = this.#posts.get(id);
    if (post === undefined) return;
    this.#stream(post);
    this.#push(post, text);
  }

  #push(post: Post, text: string): void {
    const id = this.#events.keep(post.stream as string, text);
    post.reader?.push(toEvent(text, id));
  }

  /** Answers what was posted with a stream from now on. */
  #stream(post: Post): void {
    if (post.stream !== undefined) return;
    post.stream = randomUUID();
    const { settle } = post;
    if (settle === undefined) return;
    const reader = this.#openReader(() => {
      if (post.reader === reader) post.reader = undefined;
    });
    post.reader = reader;
    if (post.isPrimed) {
      reader.push(`id: ${this.#events.mark(post.stream)}\nretry: ${RETRY_MS}\ndata: \n\n`);
    }
    settle({ status: 200, headers: { ...EVENT_STREAM_HEADERS, "mcp-session-id": this.id }, body: reader });
  }

  /** A reader counts as somebody who waits until it ends; leaving is not cancelling. */
  #openReader(onEnd: () => void): EventStream {
    return new EventStream({
      maxBytes: this.#options.bounds.streamBytes,
      onEnd: () => {
        onEnd();
        this.#release();
      },
    });
  }

  /** Ends a request that was answered, or will not be. */
  #finish(id: RequestId): void {
    const post = this.#posts.get(id);
    this.#posts.delete(id);
    if (post === undefined || !post.open.delete(id) || post.open.size > 0) return;
    if (post.stream !== undefined) this.#events.markAnswered(post.stream);
    post.reader?.end();
    post.settle?.({ status: 200, headers: { ...EVENT_STREAM_HEADERS, "mcp-session-id": this.id }, body: "" });
  }

  /** Opens the stream for what belongs to no request, or gives the rest of one that broke. */
  #read(request: HttpRequest, identity: Identity | undefined): HttpAnswer {
    const last = request.header("last-event-id") ?? "";
    const event = readEventId(last);
    if (last !== "" && (event === undefined || !this.#events.knows(event))) {
      return refuse(400, "The Last-Event-ID is none of this session's.");
    }
    if (event === undefined && this.#standing !== undefined) {
      return refuse(409, "The stream of this session is being read already.");
    }
    const { stream } = event ?? { stream: STANDING_STREAM };
    // Whoever comes back to a stream takes it over.
    const read = new Set(this.#readers.values()).add(stream);
    if (read.size > MAX_READERS) {
      const message = `More than ${MAX_READERS} streams of this session are being read.`;
      return refuse(429, message, { headers: { "retry-after": "1" } });
    }
    const reader = this.#openReader(() => {
      cancelExpiry();
      this.#readers.delete(reader);
      if (this.#standing === reader) this.#standing = undefined;
      for (const post of this.#posts.values()) if (post.reader === reader) post.reader = undefined;
    });
    // What comes later is kept for a client that comes back with a new token.
    const cancelExpiry = whenExpired(identity, () => reader.end());
    this.#exchanges += 1;
    this.#readers.set(reader, stream);
    // In one piece, however much it is: a reader that has just come is not behind.
    const missed = event === undefined ? [] : this.#events.after(event);
    if (missed.length > 0) reader.push(missed.map(([id, json]) => toEvent(json, id)).join(""));
    this.#attach(reader, stream);
    return { status: 200, headers: { ...EVENT_STREAM_HEADERS, "mcp-session-id": this.id }, body: reader };
  }

  #attach(reader: EventStream, stream: string): void {
    if (stream === STANDING_STREAM) {
      this.#hasStandingStream = true;
      this.#standing?.end();
      this.#standing = reader;
      return;
    }
    const post = [...this.#posts.values()].find((each) => each.stream === stream);
    if (post === undefined) {
      reader.end();
      return;
    }
    const before = post.reader;
    post.reader = reader;
    before?.end();
  }

  #release(): void {
    this.#exchanges -= 1;
    this.#options.onRest(this);
  }
}

/** Refuses a request whose client does not take every form of an answer that it may get. */
export function refuseAccept(request: HttpRequest): HttpAnswer | undefined {
  if (request.method === "DELETE") return undefined;
  const accept = request.header("accept") ?? "";
  const wanted =
    request.method === "POST" ? ["application/json", "text/event-stream"] : ["text/event-stream"];
  if (wanted.every((type) => accept.includes(type))) return undefined;
  return refuse(406, `The Accept header must name ${wanted.join(" and ")}.`);
}

/** Writes a message as an event that a client can come back to. */
function toEvent(json: string, id: string): string {
  return `event: message\nid: ${id}\ndata: ${json}\n\n`;
}
