import { CallError, toCallError, turnDown } from "../errors/errors.ts";

type Tell = (error: CallError) => void;

/**
 * Ends one call early: by the signals of all calls above it, or by its deadline.
 *
 * A nested call watches the same signals as its parent and an equal or nearer deadline, so the two need no link.
 * Watching starts when it is needed: when the handler reads `signal` or returns a promise.
 */
export class Cancellation implements AbortListener, Expiring {
  /** On the monotonic clock; `Infinity` for none. */
  readonly deadline: number;
  /** On the monotonic clock; 0 where there is no deadline to compare it with. */
  readonly startedAt: number;
  readonly signals: readonly AbortSignal[];
  timer: ReturnType<typeof setTimeout> | undefined;
  readonly #operationId: string;
  #error: CallError | undefined;
  #controller: AbortController | undefined;
  #light: LightSignal | undefined;
  #watch: "not yet" | "on" | "over" = "not yet";
  /** Called when the call ends early: usually one listener, so that no list is allocated. */
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

  /** The same for internal handlers: an `AbortSignal` costs more than most of a call. */
  get lightSignal(): AbortSignal {
    if (this.#controller !== undefined) return this.#controller.signal;
    if (this.#light === undefined) {
      this.#light = new LightSignal();
      this.watch((error) => this.#light?.abort(error));
    }
    return this.#light as unknown as AbortSignal;
  }

  /** The error that ends the call, once its deadline has passed; any later answer is dropped. */
  check(now?: number): CallError | undefined {
    if (this.#error !== undefined) return this.#error;
    if (this.signals.length > 0) {
      const aborted = this.signals.find((signal) => signal.aborted);
      if (aborted !== undefined) this.onAbort(aborted);
    }
    if (this.deadline !== Number.POSITIVE_INFINITY && (now ?? monotonicNow()) >= this.deadline) this.expire();
    return this.#error;
  }

  /** Settles as the whole call does, or rejects at once if the call ends early; then stops watching. */
  guard<T>(pending: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.watch(reject);
      pending.then(
        (value) => {
          // The promise has been rejected already.
          if (this.finish() === undefined) resolve(value);
        },
        (error) => {
          this.release();
          reject(error);
        },
      );
    });
  }

  /** The same for a part of the call, after which watching continues. */
  race<T>(pending: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const forget = this.watch(reject);
      pending.then(
        (value) => {
          forget();
          resolve(value);
        },
        (error) => {
          forget();
          reject(error);
        },
      );
    });
  }

  /** Watches from now on, and calls back when the call ends early; returns a function that stops the calling back alone. */
  watch(tell: Tell): () => void {
    this.#startWatching();
    return this.whenEnded(tell);
  }

  /** Stops watching and tells whether the answer at hand is late. */
  finish(): CallError | undefined {
    this.release();
    return this.check();
  }

  /** Stops watching: no timer or listener is left. */
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

  /** Calls `tell` when the call ends early, after earlier listeners, or at once if it has ended; returns a function that removes it. */
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

/** Something that ends when a signal aborts. */
export interface AbortListener {
  onAbort(signal: AbortSignal): void;
}

/**
 * The listeners of each signal. The signal itself gets only one, while there are any: the platform walks its own list on
 * every change, so that ten thousand calls under one signal would take quadratic time.
 */
const LISTENERS = new WeakMap<AbortSignal, Set<AbortListener>>();

/**
 * A light signal for calls from another process, each of which needs one and hardly ever uses it: an `AbortController` costs
 * more than the rest of such a call. Core accepts it as a signal; handlers always get a platform signal.
 */
export class LightSignal {
  aborted = false;
  reason: unknown;
  #listener: AbortListener | undefined;
  #others: Set<AbortListener> | undefined;
  #controller: AbortController | undefined;

  abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    const waiting = [...(this.#listener ? [this.#listener] : []), ...(this.#others ?? [])];
    this.#listener = undefined;
    this.#others = undefined;
    for (const listener of waiting) listener.onAbort(this as unknown as AbortSignal);
  }

  add(listener: AbortListener): void {
    if (this.#listener === undefined) this.#listener = listener;
    else {
      this.#others ??= new Set();
      this.#others.add(listener);
    }
  }

  remove(listener: AbortListener): void {
    if (this.#listener === listener) this.#listener = undefined;
    else this.#others?.delete(listener);
  }

  /** The platform's own signal that aborts with this one. */
  get platform(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      if (this.aborted) controller.abort(this.reason);
      else this.add({ onAbort: () => controller.abort(this.reason) });
      this.#controller = controller;
    }
    return this.#controller.signal;
  }
}

/** Returns the platform signal of a signal that may be light, for code outside of core. */
export function toPlatformSignal(signal: AbortSignal): AbortSignal {
  return (signal as unknown) instanceof LightSignal ? (signal as unknown as LightSignal).platform : signal;
}

/** Waits for a signal that has not aborted yet. */
export function addAbortListener(signal: AbortSignal | LightSignal, listener: AbortListener): void {
  if (signal instanceof LightSignal) signal.add(listener);
  else listenTo(signal, listener);
}

/** Stops waiting; safe to repeat. */
export function removeAbortListener(signal: AbortSignal | LightSignal, listener: AbortListener): void {
  if (signal instanceof LightSignal) {
    signal.remove(listener);
    return;
  }
  const listeners = LISTENERS.get(signal);
  if (listeners?.delete(listener) && listeners.size === 0) signal.removeEventListener("abort", fanOut);
}

function listenTo(signal: AbortSignal, listener: AbortListener): void {
  let listeners = LISTENERS.get(signal);
  if (listeners === undefined) {
    listeners = new Set();
    LISTENERS.set(signal, listeners);
  }
  if (listeners.size === 0) signal.addEventListener("abort", fanOut);
  listeners.add(listener);
}

/** Tells whether a value can be waited on like a signal of the platform. */
export function isAbortSignal(value: unknown): value is AbortSignal {
  if (typeof value !== "object" || value === null) return false;
  if (value instanceof LightSignal) return true;
  const { aborted, addEventListener, removeEventListener } = value as Partial<AbortSignal>;
  return (
    typeof aborted === "boolean" &&
    typeof addEventListener === "function" &&
    typeof removeEventListener === "function"
  );
}

function fanOut(this: AbortSignal): void {
  const listeners = LISTENERS.get(this);
  if (listeners === undefined) return;
  const waiting = [...listeners];
  listeners.clear();
  this.removeEventListener("abort", fanOut);
  for (const listener of waiting) listener.onAbort(this);
}

/** The longest delay a timer takes; platforms fire a longer one at once. */
export const LONGEST_DELAY = 2 ** 31 - 1;

/** The clock deadlines are read on: milliseconds that never go back. */
export function monotonicNow(): number {
  return performance.now();
}

/** Turns a timeout into a point on the monotonic clock; `Infinity` sets no limit and `0` leaves no time at all. */
export function toDeadline(timeoutMs: unknown, now: number): number {
  if (typeof timeoutMs !== "number" || !(timeoutMs >= 0)) {
    throw new TypeError(
      `timeoutMs must be a number of milliseconds, 0 or more; it is ${describe(timeoutMs)}.`,
    );
  }
  return now + timeoutMs;
}

/** Something that a deadline ends; it holds its timer, so that no other object is allocated. */
export interface Expiring {
  /** On the monotonic clock. */
  readonly deadline: number;
  timer: ReturnType<typeof setTimeout> | undefined;
  expire(): void;
}

/** Expires its owner once the deadline has passed, however far it lies ahead; clearing `timer` stops it. */
export function startTimer(owner: Expiring, remaining: number): void {
  owner.timer = setTimeout(fire, Math.min(Math.ceil(remaining), LONGEST_DELAY), owner);
}

/** A timer may fire a little early, and a long wait takes several. */
function fire(owner: Expiring): void {
  const remaining = owner.deadline - monotonicNow();
  if (remaining > 0) startTimer(owner, remaining);
  else owner.expire();
}

function describe(value: unknown): string {
  return typeof value === "number" ? String(value) : `of type ${value === null ? "null" : typeof value}`;
}

/** Waits for work, at most that long; returns whether it ended in time. Work that fails has ended. */
export async function endsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<false>((resolve) => {
    if (ms !== Number.POSITIVE_INFINITY)
      timer = setTimeout(() => resolve(false), Math.min(ms, LONGEST_DELAY));
  });
  const ended = work.then(
    () => true,
    () => true,
  );
  const isInTime = await Promise.race([ended, late]);
  clearTimeout(timer);
  return isInTime;
}
