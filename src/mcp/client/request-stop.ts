import { CallError, isCallError } from "../../core/errors/errors.ts";
import { type Expiring, monotonicNow, startTimer, toDeadline } from "../../core/execution/deadline.ts";
import type { AskedOfServer } from "./rpc-error.ts";

/** What ends a request early, over all its rounds: its deadline, or whoever asked. */
export class RequestStop implements Expiring {
  readonly deadline: number;
  timer: ReturnType<typeof setTimeout> | undefined;
  /** The id of the request that was given up before it was answered, and which may still run. */
  givenUpAs: number | undefined;
  readonly #asked: AskedOfServer;
  readonly #timeoutMs: number;
  readonly #given: AbortSignal | undefined;
  #failure: CallError | undefined;
  #giveUp: ((failure: CallError) => void) | undefined;
  #questions: AbortController | undefined;

  constructor(asked: AskedOfServer, timeoutMs: number, signal: AbortSignal | undefined) {
    const now = monotonicNow();
    this.#asked = asked;
    this.#timeoutMs = timeoutMs;
    this.#given = signal;
    this.deadline = toDeadline(timeoutMs, now);
    if (signal?.aborted === true) this.#onAbort();
    else if (timeoutMs <= 0) this.expire();
    else {
      if (this.deadline !== Number.POSITIVE_INFINITY) startTimer(this, timeoutMs);
      signal?.addEventListener("abort", this.#onAbort, { once: true });
    }
  }

  /** Aborted with the request; for those who are asked something on the way. */
  get signal(): AbortSignal {
    this.#questions ??= new AbortController();
    if (this.#failure !== undefined) this.#questions.abort(this.#failure);
    return this.#questions.signal;
  }

  /** Says how the round under way is ended early. */
  watch(giveUp: (failure: CallError) => void): void {
    this.#giveUp = giveUp;
  }

  /** Throws where the request has been ended. */
  throwIfStopped(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Waits until something has ended, well or not, but no longer than the request itself; throws where it was stopped. */
  async waitFor(work: Promise<unknown>): Promise<void> {
    this.throwIfStopped();
    const stopped = new Promise<void>((resolve) => {
      this.signal.addEventListener("abort", () => resolve(), { once: true });
    });
    await Promise.race([work.catch(() => {}), stopped]);
    this.end();
    this.throwIfStopped();
  }

  expire(): void {
    const { method, server } = this.#asked;
    this.#stop(
      new CallError(
        "TIMEOUT",
        `${server} did not answer ${method} within ${Math.ceil(this.#timeoutMs)} ms.`,
        {
          stack: false,
        },
      ),
    );
  }

  /** Leaves no timer and no listener behind. */
  end(): void {
    clearTimeout(this.timer);
    this.#given?.removeEventListener("abort", this.#onAbort);
  }

  readonly #onAbort = (): void => {
    const reason: unknown = this.#given?.reason;
    const { method } = this.#asked;
    const failure = isCallError(reason)
      ? reason
      : new CallError("ABORTED", `The request ${method} was aborted.`, { cause: reason, stack: false });
    this.#stop(failure);
  };

  #stop(failure: CallError): void {
    if (this.#failure !== undefined) return;
    this.#failure = failure;
    this.end();
    this.#giveUp?.(failure);
    this.#questions?.abort(failure);
  }
}
