import { type CallError, isCallError } from "../../core/errors/errors.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { McpConnection, McpRequestOptions } from "../../mcp/client/mcp-connection.ts";
import type { CheckList } from "./check-report.ts";

type Params = Readonly<Record<string, unknown>>;

/** How a request ended. */
export type PeerAnswer =
  | { readonly kind: "result"; readonly result: Params }
  /** A JSON-RPC error; the message is the server's own. */
  | { readonly kind: "error"; readonly code: number; readonly message: string }
  /** No answer, or none that could be read; the reason is ours. One that was busy told of progress until time was up. */
  | {
      readonly kind: "failure";
      readonly reason: string;
      readonly isLost: boolean;
      readonly isBusy?: boolean;
      /** The HTTP status in place of an answer. */
      readonly status?: number;
    };

/** What a check asks, and where it says what came of it. */
export interface PeerCheck {
  readonly list: CheckList;
  readonly peer: McpPeer;
}

/** Losses of the connection after which nothing more is asked. */
const MOST_LOSSES = 5;
/** Milliseconds that a server has to come back. */
const COMEBACK_MS = 5_000;
const POLL_MS = 50;

/** A server under check: requests tell how they ended, and reject only when the whole check is aborted. */
export class McpPeer {
  readonly connection: McpConnection;
  readonly timeoutMs: number;
  readonly #signal: AbortSignal | undefined;
  #losses = 0;

  constructor(connection: McpConnection, timeoutMs: number, signal?: AbortSignal) {
    this.connection = connection;
    this.timeoutMs = timeoutMs;
    this.#signal = signal;
  }

  /** Whether it was lost so often that asking on makes no sense. */
  get isGone(): boolean {
    return this.#losses >= MOST_LOSSES;
  }

  get isModern(): boolean {
    return this.connection.server.protocolVersion >= "2026";
  }

  async ask(method: string, params?: Params, options: McpRequestOptions = {}): Promise<PeerAnswer> {
    if (this.isGone) return { kind: "failure", reason: "The connection was lost too often.", isLost: true };
    await this.#comeback();
    const signals = [this.#signal, options.signal].filter((signal) => signal !== undefined);
    const signal = signals.length > 1 ? AbortSignal.any(signals) : signals[0];
    let isBusy = false;
    const onProgress: McpRequestOptions["onProgress"] = (progress) => {
      isBusy = true;
      options.onProgress?.(progress);
    };
    try {
      const result = await this.connection.request(method, params, {
        ...options,
        ...(method === "tools/call" && { onProgress }),
        timeoutMs: this.timeoutMs,
        signal,
      });
      return isPlainObject(result)
        ? { kind: "result", result }
        : { kind: "failure", reason: "The result is no object.", isLost: false };
    } catch (thrown) {
      this.#signal?.throwIfAborted();
      return this.#failed(thrown, isBusy);
    }
  }

  #failed(thrown: unknown, isBusy: boolean): PeerAnswer {
    if (!isCallError(thrown)) throw thrown;
    const { code, details, cause } = thrown;
    const rpcCode = isPlainObject(details) ? details["rpcCode"] : undefined;
    // Those two are made here, in place of an answer that had to be dropped.
    if (typeof rpcCode === "number" && code !== "TOO_LARGE" && code !== "OUTPUT_INVALID") {
      const message = isPlainObject(cause) && typeof cause["message"] === "string" ? cause["message"] : "";
      return { kind: "error", code: rpcCode, message };
    }
    const status = isPlainObject(details) ? details["status"] : undefined;
    const isLost = code === "UNAVAILABLE" && this.connection.state.status !== "ready";
    if (isLost) this.#losses += 1;
    const reason = reasonOf(thrown, this.timeoutMs);
    return {
      kind: "failure",
      reason,
      isLost,
      isBusy: isBusy && code === "TIMEOUT",
      ...(typeof status === "number" && { status }),
    };
  }

  /** Waits a while for a server that went away. */
  async #comeback(): Promise<void> {
    const endsAt = performance.now() + COMEBACK_MS;
    while (this.connection.state.status !== "ready" && performance.now() < endsAt) {
      this.#signal?.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }
}

function reasonOf(error: CallError, timeoutMs: number): string {
  return error.code === "TIMEOUT" ? `There was no answer within ${timeoutMs} ms.` : error.message;
}

/** Says in a few words how a request ended that should have ended otherwise. */
export function describeAnswer(answer: PeerAnswer): string {
  switch (answer.kind) {
    case "result":
      return "It answered with a result.";
    case "error":
      return `It answered with the error ${answer.code}.`;
    case "failure":
      return answer.reason;
  }
}

/** Tells whether a call was refused as the protocol has it: by -32602, or a result that reports an error. */
export function isRefusal(answer: PeerAnswer): boolean {
  return (
    (answer.kind === "error" && answer.code === -32602) ||
    (answer.kind === "result" && answer.result["isError"] === true)
  );
}
