import { ERROR_CODES, isErrorCode } from "../core/errors/error-codes.ts";
import { CallError, turnDown } from "../core/errors/errors.ts";
import { type AbortReason, type CallErrorPayload, EVENT_LIMITS } from "./call-events.ts";

/** Writes an error for an event; its cause and stack stay here. */
export function toCallErrorPayload(error: CallError): CallErrorPayload {
  const json = error.toJSON();
  const own = isErrorCode(error.code) ? ERROR_CODES[error.code].httpStatus : undefined;
  const message = json.message.slice(0, EVENT_LIMITS.message);
  return { ...json, message, ...(error.httpStatus !== own && { httpStatus: error.httpStatus }) };
}

/** Reads the error of an event that has passed its schema. */
export function fromErrorPayload(payload: CallErrorPayload): CallError {
  const { code, message, retryable, correctable, httpStatus, details } = payload;
  return new CallError(code, message, { retryable, correctable, httpStatus, details, stack: false });
}

/** The error for a call whose caller gave up. */
export function abortedError(operationId: string, cause: unknown): CallError {
  const message = `The call of "${operationId}" was aborted.`;
  return turnDown(new CallError("ABORTED", message, { cause, stack: false }), operationId);
}

/** The error for a call whose time is over. */
export function deadlineError(operationId: string): CallError {
  const message = `"${operationId}" did not answer before its deadline.`;
  return turnDown(new CallError("TIMEOUT", message, { stack: false }), operationId);
}

/** The error for a call that the other side gave up. */
export function givenUpError(operationId: string, reason: AbortReason | undefined): CallError {
  if (reason === "deadline") return deadlineError(operationId);
  if (reason === "disconnected") {
    const message = `The connection to the service that ran "${operationId}" was lost on the way; it may have run.`;
    return new CallError("UNAVAILABLE", message, { stack: false });
  }
  const message = `The service that ran "${operationId}" gave up before it was done.`;
  return new CallError("ABORTED", message, { stack: false });
}

/** The error for one more than a limit allows. */
export function overLimit(
  message: string,
  details: Readonly<Record<string, unknown>>,
  retryable = true,
): CallError {
  return new CallError("RESOURCE_EXHAUSTED", message, { details, retryable, stack: false });
}

/** The error for a call that is not sent, since calls of its operation have failed again and again. */
export function circuitOpen(operationId: string): CallError {
  const message = `Calls of "${operationId}" have failed again and again; this one was not sent, so try again later.`;
  return turnDown(new CallError("UNAVAILABLE", message, { stack: false }), operationId);
}

/** The error for an operation that nobody answers. */
export function noResponder(operationId: string): CallError {
  const message = `Nobody on the bus answers "${operationId}" right now; is its service running?`;
  return turnDown(new CallError("NO_RESPONDER", message, { stack: false }), operationId);
}

/** The error for a request that has been there before. */
export function repeated(operationId: string): CallError {
  const message = `A request of "${operationId}" came twice; it runs again only if it is declared idempotent and the caller asks for a retry.`;
  return new CallError("CONFLICT", message, { stack: false });
}

/** The error for what is over the size a bus carries, even in chunks. */
export function overMessageBytes(
  operationId: string,
  what: "request" | "result",
  { bytes, allowed }: { readonly bytes: number; readonly allowed: number },
): CallError {
  const message = `The ${what} of "${operationId}" takes ${bytes} bytes; the bus carries at most ${allowed} (limits.messageBytes).`;
  return overLimit(message, { limit: "messageBytes", allowed, bytes }, false);
}

/** The error for a caller who is somebody and cannot show it. */
export function unproven(operationId: string): CallError {
  const message = `The call of "${operationId}" has an identity, and this side cannot prove it; pass the option "credentials".`;
  return turnDown(new CallError("UNAUTHENTICATED", message, { stack: false }), operationId);
}

/** The error for a caller who shows who it is to a service that does not look. */
export function unread(operationId: string): CallError {
  const message = `The call of "${operationId}" brings a credential, and the service was not told how to read it; pass it the option "authenticate".`;
  return turnDown(new CallError("UNAUTHENTICATED", message, { stack: false }), operationId);
}
