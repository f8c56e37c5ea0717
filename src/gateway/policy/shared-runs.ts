import type { ResponseEnvelope } from "../../core/envelope/envelope.ts";
import { type CallError, toCallError } from "../../core/errors/errors.ts";
import { addAbortListener, removeAbortListener } from "../../core/execution/abort-listeners.ts";

/** A run that several calls wait for. */
interface SharedRun {
  readonly controller: AbortController;
  readonly result: Promise<ResponseEnvelope>;
  waiting: number;
}

/** One wait for a run. */
export interface SharedWait {
  /** Whether the run was under way already. */
  readonly joined: boolean;
  readonly result: Promise<ResponseEnvelope>;
}

/** Runs that are under way, by key: who asks for one of them waits for it, and it is aborted when everybody has left. */
export class SharedRuns {
  readonly #runs = new Map<string, SharedRun>();

  /** Joins a run, or starts one, which is given the signal that ends it; a caller who leaves is told at once. */
  run(
    key: string,
    signal: AbortSignal | undefined,
    start: (signal: AbortSignal) => Promise<ResponseEnvelope>,
  ): SharedWait {
    const known = this.#runs.get(key);
    const run = known ?? this.#start(key, start);
    return { joined: known !== undefined, result: this.#wait(key, run, signal) };
  }

  /** Ends all of them. */
  abort(error: CallError): void {
    for (const { controller } of this.#runs.values()) controller.abort(error);
    this.#runs.clear();
  }

  #start(key: string, start: (signal: AbortSignal) => Promise<ResponseEnvelope>): SharedRun {
    const controller = new AbortController();
    const run: SharedRun = { controller, result: start(controller.signal), waiting: 0 };
    this.#runs.set(key, run);
    const forget = (): void => this.#forget(key, run);
    run.result.then(forget, forget);
    return run;
  }

  #wait(key: string, run: SharedRun, signal: AbortSignal | undefined): Promise<ResponseEnvelope> {
    run.waiting++;
    if (signal === undefined) return run.result;
    return new Promise((resolve, reject) => {
      const listener = {
        onAbort: ({ reason }: AbortSignal): void => {
          reject(toCallError(reason));
          run.waiting--;
          if (run.waiting > 0) return;
          this.#forget(key, run);
          run.controller.abort(reason);
        },
      };
      run.result.then(resolve, reject).finally(() => removeAbortListener(signal, listener));
      if (signal.aborted) listener.onAbort(signal);
      else addAbortListener(signal, listener);
    });
  }

  /** Whoever asks from now on starts anew. */
  #forget(key: string, run: SharedRun): void {
    if (this.#runs.get(key) === run) this.#runs.delete(key);
  }
}
