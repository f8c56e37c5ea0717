/** Something that ends when a signal aborts. */
export interface AbortListener {
  onAbort(signal: AbortSignal): void;
}

/**
 * The listeners of each signal. The signal itself gets one, and only while somebody waits: a platform's own list is
 * walked on every change, so that ten thousand calls under one signal would take quadratic time.
 */
const LISTENERS = new WeakMap<AbortSignal, Set<AbortListener>>();

/** Waits for a signal that has not aborted yet. */
export function addAbortListener(signal: AbortSignal, listener: AbortListener): void {
  let listeners = LISTENERS.get(signal);
  if (listeners === undefined) {
    listeners = new Set();
    LISTENERS.set(signal, listeners);
  }
  if (listeners.size === 0) signal.addEventListener("abort", fanOut);
  listeners.add(listener);
}

/** Stops waiting; safe to repeat. */
export function removeAbortListener(signal: AbortSignal, listener: AbortListener): void {
  const listeners = LISTENERS.get(signal);
  if (listeners?.delete(listener) && listeners.size === 0) signal.removeEventListener("abort", fanOut);
}

/** Tells whether a value can be waited on like a signal of the platform. */
export function isAbortSignal(value: unknown): value is AbortSignal {
  if (typeof value !== "object" || value === null) return false;
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
