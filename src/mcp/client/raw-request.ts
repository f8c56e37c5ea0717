import type { CallError } from "../../core/errors/errors.ts";
import type { RpcError } from "./rpc-error.ts";

/** How a request ended: with what the server sent, or with a failure on the way. */
export type RawOutcome =
  | { readonly kind: "result"; readonly result: Readonly<Record<string, unknown>> }
  | { readonly kind: "error"; readonly error: RpcError }
  | { readonly kind: "failure"; readonly failure: CallError };

/** One request on its way, known to the transport by the mark it carries; keeps the answer as it came. */
export class RawRequest {
  readonly method: string;
  readonly onProgress: ((progress: Readonly<Record<string, unknown>>) => void) | undefined;
  /** Under which the SDK sent it. */
  id: number | string | undefined;
  readonly #stop = new AbortController();
  #outcome: RawOutcome | undefined;

  constructor(method: string, onProgress: RawRequest["onProgress"]) {
    this.method = method;
    this.onProgress = onProgress;
  }

  /** Aborted when nobody waits for the answer any more. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  get outcome(): RawOutcome | undefined {
    return this.#outcome;
  }

  /** Keeps the first outcome; those after it are ignored. */
  settle(outcome: RawOutcome): void {
    this.#outcome ??= outcome;
  }

  /** Ends it before there is an answer: the SDK tells the server, and rejects. */
  fail(failure: CallError): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = { kind: "failure", failure };
    this.#stop.abort(failure);
  }
}
