import { type CallError, isCallError, toCallError } from "../../core/errors/errors.ts";
import { ProtocolError, RPC_CODES } from "../protocol/messages.ts";

/** The most of a foreign name or address that an error repeats. */
const MAX_QUOTED = 200;

/** Says that what a request asks for cannot be: a JSON-RPC error -32602. */
export function invalidParams(message: string, data?: unknown): ProtocolError {
  return new ProtocolError(RPC_CODES.invalidParams, message, data);
}

/** Quotes something a client sent, of whatever length. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text);
}

/** Says that there is no such resource, in the way the revision in use says it. */
export function resourceNotFound(uri: string, hint = ""): ProtocolError {
  const message = `Resource not found: ${quoted(uri)}.${hint === "" ? "" : ` ${hint}`}`;
  return invalidParams(message, { uri });
}

/**
 * Turns whatever a handler threw into an error for the wire. Only what was meant for callers goes out: the text of a foreign
 * error stays here, and `onForeign` hears of it.
 */
export function toProtocolError(thrown: unknown, onForeign: (cause: unknown) => void): ProtocolError {
  if (thrown instanceof ProtocolError) return thrown;
  if (isCallError(thrown)) return fromCallError(toCallError(thrown));
  onForeign(thrown);
  return new ProtocolError(RPC_CODES.internalError, "Internal error");
}

function fromCallError(error: CallError): ProtocolError {
  const isTheirs = error.correctable || error.code === "OPERATION_NOT_FOUND";
  const code = isTheirs ? RPC_CODES.invalidParams : RPC_CODES.internalError;
  return new ProtocolError(code, error.message, error.toJSON());
}
