import type { Identity } from "../../core/access/identity.ts";
import type { LightSignal } from "../../core/execution/cancellation.ts";
import {
  isRequest,
  isRpcId,
  ProtocolError,
  type RequestId,
  RPC_CODES,
  type RpcRequest,
  requestFault,
  toRpcError,
  toRpcMessage,
  writeFailure,
} from "../protocol/messages.ts";
import { FIRST_QUESTION, RpcPeer } from "../protocol/peer.ts";
import {
  claimedRevision,
  claimsRevision,
  type Era,
  envelopeFault,
  isModernRequest,
  MODERN_REVISIONS,
  unsupportedRevision,
} from "../protocol/revisions.ts";
import { ChangeStream } from "./change-stream.ts";
import type { ChannelServer } from "./mcp-server.ts";
import { type IncomingRequest, Peer } from "./peer-request.ts";

interface ServerConnectionOptions {
  readonly identity: Identity | undefined;
  /** Sends one message. */
  readonly send: (text: string) => void;
  /** Ends the channel, where the server ends the connection. */
  readonly onEnd: () => void;
  /** Streams of changes that a 2026-07-28 client holds open. @default 1_000 */
  readonly subscriptions?: number | undefined;
  /** Hears what is odd. @default nobody does */
  readonly onFault?: ((message: string) => void) | undefined;
}

/** One client over one channel in both directions: stdio, or a transport in memory. Its first request decides the era. */
export class ServerConnection {
  readonly #server: ChannelServer;
  readonly #options: ServerConnectionOptions;
  readonly #rpc: RpcPeer;
  readonly #stopHearing: () => void;
  readonly #peers: Partial<Record<Era, { readonly peer: Peer; readonly leave: () => void }>> = {};
  readonly #streams = new Map<RequestId, ChangeStream>();
  #era: Era | undefined;
  #isClosed = false;

  constructor(server: ChannelServer, options: ServerConnectionOptions) {
    this.#server = server;
    this.#options = options;
    this.#rpc = new RpcPeer({
      firstId: FIRST_QUESTION,
      answer: (request, signal) => this.#answer(request, signal),
      toError: toRpcError,
      send: (text) => options.send(text),
      onFault: (message) => options.onFault?.(message),
    });
    this.#stopHearing = server.onClose(() => this.#end());
  }

  /** How many requests have no answer yet. */
  get running(): number {
    return this.#rpc.running;
  }

  /** Takes what the client sent: one message, if it is one. A faulty request is answered where it has an id, anything else is skipped. */
  receive(value: unknown): void {
    if (this.#isClosed) return;
    const message = toRpcMessage(value);
    if (message === undefined) {
      this.#refuse(value);
      return;
    }
    if (isRequest(message)) {
      const fault = requestFault(message);
      if (fault !== undefined) {
        this.#refuse(message);
        return;
      }
      if (message.method === "subscriptions/listen" && this.#listen(message)) return;
    } else if ("method" in message && message.method === "notifications/cancelled") {
      const id = message.params?.["requestId"] as RequestId;
      this.#streams.get(id)?.drop();
      if (this.#streams.delete(id)) return;
    }
    this.#rpc.receive(message);
  }

  /** Ends what runs for the client; streams of changes are told that they end. */
  close(): void {
    if (this.#isClosed) return;
    for (const stream of [...this.#streams.values()]) stream.end();
    this.#isClosed = true;
    this.#stopHearing();
    this.#rpc.close();
    for (const known of Object.values(this.#peers)) known.leave();
  }

  #answer(request: RpcRequest, signal: AbortSignal): Promise<string> {
    const era = this.#eraOf(request);
    const { method, params = {}, id } = request;
    const { identity } = this.#options;
    const incoming: IncomingRequest = {
      id,
      method,
      params,
      signal,
      identity,
      abort: (reason) => (signal as unknown as LightSignal).abort(reason),
      notify: (name, given) => this.#rpc.notify(name, given, id),
      ask: (name, given, options) => this.#rpc.ask(name, given, { ...options, during: id }),
    };
    return this.#server.answer(this.#peerOf(era), incoming);
  }

  /** A stream of changes is answered when it ends, so that it is none of the requests that run. */
  #listen(request: RpcRequest): boolean {
    try {
      if (this.#eraOf(request) === "legacy") return false;
      const { subscriptions = 1_000, identity, send } = this.#options;
      if (this.#streams.has(request.id)) {
        throw new ProtocolError(RPC_CODES.invalidRequest, "A request with this id is still running.");
      }
      if (this.#streams.size >= subscriptions) {
        throw new ProtocolError(RPC_CODES.internalError, "Subscription limit reached");
      }
      const onEnd = (): void => void this.#streams.delete(request.id);
      const stream = new ChangeStream(this.#server, request, {
        identity,
        connection: this.#peerOf("modern"),
        send,
        onEnd,
      });
      this.#streams.set(request.id, stream);
      stream.open().catch((thrown) => {
        this.#streams.delete(request.id);
        stream.drop();
        send(writeFailure(request.id, toRpcError(thrown)));
      });
    } catch (thrown) {
      this.#options.send(writeFailure(request.id, toRpcError(thrown)));
    }
    return true;
  }

  #refuse(value: unknown): void {
    const { id } = (value ?? {}) as { readonly id?: unknown };
    const fault =
      typeof value === "object" && value !== null && "method" in value ? requestFault(value) : undefined;
    if (fault !== undefined && isRpcId(id)) this.#options.send(writeFailure(id, fault.toJSON()));
    else this.#options.onFault?.("A message was skipped: it is not one of JSON-RPC 2.0.");
  }

  /** Ends the connection from this side. */
  #end(): void {
    this.close();
    this.#options.onEnd();
  }

  #peerOf(era: Era): Peer {
    const known = this.#peers[era];
    if (known !== undefined) return known.peer;
    const { identity } = this.#options;
    const end = (): void => this.#end();
    // A 2026-07-28 client hears of what it listens to and nothing else.
    const lists = era === "modern" ? { lists: [] } : {};
    const notify = (method: string, params?: object): void => this.#rpc.notify(method, params);
    const peer = new Peer({ era, identity, notify, end, ...lists });
    this.#peers[era] = { peer, leave: this.#server.follow(peer) };
    return peer;
  }

  /** The era of a request; the first one, `server/discover` apart, decides it for the connection. */
  #eraOf({ method, params }: RpcRequest): Era {
    if (this.#era === "legacy") return "legacy";
    const isInitialize = method === "initialize" && !isModernRequest({ params: params ?? {} });
    if (this.#era === undefined && (isInitialize || !claimsRevision(params))) {
      this.#era = "legacy";
      return "legacy";
    }
    if (isInitialize) throw unsupportedRevision(textOf(params?.["protocolVersion"]));
    const fault = envelopeFault(params);
    if (fault !== undefined) throw fault;
    const revision = claimedRevision(params);
    if (revision === undefined || !MODERN_REVISIONS.includes(revision)) throw unsupportedRevision(revision);
    if (method !== "server/discover") this.#era = "modern";
    return "modern";
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
