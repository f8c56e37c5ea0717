import { type CallError, isCallError } from "../../core/errors/errors.ts";

/** Hears of faults of this side, which clients are told nothing about. */
export type Warn = (message: string, cause?: unknown) => void;

/** Makes sure that whoever hears of faults causes none. */
export function createWarn(onWarning: Warn = (message, cause) => console.warn(message, cause)): Warn {
  return (message, cause) => {
    try {
      onWarning(message, cause);
    } catch {
      // There is nobody else to tell.
    }
  };
}

/** Tells of an error whose cause nobody meant, which its caller hears nothing of. */
export function warnOfUnexpected(
  warn: Warn,
  error: CallError,
  { operationId, requestId }: { readonly operationId: string; readonly requestId: string },
): void {
  const { code, cause } = error;
  if (code !== "EXECUTION_ERROR" && code !== "UNKNOWN_ERROR") return;
  if (cause === undefined || isCallError(cause)) return;
  warn(`"${operationId}" failed unexpectedly (request ${requestId}).`, cause);
}
