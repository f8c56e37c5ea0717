import { type AbortListener, addAbortListener, removeAbortListener } from "./abort-listeners.ts";
import { DeadlineTimer, type Expiring, monotonicNow } from "./deadline.ts";
import { CallError, toCallError } from "./errors.ts";

/**
 * What can end one call early: the signals of everybody above it, and a deadline.
 *
 * A nested call watches the same signals as its parent and an equal or nearer deadline, so the two need not know each
 * other. Nothing is watched before it matters: until the handler reads `signal` or turns out to be asynchronous.
 */
export class Cancellation implements AbortListener, Expiring {
  /** On the monotonic clock; `Infinity` for none. */
  readonly deadline: number;
  readonly signals: readonly AbortSignal[];
  readonly #operationId: string;
  #error: CallError | undefined;
  #controller: AbortController | undefined;
  #timer: DeadlineTimer | undefined;
  #watch: "not yet" | "on" | "over" = "not yet";
  #leave: ((error: CallError) => void) | undefined;
  readonly #endings: (() => void)[] = [];

  constructor(operationId: string, signals: readonly AbortSignal[], deadline: number) {
    this.#operationId = operationId;
    this.signals = signals;
    this.deadline = deadline;
  }

  get ended(): boolean {
    return this.#error !== undefined;
  }

  /** The error that ends the call, once its time is over; an answer that comes later is late, however it got there. */
  check(): CallError | undefined {
    if (this.#error !== undefined) return this.#error;
    const aborted = this.signals.find((signal) => signal.aborted);
    if (aborted !== undefined) this.onAbort(aborted);
    else if (this.deadline !== Number.POSITIVE_INFINITY && monotonicNow() >= this.deadline) this.expire();
    return this.#error;
  }

  /** The handler's own signal, made when first read. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.check() === undefined) this.#startWatching();
      else this.#controller.abort(this.#error);
    }
    return this.#controller.signal;
  }

  /** Passes on what a promise settles with, or rejects at once when the call ends before; then stops watching. */
  guard<T>(pending: Promise<T>): Promise<T> {
    return this.race(pending, true);
  }

  /** The same for one step of many; watching goes on after it. */
  race<T>(pending: Promise<T>, last = false): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#leave = reject;
      pending.then(
        (value) => {
          if (last) this.release();
          const late = this.check();
          if (late === undefined) resolve(value);
          else reject(late);
        },
        (error) => {
          if (last) this.release();
          reject(error);
        },
      );
      if (this.check() === undefined) this.#startWatching();
    });
  }

  /** Stops watching for good: no timer or listener is left behind. */
  release(): void {
    if (this.#watch === "on") {
      this.#timer?.stop();
      for (const signal of this.signals) removeAbortListener(signal, this);
    }
    this.#watch = "over";
  }

  /** Ends the call with this error, unless it has ended before. */
  end(error: CallError): void {
    if (this.#error !== undefined) return;
    this.#error = error;
    this.release();
    this.#controller?.abort(error);
    this.#leave?.(error);
    for (const callback of this.#endings) callback();
  }

  /** Calls back when the call ends early; at once when it has. */
  whenEnded(callback: () => void): void {
    if (this.ended) callback();
    else this.#endings.push(callback);
  }

  onAbort(signal: AbortSignal): void {
    const cause: unknown = signal.reason;
    const code = toCallError(cause).code === "TIMEOUT" ? "TIMEOUT" : "ABORTED";
    this.end(new CallError(code, `The call of "${this.#operationId}" was aborted.`, { cause, stack: false }));
  }

  expire(): void {
    const message = `"${this.#operationId}" did not answer before its deadline.`;
    this.end(new CallError("TIMEOUT", message, { stack: false }));
  }

  #startWatching(): void {
    if (this.#watch !== "not yet") return;
    this.#watch = "on";
    for (const signal of this.signals) addAbortListener(signal, this);
    if (this.deadline !== Number.POSITIVE_INFINITY) this.#timer = new DeadlineTimer(this.deadline, this);
  }
}
