import { CallError, toCallError } from "../errors/errors.ts";
import { type AbortListener, addAbortListener, removeAbortListener } from "./abort-listeners.ts";
import { type Expiring, monotonicNow, startTimer } from "./deadline.ts";
import { turnDown } from "./turned-down.ts";

type Tell = (error: CallError) => void;

/**
 * What can end one call early: the signals of everybody above it, and a deadline.
 *
 * A nested call watches the same signals as its parent and an equal or nearer deadline, so the two need not know each
 * other. Nothing is watched before it matters: until the handler reads `signal` or turns out to be asynchronous.
 */
export class Cancellation implements AbortListener, Expiring {
  /** On the monotonic clock; `Infinity` for none. */
  readonly deadline: number;
  /** On the monotonic clock. */
  readonly startedAt: number;
  readonly signals: readonly AbortSignal[];
  timer: ReturnType<typeof setTimeout> | undefined;
  readonly #operationId: string;
  #error: CallError | undefined;
  #controller: AbortController | undefined;
  #watch: "not yet" | "on" | "over" = "not yet";
  /** Who is told when the call ends early: mostly one, so that no list is made for it. */
  #tell: Tell | undefined;
  #others: Set<Tell> | undefined;

  constructor(operationId: string, signals: readonly AbortSignal[], deadline: number, startedAt: number) {
    this.#operationId = operationId;
    this.signals = signals;
    this.deadline = deadline;
    this.startedAt = startedAt;
  }

  get ended(): boolean {
    return this.#error !== undefined;
  }

  /** The handler's own signal, made when first read. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      this.watch((error) => this.#controller?.abort(error));
    }
    return this.#controller.signal;
  }

  /** The error that ends the call, once its time is over; an answer that comes later is late, however it got there. */
  check(now?: number): CallError | undefined {
    if (this.#error !== undefined) return this.#error;
    if (this.signals.length > 0) {
      const aborted = this.signals.find((signal) => signal.aborted);
      if (aborted !== undefined) this.onAbort(aborted);
    }
    if (this.deadline !== Number.POSITIVE_INFINITY && (now ?? monotonicNow()) >= this.deadline) this.expire();
    return this.#error;
  }

  /** Passes on what the whole call settles with, or rejects at once when it ends before; then stops watching. */
  guard<T>(pending: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.watch(reject);
      pending.then(
        (value) => {
          // A late answer has been rejected by now.
          if (this.finish() === undefined) resolve(value);
        },
        (error) => {
          this.release();
          reject(error);
        },
      );
    });
  }

  /** The same for a part of the call, after which watching goes on. */
  race<T>(pending: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#startWatching();
      const forget = this.whenEnded(reject);
      pending.then(resolve, reject).finally(forget);
    });
  }

  /** Watches from now on, and calls back when the call ends early. */
  watch(tell: Tell): void {
    this.#startWatching();
    this.whenEnded(tell);
  }

  /** Stops watching and tells whether the answer at hand is late. */
  finish(): CallError | undefined {
    this.release();
    return this.check();
  }

  /** Stops watching for good: no timer or listener is left behind. */
  release(): void {
    if (this.#watch === "on") {
      clearTimeout(this.timer);
      for (const signal of this.signals) removeAbortListener(signal, this);
    }
    this.#watch = "over";
  }

  /** Ends the call with this error, unless it has ended before. */
  end(error: CallError): void {
    if (this.#error !== undefined) return;
    this.#error = error;
    this.release();
    this.#tell?.(error);
    for (const tell of this.#others ?? []) tell(error);
  }

  /** Calls back when the call ends early, after those who asked before, and at once when it has; returns how to be forgotten. */
  whenEnded(tell: Tell): () => void {
    if (this.#error !== undefined) tell(this.#error);
    else if (this.#tell === undefined) {
      this.#tell = tell;
      return () => {
        if (this.#tell === tell) this.#tell = undefined;
      };
    } else {
      this.#others ??= new Set();
      this.#others.add(tell);
    }
    return () => this.#others?.delete(tell);
  }

  onAbort(signal: AbortSignal): void {
    const cause: unknown = signal.reason;
    const code = toCallError(cause).code === "TIMEOUT" ? "TIMEOUT" : "ABORTED";
    const message = `The call of "${this.#operationId}" was aborted.`;
    this.end(turnDown(new CallError(code, message, { cause, stack: false }), this.#operationId));
  }

  expire(): void {
    const message = `"${this.#operationId}" did not answer before its deadline.`;
    this.end(turnDown(new CallError("TIMEOUT", message, { stack: false }), this.#operationId));
  }

  #startWatching(): void {
    if (this.#watch !== "not yet") return;
    const timed = this.deadline !== Number.POSITIVE_INFINITY;
    const now = timed ? monotonicNow() : 0;
    if (this.check(now) !== undefined) return;
    this.#watch = "on";
    for (const signal of this.signals) addAbortListener(signal, this);
    if (timed) startTimer(this, this.deadline - now);
  }
}
