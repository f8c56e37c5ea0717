import type { Identity } from "../../core/access/identity.ts";
import { CallError } from "../../core/errors/errors.ts";
import { addAbortListener, LightSignal, removeAbortListener } from "../../core/execution/cancellation.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import {
  type Params,
  ProtocolError,
  type RequestId,
  RPC_CODES,
  type RpcError,
  type RpcNotification,
  type RpcRequest,
  readError,
  writeCall,
  writeFailure,
  writeResult,
} from "./messages.ts";

/** What a message that is sent belongs to, where a channel has more than one way to send it. */
export interface MessagePlace {
  /** The request of the other side that it answers. */
  readonly answers?: RequestId;
  /** The request of the other side during which it is sent. */
  readonly during?: RequestId;
  /** The request that it is, where it asks the other side for something. */
  readonly asks?: SentRequest;
}

/** The call that a request is part of, and whose it is. */
export interface CallOfRequest {
  /** For those who watch what passes; read by them alone, as it may have to be made. */
  readonly requestId?: string | undefined;
  readonly identity?: Identity | undefined;
}

/** A request to the other side, beside its text. */
export interface SentRequest extends Pick<RequestWaiter, "signal" | "inputSchema" | "call"> {
  readonly id: number;
  readonly method: string;
  readonly params: Params | undefined;
}

interface RpcPeerOptions {
  /** The id of the first request to the other side. @default 0 */
  readonly firstId?: number | undefined;
  /** Gives the result of a request as JSON text. The signal aborts when the other side cancels the request or has gone. */
  answer(request: RpcRequest, signal: AbortSignal): Promise<string>;
  /** Hears what the other side tells, apart from progress and from cancellations of what it asked. */
  onNotification?(notification: RpcNotification): void;
  /** Makes of what `answer` threw what the other side is told. */
  toError(thrown: unknown, request: RpcRequest): RpcError;
  /** Hears that a request of the other side will not be answered. */
  onCancel?(id: RequestId): void;
  /** Sends one message. */
  send(text: string, place: MessagePlace): void;
  /** Hears of what is no message, and of answers to nothing; `said` is what the other side says of it. */
  onFault?(message: string, said?: unknown): void;
  /** Hears which request was answered after it had been dropped. @default it is a fault */
  onLateAnswer?(id: number): void;
  /** Hears which request goes on after it had been dropped or answered, and how far it is. */
  onLateProgress?(id: number, progress: Params): void;
}

/** How a request to the other side ended: with what it sent, or with a failure on the way. */
export type RequestEnd =
  | { readonly kind: "result"; readonly result: unknown }
  | { readonly kind: "error"; readonly error: RpcError }
  | { readonly kind: "failure"; readonly failure: unknown };

/** Who waits for the answer to a request. */
export interface RequestWaiter {
  /** Hears once how the request ended, unless it is dropped before. */
  onEnd(end: RequestEnd): void;
  /** Hears the params of each `notifications/progress` of the request, without the token. @default none is asked for */
  readonly onProgress?: ((progress: Params) => void) | undefined;
  /** Aborts when nobody waits any more, for a channel where each request has an exchange of its own. */
  readonly signal?: AbortSignal | undefined;
  /** For `tools/call`: the input schema as listed, whose `x-mcp-header` members are repeated in headers. */
  readonly inputSchema?: Params | undefined;
  /** The call that it is part of. @default not known */
  readonly call?: CallOfRequest | undefined;
  /** Members of `_meta` as JSON text, besides those that the params have of it. @default none */
  readonly meta?: string | undefined;
}

/** The id of the first question to a client: SDK 1.x takes no cancellation of a request whose id is 0. */
export const FIRST_QUESTION = 1;

/** How a request to the other side is made. */
export interface RpcAskOptions {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** The request of the other side during which it is asked. */
  readonly during?: RequestId | undefined;
}

/** Parameters that JSON cannot hold: nothing was sent. */
export class UnwritableParams extends Error {
  override readonly name = "UnwritableParams";
}

/** A request to the other side that has no answer yet; emptied when it has. */
interface Pending {
  waiter: RequestWaiter | undefined;
}

/** A request of the other side that has no answer yet. */
interface Running {
  readonly signal: LightSignal;
  isCancelled: boolean;
}

/** One end of a JSON-RPC connection: requests of both sides, each answered once, cancelled, or ended with the connection. */
export class RpcPeer {
  readonly #options: RpcPeerOptions;
  readonly #running = new Map<RequestId, Running>();
  readonly #pending = new Map<number, Pending>();
  /** The id of the next request to the other side. */
  #asked: number;
  #isClosed = false;

  constructor(options: RpcPeerOptions) {
    this.#options = options;
    this.#asked = options.firstId ?? 0;
  }

  /** How many requests of the other side have no answer yet. */
  get running(): number {
    return this.#running.size;
  }

  /** Tells whether the other side was asked something under this id, be it answered or not. */
  hasAsked(given: unknown): boolean {
    const id = toOwnId(given);
    return id !== undefined && id >= (this.#options.firstId ?? 0) && id < this.#asked;
  }

  /** Takes what the other side sent: a message, or a list of them. What is none is a fault, and nothing else happens. */
  receive(value: unknown): void {
    if (this.#isClosed) return;
    if (Array.isArray(value)) {
      for (const each of value) this.#receive(each);
    } else this.#receive(value);
  }

  /** Ends a request of the other side, which is then not answered; tells whether it was running. */
  cancel(id: RequestId): boolean {
    const running = this.#running.get(id);
    if (running === undefined) return false;
    this.#running.delete(id);
    running.isCancelled = true;
    running.signal.abort(new CallError("ABORTED", "The caller cancelled the call.", { stack: false }));
    this.#options.onCancel?.(id);
    return true;
  }

  /** Tells the other side something; `during` is the request of theirs it belongs to. */
  notify(method: string, params?: object, during?: RequestId): void {
    if (this.#isClosed) return;
    this.#options.send(writeCall(method, params), during === undefined ? {} : { during });
  }

  /** Sends a request and gives its id; throws `UnwritableParams`, and a `CallError` where the connection is closed. */
  request(method: string, params: Params | undefined, waiter: RequestWaiter, during?: RequestId): number {
    if (this.#isClosed) throw closed();
    const id = this.#asked;
    const { onProgress, meta = "" } = waiter;
    // Params are not copied for members of `_meta`: these are written as text.
    const token = onProgress === undefined ? "" : `"progressToken":${id}`;
    let text: string;
    try {
      text = writeCall(method, params, id, token === "" || meta === "" ? token + meta : `${token},${meta}`);
    } catch (cause) {
      throw new UnwritableParams("The params cannot be written as JSON.", { cause });
    }
    this.#asked += 1;
    this.#pending.set(id, { waiter });
    const { signal, inputSchema, call } = waiter;
    const asks = { id, method, params, signal, inputSchema, call };
    this.#options.send(text, during === undefined ? { asks } : { asks, during });
    return id;
  }

  /** Waits no longer for the answer to a request; tells whether it had none yet. */
  drop(id: number): boolean {
    return this.#take(id) !== undefined;
  }

  /** Ends a request that will have no answer; tells whether it had none yet. */
  fail(id: number, failure: unknown): boolean {
    return this.#end(id, { kind: "failure", failure });
  }

  /** Asks the other side: its result as it came, or a rejection with a `ProtocolError` or a `CallError`. */
  ask(
    method: string,
    params: object | undefined,
    { signal, timeoutMs, during }: RpcAskOptions,
  ): Promise<unknown> {
    if (signal.aborted) return Promise.reject(new CallError("ABORTED", undefined, { stack: false }));
    return new Promise((resolve, reject) => {
      let id: number | undefined;
      const giveUp = (reason: CallError): void => {
        stop();
        if (id === undefined || !this.drop(id)) return;
        this.notify("notifications/cancelled", { requestId: id, reason: reason.message }, during);
        reject(reason);
      };
      const listener = { onAbort: () => giveUp(new CallError("ABORTED", undefined, { stack: false })) };
      const timer = setTimeout(
        () => giveUp(new CallError("TIMEOUT", "There was no answer in time.")),
        timeoutMs,
      );
      const stop = (): void => {
        clearTimeout(timer);
        removeAbortListener(signal, listener);
      };
      const onEnd = (end: RequestEnd): void => {
        stop();
        if (end.kind === "result") resolve(end.result);
        else if (end.kind === "failure") reject(end.failure);
        else reject(new ProtocolError(end.error.code, end.error.message, end.error.data));
      };
      addAbortListener(signal, listener);
      try {
        id = this.request(method, params as Params | undefined, { onEnd }, during);
      } catch (thrown) {
        stop();
        reject(thrown);
      }
    });
  }

  /** Ends all that is under way, on both sides. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const id of [...this.#pending.keys()]) this.fail(id, closed());
    const running = [...this.#running.values()];
    this.#running.clear();
    for (const { signal } of running) signal.abort(closed());
  }

  #receive(message: unknown): void {
    if (!isPlainObject(message)) {
      this.#options.onFault?.("A message is no JSON object.");
      return;
    }
    const { method, id, params } = message;
    if (typeof method === "string") {
      const hasId = typeof id === "number" || typeof id === "string";
      const call = params === undefined || isPlainObject(params) ? message : { ...message, params: {} };
      if (hasId) void this.#answer(call as unknown as RpcRequest);
      else this.#hear(call as unknown as RpcNotification);
    } else if (Object.hasOwn(message, "result") || Object.hasOwn(message, "error")) {
      this.#settle(message);
    } else this.#options.onFault?.("A message is neither a request nor an answer.");
  }

  #hear(notification: RpcNotification): void {
    const { method, params = {} } = notification;
    const isOfRunning = method === "notifications/cancelled" && this.cancel(params["requestId"] as RequestId);
    if (isOfRunning) return;
    if (method === "notifications/progress") this.#progress(params);
    else this.#options.onNotification?.(notification);
  }

  #progress({ progressToken, ...progress }: Params): void {
    const id = toOwnId(progressToken);
    if (id === undefined) return;
    const waiter = this.#pending.get(id)?.waiter;
    if (waiter === undefined) {
      if (id < this.#asked) this.#options.onLateProgress?.(id, progress);
      return;
    }
    try {
      waiter.onProgress?.(progress);
    } catch (error) {
      this.#options.onFault?.("A progress listener threw.", String(error));
    }
  }

  #settle(answer: Params): void {
    const { id: given, result, error } = answer;
    const id = toOwnId(given);
    if (id !== undefined && this.#pending.has(id)) {
      this.#end(
        id,
        isFailedAnswer(answer) ? { kind: "error", error: readError(error) } : { kind: "result", result },
      );
    } else if (id !== undefined && id < this.#asked && this.#options.onLateAnswer !== undefined) {
      this.#options.onLateAnswer(id);
    } else {
      this.#options.onFault?.(
        "An answer belongs to no request.",
        isPlainObject(error) ? error["message"] : undefined,
      );
    }
  }

  #end(id: number, end: RequestEnd): boolean {
    const waiter = this.#take(id);
    waiter?.onEnd(end);
    return waiter !== undefined;
  }

  /** Removes and returns the waiter; the entry is emptied, because an old table of the Map may still hold it (see `LinkedSet`). */
  #take(id: number): RequestWaiter | undefined {
    const pending = this.#pending.get(id);
    const waiter = pending?.waiter;
    if (pending !== undefined) pending.waiter = undefined;
    this.#pending.delete(id);
    return waiter;
  }

  async #answer(request: RpcRequest): Promise<void> {
    const { id } = request;
    if (this.#running.has(id)) {
      // The answer to one would be taken for that to the other.
      const error = { code: RPC_CODES.invalidRequest, message: "A request with this id is still running." };
      this.#send(writeFailure(id, error), {});
      return;
    }
    const signal = new LightSignal();
    const running: Running = { signal, isCancelled: false };
    this.#running.set(id, running);
    let text: string;
    try {
      text = writeResult(id, await this.#options.answer(request, signal as unknown as AbortSignal));
    } catch (thrown) {
      text = writeFailure(id, this.#options.toError(thrown, request));
    }
    if (this.#running.get(id) === running) this.#running.delete(id);
    // A request that was cancelled is not answered.
    if (!running.isCancelled && !this.#isClosed) this.#send(text, { answers: id });
  }

  /** A channel that cannot send must not end the process. */
  #send(text: string, place: MessagePlace): void {
    try {
      this.#options.send(text, place);
    } catch {
      this.#options.onFault?.("An answer could not be sent.");
    }
  }
}

/** An answer that has both an error and a result has failed; some peers write `"error": null` beside every result. */
function isFailedAnswer(answer: Params): boolean {
  return !Object.hasOwn(answer, "result") || (Object.hasOwn(answer, "error") && answer["error"] !== null);
}

/** The id of a request of ours, which some peers send back as text. */
function toOwnId(id: unknown): number | undefined {
  if (typeof id === "number") return Number.isInteger(id) && id >= 0 ? id : undefined;
  return typeof id === "string" && /^\d{1,16}$/.test(id) ? Number(id) : undefined;
}

function closed(): CallError {
  return new CallError("UNAVAILABLE", "The connection is closed.", { stack: false });
}
