// Long: a session of 2025 is one state machine of streams, answers, questions and what it takes over from other replicas.
import { randomInt, randomUUID } from "node:crypto";
import { type Identity, ownerOf } from "../../../core/access/identity.ts";
import {
  addAbortListener,
  type LightSignal,
  removeAbortListener,
} from "../../../core/execution/cancellation.ts";
import { whenExpired } from "../../../http/caller.ts";
import { EVENT_STREAM_HEADERS, EventStream } from "../../../http/event-stream.ts";
import type { HttpAnswer, HttpRequest } from "../../../http/exchange.ts";
import {
  isRequest,
  type Params,
  type RequestId,
  RPC_CODES,
  type RpcMessage,
  type RpcRequest,
  requestFault,
  toRpcError,
  toRpcMessage,
  writeFailure,
} from "../../protocol/messages.ts";
import { FIRST_QUESTION, type MessagePlace, RpcPeer } from "../../protocol/peer.ts";
import { initializeFault, LEGACY_REVISIONS } from "../../protocol/revisions.ts";
import type { ChannelServer, ServerShare } from "../mcp-server.ts";
import { Peer, readLogLevel } from "../peer-request.ts";
import {
  type EventBudget,
  type EventPlace,
  readEventId,
  type SessionEventBounds,
  SessionEvents,
  STANDING_STREAM,
} from "./http-session-events.ts";
import { answeredIdOf, refuse } from "./mcp-endpoint.ts";
import type { SealedSession, SessionFacts } from "./sealed-sessions.ts";
import type { FoundStream, LoggedStream, SessionEventLog } from "./session-event-log.ts";
import type { NoteChange, SessionNote, SessionNotes } from "./session-notes.ts";

/** Bounds of one session. */
export interface SessionBounds extends SessionEventBounds {
  readonly sessionRequests: number;
  readonly streamBytes: number;
}

interface SharedSession extends SealedSession, Pick<ServerShare, "replica" | "leads"> {
  /** Whether it was opened before, by another replica or by this one. */
  readonly isOpen: boolean;
}

/** What a session belongs to. */
export interface HttpSessionOptions {
  readonly identity: Identity | undefined;
  readonly bounds: SessionBounds;
  readonly budget: EventBudget;
  /** What other replicas know of it. @default it is of this process alone */
  readonly shared?: SharedSession | undefined;
  /** Where other replicas find what goes over its streams. @default nowhere */
  readonly log?: SessionEventLog | undefined;
  /** What replicas note of sessions. @default nobody notes anything */
  readonly notes?: SessionNotes | undefined;
  /** Hears of what the log did not keep. */
  readonly onWarning: (message: string, cause?: unknown) => void;
  /** Hears that something ended, and the session may now be idle. */
  readonly onRest: (session: HttpSession) => void;
  readonly onEnd: (session: HttpSession) => void;
}

/** What clients say of a whole session. */
const NOTED = new Set(["logging/setLevel", "resources/subscribe", "resources/unsubscribe"]);

/** The name of a stream, and the replica at which it began. */
const STREAM_OF_REPLICA = /^([0-9a-f]{8})-./;

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

/** Ids of questions that one replica has: which one asked can be told from an answer. Sessions begin somewhere in the first half of them. */
const REPLICA_IDS = 2 ** 20;

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
  /** Whether the log has all that went over the stream. */
  isLogged: boolean;
}

/** A 2025 client over HTTP. */
export class HttpSession {
  readonly id: string;
  readonly owner: string;
  readonly #server: ChannelServer;
  readonly #options: HttpSessionOptions;
  readonly #peer: Peer;
  readonly #rpc: RpcPeer;
  readonly #events: SessionEvents;
  readonly #leave: () => void;
  readonly #posts = new Map<RequestId, Post>();
  /** Who reads which stream that a client came back to, or the standing one. */
  readonly #readers = new Map<EventStream, string>();
  /** The name of the stream for what belongs to no request. */
  readonly #standingName: string;
  #standing: EventStream | undefined;
  /** Whether the client has ever opened the stream for what belongs to no request. */
  #hasStandingStream = false;
  #exchanges = 0;
  /** Looks for posts that take long; there while there may be one, as a timer for each would cost more than the look-up of its tool. */
  #timer: NodeJS.Timeout | undefined;
  #isEnded = false;
  /** Whether other replicas know what the client has asked for. */
  #isNoted: boolean;
  /** Who makes the request that is being read right now: a renewed token may have other scopes. */
  #asking: Identity | undefined;

  constructor(server: ChannelServer, options: HttpSessionOptions) {
    const { identity, bounds, budget, shared } = options;
    this.id = shared?.text ?? randomUUID();
    this.#server = server;
    this.#options = options;
    this.#isNoted = options.notes !== undefined && shared !== undefined;
    this.#standingName = this.#nameStream(STANDING_STREAM);
    this.owner = ownerOf(identity);
    this.#asking = identity;
    this.#events = new SessionEvents(bounds, { owner: this.owner, budget });
    this.#rpc = new RpcPeer({
      firstId: shared === undefined ? FIRST_QUESTION : firstIdOf(shared.replica),
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
      id: shared?.facts.id,
    });
    if (shared?.isOpen === true) {
      this.#peer.client = shared.facts.client;
      this.#peer.revision = shared.facts.revision;
    }
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

  /** What other replicas know of it; nothing where it is of this process alone. */
  get facts(): SessionFacts | undefined {
    return this.#options.shared?.facts;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Whether the client has asked for something that would be forgotten with the session, without a word. */
  get hasSubscriptions(): boolean {
    return this.#peer.subscriptions.size > 0 && !this.#isNoted;
  }

  /** Takes over what the client said at other replicas. */
  async apply({ level, subscriptions }: SessionNote): Promise<void> {
    const { subscriptions: own } = this.#peer;
    const ask = (method: string, params: Params): Promise<unknown> =>
      this.#ask({ jsonrpc: "2.0", id: method, method, params }, new AbortController().signal);
    const missing = subscriptions.filter((uri) => !own.has(uri));
    const gone = [...own].filter((uri) => !subscriptions.includes(uri));
    await Promise.allSettled([
      ...(level === undefined || level === this.#peer.level ? [] : [ask("logging/setLevel", { level })]),
      ...missing.map((uri) => ask("resources/subscribe", { uri })),
      ...gone.map((uri) => ask("resources/unsubscribe", { uri })),
    ]);
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
    if (this.#isEnded) return refuseUnknown(null);
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
    const asker = request.isLed === true ? undefined : this.#findAsker(read);
    if (asker !== undefined) {
      return refuseElsewhere("The question that this answers was asked by another replica of the server", {
        replica: asker,
        lost: () => refuseLost("The replica that asked this question is gone, and its call with it"),
      });
    }
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
        isLogged: this.#options.log !== undefined && this.#options.shared !== undefined,
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
    const id = answeredIdOf(body);
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

  /** The replica that asked what one of these messages answers; nothing where that is this one, or there is no other. */
  #findAsker(messages: readonly RpcMessage[]): string | undefined {
    const { shared } = this.#options;
    if (shared === undefined) return undefined;
    for (const message of messages) {
      if ("method" in message || this.#rpc.hasAsked(message.id)) continue;
      const replica = replicaOf(Number(message.id));
      if (replica !== undefined && replica !== shared.replica) return replica;
    }
    return undefined;
  }

  /** A stream is resumed where it began: its name says where that is. */
  #nameStream(name: string): string {
    const { shared } = this.#options;
    return shared === undefined ? name : `${shared.replica}-${name}`;
  }

  /** Of two requests that share an id, the answer to one would be taken for that to the other. */
  #admitRequests(requests: readonly RpcRequest[], body: unknown): HttpAnswer | undefined {
    const id = answeredIdOf(body);
    const ids = new Set(requests.map((request) => request.id));
    if (requests.some((request) => this.#posts.has(request.id)) || ids.size < requests.length) {
      return refuse(400, "A request with this id is still running.", { code: RPC_CODES.invalidRequest, id });
    }
    if (this.running + requests.length <= this.#options.bounds.sessionRequests) return undefined;
    const message = `More than ${this.#options.bounds.sessionRequests} requests of this session are running.`;
    return refuse(429, message, { id, headers: { "retry-after": "1" } });
  }

  #answer(request: RpcRequest, signal: AbortSignal): Promise<string> {
    const { method, params = {} } = request;
    const fault = requestFault(request) ?? (method === "initialize" ? initializeFault(params) : undefined);
    if (fault !== undefined) throw fault;
    const answering = this.#ask(request, signal);
    return this.#options.notes !== undefined && NOTED.has(method)
      ? this.#note(answering, request)
      : answering;
  }

  /** Notes what was just asked for, before the client is told that it holds. */
  async #note(answering: Promise<string>, { method, params = {} }: RpcRequest): Promise<string> {
    const answer = await answering;
    const { notes, shared, onWarning } = this.#options;
    const change = readChange(method, params);
    if (notes === undefined || shared === undefined || change === undefined) return answer;
    await notes.write(shared.facts, change).catch((cause: unknown) => {
      this.#isNoted = false;
      onWarning("What a client asked for in its session is known to this replica alone.", cause);
    });
    return answer;
  }

  #ask({ id, method, params = {} }: RpcRequest, signal: AbortSignal): Promise<string> {
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
      const id = this.#events.keep(this.#standingName, text);
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
    const stream = post.stream as string;
    const id = this.#events.keep(stream, text);
    const { place = 0 } = readEventId(id) ?? {};
    this.#tell(post, (log, name) => log.append(name, { place, json: text }));
    post.reader?.push(toEvent(text, id));
  }

  /** Answers what was posted with a stream from now on. */
  #stream(post: Post): void {
    if (post.stream !== undefined) return;
    post.stream = this.#nameStream(randomUUID());
    this.#tell(post, (log, name) => log.open(name, [...post.open]));
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
    if (post.stream !== undefined) {
      this.#events.markAnswered(post.stream);
      this.#tell(post, (log, name) => log.end(name));
    }
    post.reader?.end();
    post.settle?.({ status: 200, headers: { ...EVENT_STREAM_HEADERS, "mcp-session-id": this.id }, body: "" });
  }

  /** Writes to the log, and waits for nothing: the client that listens has its messages first. */
  #tell(post: Post, write: (log: SessionEventLog, name: LoggedStream) => Promise<void>): void {
    const { log, shared, onWarning } = this.#options;
    if (!post.isLogged || log === undefined || shared === undefined || post.stream === undefined) return;
    write(log, loggedName(shared, post.stream)).catch((cause) => {
      if (!post.isLogged) return;
      post.isLogged = false;
      onWarning("What went over a stream was not kept: it cannot be resumed at another replica.", cause);
    });
  }

  /** Opens the stream for what belongs to no request, or gives the rest of one that broke. */
  #read(request: HttpRequest, identity: Identity | undefined): Promise<HttpAnswer> | HttpAnswer {
    const last = request.header("last-event-id") ?? "";
    const event = readEventId(last);
    if (last !== "" && event === undefined) return refuseEvent();
    if (event !== undefined && !this.#events.knows(event))
      return this.#readElsewhere(event, request, identity);
    if (event === undefined && this.#standing !== undefined) {
      return refuse(409, "The stream of this session is being read already.");
    }
    return this.#readHere(event, identity);
  }

  #readHere(event: EventPlace | undefined, identity: Identity | undefined): HttpAnswer {
    const { stream } = event ?? { stream: this.#standingName };
    const refusal = this.#admitReader(stream);
    if (refusal !== undefined) return refusal;
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

  /** A client that comes back to a stream takes it over. */
  #admitReader(stream: string): HttpAnswer | undefined {
    const read = new Set(this.#readers.values()).add(stream);
    if (read.size <= MAX_READERS) return undefined;
    const message = `More than ${MAX_READERS} streams of this session are being read.`;
    return refuse(429, message, { headers: { "retry-after": "1" } });
  }

  /** Gives the rest of a stream that is not known here: where requests are led, the replica at which it began is asked first. */
  #readElsewhere(
    event: EventPlace,
    request: HttpRequest,
    identity: Identity | undefined,
  ): Promise<HttpAnswer> | HttpAnswer {
    const { shared } = this.#options;
    const [, replica] = STREAM_OF_REPLICA.exec(event.stream) ?? [];
    if (replica === undefined || !shared?.leads || request.isLed === true || replica === shared.replica) {
      return this.#readLogged(event, identity);
    }
    const elsewhere = refuseElsewhere("The stream began at another replica of the server");
    const otherwise = async (isGone: boolean): Promise<HttpAnswer> => {
      if (event.stream === `${replica}-${STANDING_STREAM}`) return this.#takeOver(identity);
      const logged = await this.#readLogged(event, identity);
      if (logged.status !== 503 || !isGone) return logged;
      return refuseLost("The replica that ran the calls of this stream is gone");
    };
    return { ...elsewhere, heldBy: { replica, otherwise } };
  }

  /** Goes on with the stream for what belongs to no request in the place of a replica that is gone: what it would have told is not known. */
  #takeOver(identity: Identity | undefined): HttpAnswer {
    if (this.#isEnded) return refuseUnknown(null);
    const answer = this.#readHere(undefined, identity);
    if (answer.status === 200) this.#server.tellAll(this.#peer);
    return answer;
  }

  /** Gives the rest of a stream that began at another replica, if the log has it. */
  async #readLogged({ stream, place }: EventPlace, identity: Identity | undefined): Promise<HttpAnswer> {
    const { log, shared, onWarning } = this.#options;
    const leaving = new AbortController();
    const found =
      shared &&
      (await log?.find(loggedName(shared, stream), place, leaving.signal).catch((cause: unknown) => {
        onWarning("A stream of another replica could not be looked for.", cause);
        return undefined;
      }));
    if (this.#isEnded) return refuseUnknown(null);
    if (found === undefined) {
      const isElsewhere = !stream.startsWith(this.#nameStream(""));
      return isElsewhere
        ? refuseElsewhere("The stream began at another replica of the server")
        : refuseEvent();
    }
    const refusal = this.#admitReader(stream);
    if (refusal !== undefined) return refusal;
    for (const [before, name] of this.#readers) if (name === stream) before.end();
    const reader = this.#openReader(() => {
      cancelExpiry();
      this.#readers.delete(reader);
      leaving.abort();
    });
    const cancelExpiry = whenExpired(identity, () => reader.end());
    this.#exchanges += 1;
    this.#readers.set(reader, stream);
    void this.#copy(found, stream, reader);
    return { status: 200, headers: { ...EVENT_STREAM_HEADERS, "mcp-session-id": this.id }, body: reader };
  }

  async #copy({ asked, events }: FoundStream, stream: string, reader: EventStream): Promise<void> {
    try {
      for await (const { place, json } of events) reader.push(toEvent(json, `${place}:${stream}`));
    } catch (thrown) {
      this.#options.onWarning("The rest of a stream of another replica is lost.", thrown);
      const message =
        "The replica that ran this call cannot be reached; whether it did its work is not known.";
      const error = { code: RPC_CODES.internalError, message, data: { reason: "replica_lost" } };
      for (const id of asked) reader.push(`event: message\ndata: ${writeFailure(id, error)}\n\n`);
    }
    reader.end();
  }

  #attach(reader: EventStream, stream: string): void {
    if (stream === this.#standingName) {
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

/** The same words whatever is wrong, so that nobody learns which sessions exist. */
export function refuseUnknown(id: RequestId | null): HttpAnswer {
  return refuse(404, "There is no such session; initialize again.", { code: -32_001, id });
}

/** Which replica holds something, and what is said where it is gone. */
interface HeldByReplica {
  readonly replica: string;
  lost(): HttpAnswer;
}

/** Refuses what only another replica can take; sent again, it may reach that one. */
function refuseElsewhere(why: string, held?: HeldByReplica): HttpAnswer {
  const answer = refuse(503, `${why}; send the same request again to reach it.`, {
    code: RPC_CODES.heldElsewhere,
    headers: { "retry-after": "1" },
    data: { reason: "held_elsewhere" },
  });
  if (held === undefined) return answer;
  const { replica, lost } = held;
  return { ...answer, heldBy: { replica, otherwise: (isGone) => (isGone ? lost() : answer) } };
}

/** Refuses what a replica held that is gone. */
function refuseLost(why: string): HttpAnswer {
  return refuse(410, `${why}; whether it did its work is not known.`, { data: { reason: "replica_lost" } });
}

/** What a request that was answered changes of its session. */
function readChange(method: string, { level, uri }: Params): NoteChange | undefined {
  const known = readLogLevel(level);
  if (method === "logging/setLevel") return known && { kind: "level", level: known };
  if (typeof uri !== "string") return undefined;
  return { kind: method === "resources/subscribe" ? "subscribed" : "unsubscribed", uri };
}

/** The id of the first question of a session at a replica. */
function firstIdOf(replica: string): number {
  return Number.parseInt(replica, 16) * REPLICA_IDS + randomInt(FIRST_QUESTION, REPLICA_IDS / 2);
}

/** The replica whose questions have an id like this; nothing where none has. */
function replicaOf(id: number): string | undefined {
  const number = Math.floor(id / REPLICA_IDS);
  return number >= 0 && number < 2 ** 32 ? number.toString(16).padStart(8, "0") : undefined;
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

function refuseEvent(): HttpAnswer {
  return refuse(400, "The Last-Event-ID is none of this session's.");
}

function loggedName({ facts }: SharedSession, stream: string): LoggedStream {
  return { owner: facts.owner, session: facts.id, stream };
}

/** Writes a message as an event that a client can come back to. */
function toEvent(json: string, id: string): string {
  return `event: message\nid: ${id}\ndata: ${json}\n\n`;
}
