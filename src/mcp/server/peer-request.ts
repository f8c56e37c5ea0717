import { type Identity, ownerOf } from "../../core/access/identity.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { CallerSide } from "../../core/operation/caller-side.ts";
import { type McpExtensions, readExtensions } from "../extensions.ts";
import { metaOf, type Params, ProtocolError, type RequestId, RPC_CODES } from "../protocol/messages.ts";
import type { AskOptions } from "../protocol/peer.ts";
import { claimedRevision, META_KEYS } from "../protocol/revisions.ts";
import { MCP_LOG_LEVELS, type McpLogLevel } from "../provider.ts";
import { toCallerSide } from "./ask-client.ts";
import {
  type AskableCapabilities,
  assertAskable,
  missingCapabilities,
  readCapabilities,
} from "./caller-answers.ts";
import { Exchange } from "./exchange.ts";
import type { McpClient } from "./mcp-server-options.ts";
import type { Peer } from "./peer.ts";
import type { InputRequiredResult, MayGoOn, SuspendableRun, WaitingCalls } from "./waiting-calls.ts";

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
  ask?(method: string, params: object, options: Omit<AskOptions, "during">): Promise<unknown>;
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
  readonly #waiting: WaitingCalls;
  readonly #waitingMs: number;

  constructor(peer: Peer, incoming: IncomingRequest, waiting: WaitingCalls, waitingMs: number) {
    this.peer = peer;
    this.identity = incoming.identity;
    this.signal = incoming.signal;
    this.meta = metaOf(incoming.params);
    this.#incoming = incoming;
    this.#waiting = waiting;
    this.#waitingMs = waitingMs;
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
    return readCapabilities(this.#declared);
  }

  /** The extensions the client says it knows, of those that pass through. */
  get extensions(): McpExtensions {
    return readExtensions(this.#declared);
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
  ask(method: string, params: object, options: Omit<AskOptions, "during">): Promise<unknown> {
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
   * Runs what may ask the client something on the way, in whichever way this client can be asked. `mayGoOn` is asked about whoever brings
   * the answer in another request.
   */
  run<T>(
    method: string,
    name: string,
    start: (run: SuspendableRun, exchange: Exchange) => Promise<T>,
    mayGoOn: MayGoOn,
  ): Promise<T | InputRequiredResult> {
    const { peer, signal } = this;
    if (peer.era === "modern" && this.#maySuspend()) {
      const { identity } = this;
      const binding = { method, name, owner: ownerOf(identity), identity };
      return this.#waiting.run(this, binding, { start, mayGoOn });
    }
    const exchange = new Exchange();
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
    return toCallerSide(this, { party: this.peer, timeoutMs: this.#waitingMs });
  }

  #silentCaller(): CallerSide {
    const { extensions } = this;
    return Object.keys(extensions).length === 0 ? NOBODY : { ...NOBODY, extensions };
  }

  get #declared(): unknown {
    const { peer, meta } = this;
    return peer.era === "modern" ? meta?.[META_KEYS.clientCapabilities] : peer.client["capabilities"];
  }

  /** A client that can be asked nothing, and answers nothing, needs no more than a plain call. */
  #maySuspend(): boolean {
    const can = this.capabilities;
    return can.form || can.url || can.sampling || can.roots || this.requestState !== undefined;
  }
}

/** Takes a level of MCP for one; nothing for anything else. */
export function readLogLevel(value: unknown): McpLogLevel | undefined {
  return MCP_LOG_LEVELS.find((level) => level === value);
}
