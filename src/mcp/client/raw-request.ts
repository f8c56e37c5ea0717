import type { CallError } from "../../core/errors/errors.ts";
import type { RpcError } from "./rpc-error.ts";

/** How a request ended: with what the server sent, or with a failure on the way. */
export type RawOutcome =
  | { readonly kind: "result"; readonly result: Readonly<Record<string, unknown>> }
  | { readonly kind: "error"; readonly error: RpcError }
  | { readonly kind: "failure"; readonly failure: CallError };

/** One request on its way; keeps the answer as it came. */
export class RawRequest {
  readonly method: string;
  readonly onProgress: ((progress: Readonly<Record<string, unknown>>) => void) | undefined;
  /** Under which it was sent. */
  id: number | string | undefined;
  /** Whether it was sent and dropped before any answer to it had come. */
  isUnanswered = false;
  /** Told once it has ended, and whether that was before there was an answer. */
  onEnd: ((isGivenUp: boolean) => void) | undefined;
  #stop: AbortController | undefined;
  #outcome: RawOutcome | undefined;

  constructor(method: string, onProgress: RawRequest["onProgress"]) {
    this.method = method;
    this.onProgress = onProgress;
  }

  /** Aborted when nobody waits for the answer any more; made when it is first asked for. */
  get signal(): AbortSignal {
    this.#stop ??= new AbortController();
    if (this.#outcome?.kind === "failure") this.#stop.abort(this.#outcome.failure);
    return this.#stop.signal;
  }

  get outcome(): RawOutcome | undefined {
    return this.#outcome;
  }

  /** Keeps the first outcome; those after it are ignored. */
  settle(outcome: RawOutcome): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = outcome;
    this.onEnd?.(false);
  }

  /** Ends it before there is an answer, which the server is told. */
  fail(failure: CallError): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = { kind: "failure", failure };
    this.#stop?.abort(failure);
    this.onEnd?.(true);
  }
}
