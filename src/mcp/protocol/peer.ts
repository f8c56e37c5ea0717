import { CallError } from "../../core/errors/errors.ts";
import { addAbortListener, LightSignal, removeAbortListener } from "../../core/execution/abort-listeners.ts";
import {
  isAnswer,
  isRequest,
  ProtocolError,
  type RequestId,
  RPC_CODES,
  type RpcError,
  type RpcFailure,
  type RpcMessage,
  type RpcNotification,
  type RpcRequest,
  type RpcResult,
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
}

/** What a peer stands on and answers with. */
export interface RpcPeerOptions {
  /** Gives the result of a request as JSON text. The signal aborts when the other side cancels the request or has gone. */
  answer(request: RpcRequest, signal: AbortSignal): Promise<string>;
  /** Hears what the other side tells, apart from cancellations. */
  onNotification?(notification: RpcNotification): void;
  /** Makes of what `answer` threw what the other side is told. */
  toError(thrown: unknown, request: RpcRequest): RpcError;
  /** Hears that a request of the other side will not be answered. */
  onCancel?(id: RequestId): void;
  /** Sends one message. */
  send(text: string, place: MessagePlace): void;
  /** Hears of answers to nothing. */
  onFault?(message: string): void;
}

/** How a request to the other side is made. */
export interface AskOptions {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** The request of the other side during which it is asked. */
  readonly during?: RequestId | undefined;
}

/** A request of the other side that has no answer yet. */
interface Running {
  readonly signal: LightSignal;
  isCancelled: boolean;
}

interface Pending {
  resolve(result: unknown): void;
  reject(reason: unknown): void;
}

/** One end of a JSON-RPC connection: requests of both sides, each answered once, cancelled, or ended with the connection. */
export class RpcPeer {
  readonly #options: RpcPeerOptions;
  readonly #running = new Map<RequestId, Running>();
  readonly #pending = new Map<RequestId, Pending>();
  #asked = 0;
  #isClosed = false;

  constructor(options: RpcPeerOptions) {
    this.#options = options;
  }

  /** How many requests of the other side have no answer yet. */
  get running(): number {
    return this.#running.size;
  }

  /** Takes one message of the other side. */
  receive(message: RpcMessage): void {
    if (this.#isClosed) return;
    if (isAnswer(message)) this.#settle(message);
    else if (isRequest(message)) void this.#answer(message);
    else if (message.method === "notifications/cancelled")
      this.cancel(message.params?.["requestId"] as RequestId);
    else this.#options.onNotification?.(message);
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

  /** Asks the other side: its result as it came, or a rejection with a `ProtocolError` or a `CallError`. */
  ask(
    method: string,
    params: object | undefined,
    { signal, timeoutMs, during }: AskOptions,
  ): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(closed());
    if (signal.aborted) return Promise.reject(new CallError("ABORTED", undefined, { stack: false }));
    const id = this.#asked++;
    return new Promise((resolve, reject) => {
      const place = during === undefined ? {} : { during };
      const end = (reason: CallError): void => {
        done();
        this.#options.send(
          writeCall("notifications/cancelled", { requestId: id, reason: reason.message }),
          place,
        );
        reject(reason);
      };
      const timer = setTimeout(
        () => end(new CallError("TIMEOUT", "There was no answer in time.")),
        timeoutMs,
      );
      const listener = { onAbort: () => end(new CallError("ABORTED", undefined, { stack: false })) };
      const done = (): void => {
        clearTimeout(timer);
        removeAbortListener(signal, listener);
        this.#pending.delete(id);
      };
      addAbortListener(signal, listener);
      this.#pending.set(id, {
        resolve: (result) => {
          done();
          resolve(result);
        },
        reject: (reason) => {
          done();
          reject(reason);
        },
      });
      this.#options.send(writeCall(method, params, id), place);
    });
  }

  /** Ends all that is under way, on both sides. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const pending of [...this.#pending.values()]) pending.reject(closed());
    const running = [...this.#running.values()];
    this.#running.clear();
    for (const { signal } of running) signal.abort(closed());
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

  #settle(answer: RpcResult | RpcFailure): void {
    const pending = this.#pending.get(answer.id as RequestId);
    if (pending === undefined) {
      this.#options.onFault?.("An answer came to a request that was not made, or is over.");
      return;
    }
    if ("result" in answer) pending.resolve(answer.result);
    else pending.reject(new ProtocolError(answer.error.code, answer.error.message, answer.error.data));
  }
}

function closed(): CallError {
  return new CallError("UNAVAILABLE", "The connection is closed.", { stack: false });
}
