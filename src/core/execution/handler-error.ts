import { isErrorCode } from "../errors/error-codes.ts";
import { CallError, isCallError, toCallError } from "../errors/errors.ts";
import type { KnownError, OperationEntry } from "../registry/operation-entry.ts";
import { isOfAnotherCall } from "./turned-down.ts";

/**
 * Turns what a handler threw into the error of its call. A declared code keeps its message and details and gets its
 * declared status; a code of the table is kept as it is; any other code was promised to nobody and stays in `cause`, and so
 * does a call of the handler's own that was turned down.
 */
export function toHandlerError(entry: OperationEntry, thrown: unknown): CallError {
  const error = toCallError(thrown);
  const known = entry.errors.get(error.code);
  if (known !== undefined && isCallError(thrown)) return toDeclaredError(entry, known, error);
  // Nobody aborted this call, or its cancellation would have spoken: the handler gave up on something of its own.
  const isForeignAbort = error.code === "ABORTED" && !isCallError(thrown);
  const isOfAnother = isOfAnotherCall(error, entry.id);
  if (isErrorCode(error.code) && !isOfAnother && !isForeignAbort) return error;
  if (isOfAnother && (error.code === "TIMEOUT" || error.code === "ABORTED")) {
    return new CallError(error.code, undefined, { cause: thrown, stack: false });
  }
  return new CallError("EXECUTION_ERROR", undefined, { cause: thrown });
}

function toDeclaredError(entry: OperationEntry, known: KnownError, error: CallError): CallError {
  const issues = known.details?.errors(error.details) ?? [];
  if (issues.length > 0) {
    const message = `The details of "${error.code}", thrown by "${entry.id}", do not match their schema.`;
    entry.settings.warn({ type: "error-details-invalid", message, operationId: entry.id, issues });
  }
  const { httpStatus = error.httpStatus } = known;
  if (httpStatus === error.httpStatus) return error;
  const { message, details, retryable, correctable } = error;
  return new CallError(error.code, message, {
    details,
    retryable,
    correctable,
    httpStatus,
    cause: error,
    stack: false,
  });
}
