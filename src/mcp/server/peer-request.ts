import { randomUUID } from "node:crypto";
import { type Identity, ownerOf } from "../../core/access/identity.ts";
import { isRequestId } from "../../core/execution/call-context.ts";
import { isPlainObject, toJsonTextOrNone } from "../../core/json/json-value.ts";
import type { CallerSide } from "../../core/operation/caller-side.ts";
import type { LogLine, Metadata } from "../../core/operation/operation-context.ts";
import { IDEMPOTENCY_META_KEY, REQUEST_ID_META_KEY } from "../names.ts";
import {
  invalidParams,
  metaOf,
  type Params,
  ProtocolError,
  type RequestId,
  RPC_CODES,
  traceIn,
} from "../protocol/messages.ts";
import type { RpcAskOptions } from "../protocol/peer.ts";
import { claimedRevision, type Era, META_KEYS } from "../protocol/revisions.ts";
import { MCP_LOG_LEVELS, type McpExtensions, type McpLogLevel, readExtensions } from "../provider.ts";
import {
  type AskableCapabilities,
  assertAskable,
  missingCapabilities,
  readCapabilities,
  toCallerSide,
} from "./caller-answers.ts";
import type { ListKind } from "./mcp-server.ts";
import type { McpClient } from "./mcp-server-options.ts";
import type { InputRequiredResult, MayGoOn, SuspendableRun, SuspendedCalls } from "./suspended-calls.ts";

/** One request as a channel hands it over. */
export interface IncomingRequest {
  readonly id: RequestId;
  readonly method: string;
  readonly params: Params;
  /** Aborts when the client cancels the request, leaves, or is ended; listened to with `addAbortListener` alone. */
  readonly signal: AbortSignal;
  readonly identity: Identity | undefined;
  /** Ends what runs for it, from this side. */
  abort(reason: unknown): void;
  /** A header of the HTTP request it came in, by its name in lower case. @default it did not come over HTTP */
  header?(name: string): string | undefined;
  /** Tells the client something that belongs to this request. */
  notify(method: string, params: object): void;
  /** Asks the client something in the middle of this request. @default it cannot be asked */
  ask?(method: string, params: object, options: Omit<RpcAskOptions, "during">): Promise<unknown>;
}

const CANNOT = { form: false, url: false, sampling: false, roots: false };

/** What a 2026-07-28 client that declares nothing can be asked: each question fails, and says what was not declared. */
const NOBODY: CallerSide = {
  extensions: {},
  elicit: async ({ mode = "form" }) => refuse(mode),
  sample: async () => refuse("sampling"),
  roots: async () => refuse("roots"),
};

function refuse(kind: keyof AskableCapabilities): never {
  assertAskable(kind, CANNOT);
  throw new Error("unreachable");
}

/** One request of a peer, with all that decides how it is answered. */
export class PeerRequest {
  readonly peer: Peer;
  readonly identity: Identity | undefined;
  readonly signal: AbortSignal;
  /** The `_meta` of the request; nobody has checked it. */
  readonly meta: Params | undefined;
  readonly #incoming: IncomingRequest;
  readonly #waiting: SuspendedCalls;

  constructor(peer: Peer, incoming: IncomingRequest, waiting: SuspendedCalls) {
    this.peer = peer;
    this.identity = incoming.identity;
    this.signal = incoming.signal;
    this.meta = metaOf(incoming.params);
    this.#incoming = incoming;
    this.#waiting = waiting;
  }

  /** Who is asking, as far as that decides how to answer. */
  get client(): McpClient {
    const { peer, meta, identity } = this;
    const info = peer.era === "modern" ? meta?.[META_KEYS.clientInfo] : peer.client["clientInfo"];
    const name = isPlainObject(info) ? info["name"] : undefined;
    return { name: typeof name === "string" ? name : undefined, identity };
  }

  /** What the client says it can be asked. */
  get capabilities(): AskableCapabilities {
    const { peer, meta } = this;
    return peer.era === "legacy" ? peer.capabilities : readCapabilities(meta?.[META_KEYS.clientCapabilities]);
  }

  /** The extensions the client says it knows, of those that pass through. */
  get extensions(): McpExtensions {
    const { peer, meta } = this;
    return peer.era === "legacy" ? peer.extensions : readExtensions(meta?.[META_KEYS.clientCapabilities]);
  }

  /** What a 2026-07-28 client sends back to go on with a call that waits; nothing for a new call. */
  get requestState(): unknown {
    return this.peer.era === "modern" ? this.#incoming.params["requestState"] : undefined;
  }

  /** What a 2026-07-28 client answers to questions, by their names. */
  get inputResponses(): Params {
    const { inputResponses } = this.#incoming.params;
    return isPlainObject(inputResponses) ? inputResponses : {};
  }

  /** The least important level that is told while this request runs; nothing means all. */
  get logLevel(): McpLogLevel | "off" | undefined {
    const { peer, meta } = this;
    return peer.era === "modern" ? (readLogLevel(meta?.[META_KEYS.logLevel]) ?? "off") : peer.level;
  }

  /** Milliseconds that an answer of its client is waited for. */
  get waitingMs(): number {
    return this.#waiting.waitingMs;
  }

  /** A header of the request; nothing where it is missing, or there are none. */
  header(name: string): string | undefined {
    return this.#incoming.header?.(name);
  }

  /** Whether it came over HTTP, where headers repeat what it says. */
  get hasHeaders(): boolean {
    return this.#incoming.header !== undefined;
  }

  /** Tells the client something that belongs to this request. */
  notify(method: string, params: object): void {
    this.#incoming.notify(method, params);
  }

  /** Ends what runs for it, from this side. */
  abort(reason: unknown): void {
    this.#incoming.abort(reason);
  }

  /** Asks a 2025 client something in the middle of this request. */
  ask(method: string, params: object, options: Omit<RpcAskOptions, "during">): Promise<unknown> {
    const { ask } = this.#incoming;
    if (ask === undefined) throw new ProtocolError(RPC_CODES.methodNotFound, "The client cannot be asked.");
    return ask(method, params, options);
  }

  /** The revision of MCP in use; nothing where no handshake told. */
  get revision(): string | undefined {
    const { peer, meta } = this;
    return peer.era === "modern" ? claimedRevision({ _meta: meta }) : peer.revision;
  }

  /** Names who keeps what this request leaves behind: the caller, else the session or connection, else all who are anonymous. */
  get owner(): string {
    const { peer, identity } = this;
    if (identity !== undefined) return ownerOf(identity);
    return peer.stays ? peer.id : "";
  }

  /** Who makes the request, over several of them: a session, or a caller who said who they are. */
  get party(): object | string | undefined {
    const { peer, identity } = this;
    if (peer.era === "legacy") return peer;
    return identity && ownerOf(identity);
  }

  /**
   * Runs what may ask the client something on the way, in whichever way this client can be asked. `mayGoOn` is asked about the caller that brings
   * the answer in another request.
   */
  run<T>(
    method: string,
    name: string,
    start: (run: SuspendableRun, exchange: RequestReporter) => Promise<T>,
    mayGoOn: MayGoOn,
  ): Promise<T | InputRequiredResult> {
    const { peer, signal } = this;
    if (peer.era === "modern" && this.#maySuspend()) {
      const { identity } = this;
      const binding = { method, name, owner: ownerOf(identity), identity };
      return this.#waiting.run(this, binding, { start, mayGoOn });
    }
    const exchange = new RequestReporter();
    exchange.attach(this);
    const caller = peer.era === "legacy" ? this.#legacyCaller() : this.#silentCaller();
    return start({ signal, caller }, exchange);
  }

  /** Throws what the 2026-07-28 revision wants to hear where a call failed for want of a capability of its client. */
  assertCapable(thrown: unknown): void {
    const requiredCapabilities = this.peer.era === "modern" ? missingCapabilities(thrown) : undefined;
    if (requiredCapabilities === undefined) return;
    const message = `Missing required client capabilities: ${Object.keys(requiredCapabilities).join(", ")}`;
    throw new ProtocolError(RPC_CODES.missingCapability, message, { requiredCapabilities });
  }

  /**
   * All calls of a session are those of one caller: a 2025 client knows that a question does not say which of them it is about. To a
   * 2026-07-28 client it does, and such a client may be a gateway with many callers of its own.
   */
  #legacyCaller(): CallerSide {
    const { peer } = this;
    const { capabilities: can, extensions } = peer;
    if (!isAskable(can)) return { party: peer, extensions };
    return toCallerSide(this, { party: peer, timeoutMs: this.waitingMs });
  }

  #silentCaller(): CallerSide {
    const { extensions } = this;
    return Object.keys(extensions).length === 0 ? NOBODY : { ...NOBODY, extensions };
  }

  /** A client that can be asked nothing, and answers nothing, needs no more than a plain call. */
  #maySuspend(): boolean {
    return isAskable(this.capabilities) || this.requestState !== undefined;
  }
}

function isAskable({ form, url, sampling, roots }: AskableCapabilities): boolean {
  return form || url || sampling || roots;
}

/** Takes a level of MCP for one; nothing for anything else. */
export function readLogLevel(value: unknown): McpLogLevel | undefined {
  return MCP_LOG_LEVELS.find((level) => level === value);
}

interface PeerOptions {
  readonly era: Era;
  readonly identity: Identity | undefined;
  /** Tells it something that belongs to no request of its own. @default nothing can be told */
  readonly notify?: ((method: string, params?: object) => void) | undefined;
  /** Lists whose changes it wants to hear of. @default all */
  readonly lists?: readonly ListKind[] | undefined;
  /** Ends it from this side, with what runs for it. @default it is one request, and ends with it */
  readonly end?: (() => void) | undefined;
  /** What tells it from all others. @default one that is made when it is first needed */
  readonly id?: string | undefined;
}

/** A client as the server knows it: a session, a connection, a stream of changes, or a single request. */
export class Peer {
  readonly era: Era;
  readonly identity: Identity | undefined;
  readonly notify: (method: string, params?: object) => void;
  readonly end: () => void;
  /** Whether it is a session or a connection, and not one request alone. */
  readonly stays: boolean;
  readonly #lists: readonly ListKind[] | undefined;
  #id: string | undefined;
  #client: Params = {};
  /** What a 2025 client can be asked. */
  capabilities: AskableCapabilities = CANNOT;
  /** The extensions that a 2025 client knows. */
  extensions: McpExtensions = {};
  /** What a 2025 session speaks, once that is settled. */
  revision: string | undefined;
  /** What a 2025 client asked for with `logging/setLevel`; all until it does. */
  level: McpLogLevel | undefined;
  /** What it subscribed to, by the URI it used. */
  readonly subscriptions = new Set<string>();

  constructor({ era, identity, notify = () => {}, lists, end, id }: PeerOptions) {
    this.#id = id;
    this.era = era;
    this.stays = end !== undefined;
    this.identity = identity;
    this.notify = notify;
    this.end = end ?? (() => {});
    this.#lists = lists;
  }

  /** What a 2025 client said in its `initialize`. */
  get client(): Params {
    return this.#client;
  }

  set client(client: Params) {
    const { capabilities } = client;
    this.#client = client;
    this.capabilities = readCapabilities(capabilities);
    this.extensions = readExtensions(capabilities);
  }

  /** Tells it from all others; nobody else knows it. */
  get id(): string {
    this.#id ??= randomUUID();
    return this.#id;
  }

  /** Whether it wants to hear of changes of a list. */
  hears(kind: ListKind): boolean {
    return this.#lists === undefined || this.#lists.includes(kind);
  }
}

/** The parameters of one `notifications/progress`, without the token. */
export interface ProgressParams {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

const LEVELS = { debug: "debug", info: "info", warn: "warning", error: "error" } as const;

const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;

/** What a request in progress can tell its client: how far it is, and what its handler says. */
export class RequestReporter {
  #request: Pick<PeerRequest, "meta" | "logLevel" | "notify"> | undefined;
  #reached = Number.NEGATIVE_INFINITY;
  #told = 0;

  /** Speaks through this request from now on, or through none. */
  attach(request: Pick<PeerRequest, "meta" | "logLevel" | "notify"> | undefined): void {
    this.#request = request;
  }

  /** Tells whatever a handler reports; only what goes up is told, as the protocol wants it. */
  progress(value: unknown): void {
    const said = this.#read(value);
    if (said !== undefined) this.tell(said);
  }

  /** Sends a progress notification where the client asked for any. */
  tell(progress: ProgressParams): void {
    const token = this.#request?.meta?.["progressToken"];
    if (token === undefined || progress.progress <= this.#reached) return;
    this.#reached = progress.progress;
    this.#send("notifications/progress", { ...progress, progressToken: token });
  }

  /** Tells what a handler said; `logger` names the operation. */
  log({ level, message, data }: LogLine, logger: string): void {
    const isData = data !== undefined && toJsonTextOrNone(data) !== undefined;
    this.message(LEVELS[level] ?? "info", isData ? { message, data } : message, logger);
  }

  /** The same with a level of MCP. */
  message(level: McpLogLevel, data: unknown, logger: string | undefined): void {
    if (this.#request === undefined || !isHeard(level, this.#request.logLevel)) return;
    this.#send("notifications/message", { level, data, ...(logger !== undefined && { logger }) });
  }

  #send(method: string, params: Record<string, unknown>): void {
    // A client that has left hears nothing; the call itself finds out by its signal.
    this.#request?.notify(method, params);
  }

  #read(value: unknown): ProgressParams | undefined {
    this.#told += 1;
    if (typeof value === "number") return Number.isFinite(value) ? { progress: value } : undefined;
    if (isPlainObject(value) && typeof (value["progress"] ?? value["done"]) === "number")
      return readFields(value);
    const counted = Math.max(this.#told, Number.isFinite(this.#reached) ? this.#reached + 1 : 1);
    const message = typeof value === "string" ? value : toJsonTextOrNone(value);
    return { progress: counted, ...(message !== undefined && { message }) };
  }
}

/** Tells whether a message is important enough. */
export function isHeard(level: McpLogLevel, least: McpLogLevel | "off" | undefined): boolean {
  if (least === "off") return false;
  return least === undefined || MCP_LOG_LEVELS.indexOf(level) >= MCP_LOG_LEVELS.indexOf(least);
}

/** What a request says about the trace it belongs to, and the key under which it must not run twice. */
export function metadataOf({ meta }: Pick<PeerRequest, "meta">): Metadata | undefined {
  if (meta === undefined) return undefined;
  const idempotencyKey = readIdempotencyKey(meta);
  const metadata = traceIn(meta);
  return idempotencyKey === undefined ? metadata : { ...metadata, idempotencyKey };
}

/** The keys of `_meta` under which callers give a request id, the first one that holds one counts. */
const REQUEST_ID_KEYS = [REQUEST_ID_META_KEY, "requestId", "request_id", "correlation_id"];

/** The request id a caller gave; one that is not short and printable is as good as none. */
export function givenRequestId({ meta }: Pick<PeerRequest, "meta">): string | undefined {
  if (meta === undefined) return undefined;
  for (const name of REQUEST_ID_KEYS) {
    const value = Object.hasOwn(meta, name) ? meta[name] : undefined;
    if (isRequestId(value)) return value;
  }
  return undefined;
}

/** A key that cannot be used is refused: its client counts on it. */
function readIdempotencyKey(meta: Readonly<Record<string, unknown>>): string | undefined {
  const key = Object.hasOwn(meta, IDEMPOTENCY_META_KEY) ? meta[IDEMPOTENCY_META_KEY] : undefined;
  if (key === undefined || (typeof key === "string" && IDEMPOTENCY_KEY.test(key))) return key;
  throw invalidParams(`_meta["${IDEMPOTENCY_META_KEY}"] must be 1 to 255 printable characters.`);
}

/** `{ done, of }` is `{ progress, total }` in the words of a loop. */
function readFields(value: Readonly<Record<string, unknown>>): ProgressParams | undefined {
  const { done, of, progress = done, total = of, message } = value;
  if (!Number.isFinite(progress)) return undefined;
  return {
    progress: progress as number,
    ...(Number.isFinite(total) && { total: total as number }),
    ...(typeof message === "string" && { message }),
  };
}
