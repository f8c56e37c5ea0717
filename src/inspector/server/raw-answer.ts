import { type CallError, isCallError } from "../../core/errors/errors.ts";
import { isPlainObject } from "../../core/json/json-value.ts";

/** What a source answered, in its own words. */
export interface RawAnswer {
  readonly value: unknown;
}

/**
 * Finds what a source answered where that became an error: the status and body of an HTTP API, the error of a JSON-RPC answer, a
 * result that is none. Errors keep it from callers, for it is between this process and the source; so only operators are shown it.
 */
export function rawAnswerOf(error: CallError): RawAnswer | undefined {
  const { details, cause } = error;
  if (!isPlainObject(details)) return fromHop(error, cause);
  const { status, rpcCode, tool, reason } = details;
  if (typeof status === "number") return fromHttp(error, details);
  if (rpcCode !== undefined) {
    return isPlainObject(cause) && cause["code"] === rpcCode ? { value: { error: cause } } : undefined;
  }
  if (error.code === "OUTPUT_INVALID" && typeof tool === "string" && typeof reason === "string") {
    return cause === undefined ? undefined : { value: { result: cause } };
  }
  return fromHop(error, cause);
}

/** As `openapi` reads it, bounded by the error: the body, or its beginning where it says that it is JSON and is not. */
function fromHttp(
  { code, cause }: CallError,
  { status, contentType, headers, problem, body }: Readonly<Record<string, unknown>>,
): RawAnswer | undefined {
  if (typeof contentType === "string")
    return { value: { status, contentType, headers, body: body ?? problem } };
  const isUnread = code === "OUTPUT_INVALID" && cause instanceof Error && !isCallError(cause);
  return isUnread ? { value: { status, body: cause.message } } : undefined;
}

/** The problem that another Waybill wrote. */
function fromHop({ httpStatus }: CallError, cause: unknown): RawAnswer | undefined {
  if (!isPlainObject(cause) || !isPlainObject(cause["waybill"])) return undefined;
  return { value: { status: httpStatus, body: cause } };
}
