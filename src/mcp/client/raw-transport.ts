import type { JSONRPCMessage, Transport, TransportSendOptions } from "@modelcontextprotocol/client";
import { CallError } from "../../core/errors/errors.ts";
import { isValueTooDeep } from "../../core/json/json-depth.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { toPlainLine } from "./plain-line.ts";
import { markOf, toOutgoing } from "./raw-mark.ts";
import type { RawOutcome, RawRequest } from "./raw-request.ts";
import { toRpcError } from "./rpc-error.ts";
import { standInFor, standInForHandshake } from "./stand-ins.ts";

type Message = Readonly<Record<string, unknown>>;
type Id = number | string;

/** Ids of requests that go past the SDK, which counts its own from 0. */
const FIRST_OWN_ID = 1_000_000_000;

/** Who hears what arrives unasked. */
export interface RawTransportWatcher {
  onNotification(method: string, params: Message): void;
  /** Returns false to leave the request to the SDK. */
  onServerRequest(id: Id, method: string, params: Message | undefined): boolean;
  onServerCancelled(id: Id): void;
  onOddity(message: string): void;
  onClose(): void;
}

/** Stands between the SDK and the real transport: keeps results whole, and hands the SDK stand-ins that its schemas accept. */
export class RawTransport implements Transport {
  onmessage?: Transport["onmessage"];
  onerror?: Transport["onerror"];
  onclose?: Transport["onclose"];
  /** Present, as the SDK looks for them, where the transport is one channel: an unanswered probe then means an older server. */
  declare readonly pid?: number | undefined;
  declare readonly stderr?: null;
  /** The raw answer to `initialize` or `server/discover`. */
  handshake: { readonly method: string; readonly result: Message } | undefined;
  /** Hears which request was answered after it had been dropped. */
  onLateAnswer: ((id: Id) => void) | undefined;
  /** Hears which request goes on after it had been dropped. */
  onLateProgress: ((id: Id) => void) | undefined;
  /** Whether the channel closed while the probe had no answer. */
  closedOnProbe = false;
  readonly #inner: Transport;
  readonly #watcher: RawTransportWatcher;
  /** Whom to tell, of those who went past the SDK, when the channel closes. */
  readonly #leftBehind = new Map<Id, () => void>();
  readonly #pending = new Map<Id, { readonly method: string; readonly request: RawRequest | undefined }>();
  #lastId = -1;
  #nextOwnId = FIRST_OWN_ID;
  #closed = false;

  constructor(inner: Transport, watcher: RawTransportWatcher) {
    this.#inner = inner;
    this.#watcher = watcher;
    if (inner.hasPerRequestStream !== true) Object.assign(this, { pid: undefined, stderr: null });
  }

  get hasPerRequestStream(): boolean {
    return this.#inner.hasPerRequestStream === true;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId;
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion?.(version);
  }

  async start(): Promise<void> {
    this.#inner.onmessage = (message) => this.#receive(message);
    this.#inner.onerror = (error) => this.onerror?.(error);
    this.#inner.onclose = () => this.#close();
    await this.#inner.start();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    const { method, id, params } = message as { method?: unknown; id?: unknown; params?: unknown };
    if (typeof method !== "string" || !isId(id)) return this.#inner.send(message, options);
    if (typeof id === "number") this.#lastId = Math.max(this.#lastId, id);
    const request = markOf(params);
    this.#pending.set(id, { method, request });
    if (request === undefined) return this.#inner.send(message, options);
    request.id = id;
    return this.#inner.send(toOutgoing(id, method, params as Message, request), {
      ...options,
      requestSignal: request.signal,
      onRequestStreamEnd: () => request.fail(streamEnded(method)),
    });
  }

  /**
   * Sends a request past the SDK, which has nothing to add where all requests share one channel.
   * Resolves when the request has ended or the channel is closed.
   */
  ask(request: RawRequest, params: Message): Promise<void> {
    const { method } = request;
    const id = this.#nextOwnId++;
    request.id = id;
    this.#pending.set(id, { method, request });
    return new Promise((resolve, reject) => {
      request.onEnd = (isGivenUp) => {
        if (isGivenUp) this.#cancel(id, params["_meta"]);
        resolve();
      };
      this.#leftBehind.set(id, resolve);
      this.#inner.send(toOutgoing(id, method, params, request)).catch(reject);
    });
  }

  /** Drops whatever is still to come for a request. */
  forget(request: RawRequest): void {
    if (request.id === undefined) return;
    request.isUnanswered = this.#pending.delete(request.id);
    this.#leftBehind.delete(request.id);
  }

  /** Fails the request of this id, whose answer cannot be used, if it is still waiting; tells whether it was. */
  fail(id: Id, failure: CallError): boolean {
    const request = this.#pending.get(id)?.request;
    if (request === undefined) return false;
    request.fail(failure);
    this.#pending.delete(id);
    return true;
  }

  #close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const { method } of this.#pending.values()) this.closedOnProbe ||= method === "server/discover";
    this.#watcher.onClose();
    this.onclose?.();
    for (const tell of this.#leftBehind.values()) tell();
  }

  #cancel(requestId: Id, meta: unknown): void {
    const params = {
      requestId,
      reason: "Nobody waits for it any more.",
      ...(isPlainObject(meta) && { _meta: meta }),
    };
    this.#inner.send({ jsonrpc: "2.0", method: "notifications/cancelled", params }).catch(() => {});
  }

  #receive(message: unknown): void {
    if (Array.isArray(message)) {
      for (const each of message) this.#receiveOne(each);
    } else this.#receiveOne(message);
  }

  #receiveOne(message: unknown): void {
    if (!isPlainObject(message)) {
      this.#watcher.onOddity("A message is no JSON object.");
      return;
    }
    const { method, id } = message;
    if (typeof method === "string") {
      const params = isPlainObject(message["params"]) ? message["params"] : undefined;
      if (!isId(id)) this.#notified(method, params ?? {}, message);
      else if (!this.#watcher.onServerRequest(id, method, params)) this.#forward(message);
    } else if (Object.hasOwn(message, "result") || Object.hasOwn(message, "error")) {
      this.#answered(message);
    } else this.#watcher.onOddity("A message is neither a request nor an answer.");
  }

  #notified(method: string, params: Message, message: Message): void {
    switch (method) {
      case "notifications/progress":
        this.#progressed(params);
        break;
      case "notifications/cancelled":
        if (isId(params["requestId"])) this.#watcher.onServerCancelled(params["requestId"]);
        this.#forward(message);
        break;
      case "notifications/subscriptions/acknowledged":
        this.#forward(message);
        break;
      default:
        this.#watcher.onNotification(method, params);
    }
  }

  #progressed(params: Message): void {
    const { progressToken, ...progress } = params;
    const id = this.#knownId(progressToken);
    const request = id === undefined ? undefined : this.#pending.get(id)?.request;
    const late = id === undefined ? this.#droppedId(progressToken) : undefined;
    if (late !== undefined) this.onLateProgress?.(late);
    if (request?.outcome !== undefined) return;
    try {
      request?.onProgress?.(progress);
    } catch (error) {
      this.#watcher.onOddity(`A progress listener threw: ${toPlainLine(String(error))}`);
    }
  }

  #answered(message: Message): void {
    const id = this.#knownId(message["id"]);
    if (id === undefined) {
      this.#strayAnswer(message);
      return;
    }
    const { method, request } = this.#pending.get(id) as { method: string; request: RawRequest | undefined };
    this.#pending.delete(id);
    const isError = isFailedAnswer(message);
    if (request === undefined) this.#answeredSdk(id, method, message, isError);
    else if (!isError) {
      request.settle(this.#toOutcome(method, message["result"]));
      if (!isOwn(id)) this.#forward({ jsonrpc: "2.0", id, result: standInFor(method) });
    } else {
      const error = toRpcError(message["error"]);
      request.settle({ kind: "error", error });
      if (!isOwn(id)) this.#forward({ jsonrpc: "2.0", id, error: { code: error.code, message: "" } });
    }
  }

  #toOutcome(method: string, result: unknown): RawOutcome {
    // A pipe has looked at the depth already; what the platform's own reader took may be of any.
    if (isPlainObject(result) && !(this.hasPerRequestStream && isValueTooDeep(result, Number.MAX_VALUE))) {
      return { kind: "result", result };
    }
    const what = isPlainObject(result) ? "a result that is nested too deeply" : "a result that is no object";
    const failure = new CallError("EXECUTION_ERROR", `The MCP server answered ${method} with ${what}.`);
    return { kind: "failure", failure };
  }

  #answeredSdk(id: Id, method: string, message: Message, isError: boolean): void {
    const { error, result, ...rest } = message;
    const isHandshake = method === "initialize" || method === "server/discover";
    if (isError || !isHandshake) {
      this.#forward({ ...rest, id, ...(isError ? { error } : { result }) });
      return;
    }
    if (isPlainObject(result)) this.handshake = { method, result };
    this.#forward({ jsonrpc: "2.0", id, result: standInForHandshake(method, result) });
  }

  /** Answers to what was given up are expected; answers to what was never asked are not. */
  #strayAnswer(message: Message): void {
    const id = this.#droppedId(message["id"]);
    if (id !== undefined) {
      this.onLateAnswer?.(id);
      return;
    }
    const said = toPlainLine((message["error"] as { message?: unknown } | undefined)?.message, 200);
    this.#watcher.onOddity(`An answer belongs to no request${said === "" ? "." : `: ${said}`}`);
  }

  /** The id of a request that was sent, and that nobody waits for. */
  #droppedId(given: unknown): number | undefined {
    const id = toNumber(given);
    if (id === undefined || id < 0) return undefined;
    return (isOwn(id) ? id < this.#nextOwnId : id <= this.#lastId) ? id : undefined;
  }

  /** Some servers send numbers back as text. */
  #knownId(id: unknown): Id | undefined {
    if (!isId(id)) return undefined;
    if (this.#pending.has(id)) return id;
    const number = toNumber(id);
    return number !== undefined && this.#pending.has(number) ? number : undefined;
  }

  #forward(message: Message): void {
    this.onmessage?.(message as unknown as JSONRPCMessage);
  }
}

function isOwn(id: Id): boolean {
  return typeof id === "number" && id >= FIRST_OWN_ID;
}

/** An answer that has both an error and a result has failed; some servers write `"error": null` beside every result. */
function isFailedAnswer(message: Message): boolean {
  return !Object.hasOwn(message, "result") || (Object.hasOwn(message, "error") && message["error"] !== null);
}

function toNumber(id: unknown): number | undefined {
  if (typeof id === "number") return id;
  return typeof id === "string" && /^\d{1,15}$/.test(id) ? Number(id) : undefined;
}

function isId(value: unknown): value is Id {
  return typeof value === "number" || typeof value === "string";
}

function streamEnded(method: string): CallError {
  return new CallError("UNAVAILABLE", `The stream ended before ${method} was answered; it may have run.`);
}
