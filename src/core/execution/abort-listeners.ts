/** Something that ends when a signal aborts. */
export interface AbortListener {
  onAbort(signal: AbortSignal): void;
}

/**
 * The listeners of each signal. The signal itself gets one, and only while somebody waits: a platform's own list is
 * walked on every change, so that ten thousand calls under one signal would take quadratic time.
 */
const LISTENERS = new WeakMap<AbortSignal, Set<AbortListener>>();

/**
 * A signal for calls that come from another process, where one is needed for each and hardly ever used: an `AbortController` costs
 * more than the rest of such a call. Core takes it for a signal; what handlers are given is always the platform's own.
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

/** The platform's own signal for one that may be light, for whoever is not in core. */
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
