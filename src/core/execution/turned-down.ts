import type { CallError } from "../errors/errors.ts";

const turnedDown = new WeakSet<CallError>();

/**
 * Remembers that a call was turned down before it ran. To who made the call it says what to mend; where that was a handler, its
 * own caller can mend nothing, and may not even know of the operation the handler called.
 */
export function turnDown(error: CallError): CallError {
  turnedDown.add(error);
  return error;
}

/** Tells whether an error that a handler let through speaks of a call that was turned down. */
export function isTurnedDown(error: CallError): boolean {
  return turnedDown.has(error);
}
