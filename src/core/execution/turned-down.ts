import type { CallError } from "../errors/errors.ts";

const failedCalls = new WeakMap<CallError, string>();

/**
 * Remembers which operation's call an error of the runtime speaks of. To who made that call it says what to mend; where that was a
 * handler, its own caller can mend nothing, and may not even know of the operation the handler called.
 */
export function turnDown(error: CallError, operationId: string): CallError {
  failedCalls.set(error, operationId);
  return error;
}

/** Tells whether the runtime itself turned this very call down; what a handler throws never counts. */
export function isTurnedDown(error: CallError, operationId: string): boolean {
  return failedCalls.get(error) === operationId;
}

/** Tells whether an error speaks of a call of some other operation than this one. */
export function isOfAnotherCall(error: CallError, operationId: string): boolean {
  return (failedCalls.get(error) ?? operationId) !== operationId;
}
