import type { ResponseEnvelope } from "../../../core/envelope/response-meta.ts";
import { CallError, toCallError } from "../../../core/errors/errors.ts";
import { compileSchema } from "../../../core/schema/compile-schema.ts";
import { decodeEnvelope, encodeEnvelope, fromWire, toWire, WIRE_LIMITS } from "../../../core/wire/wire.ts";
import { fromErrorPayload, overLimit, toErrorPayload } from "../../call-errors.ts";
import { type CallErrorPayload, CallEventSchema, type CallRequested } from "../../call-events.ts";

/** How a call ended. */
export type Ending = { readonly envelope: ResponseEnvelope } | { readonly error: CallError };

/** A request is one level more than the input it carries. */
const REQUEST_WIRE = { maxDepth: WIRE_LIMITS.depth + 1 } as const;

const requested = compileSchema(CallEventSchema["call.requested"]);
const failed = compileSchema(CallEventSchema["call.error"].properties.error);

/** Writes a request down; throws a `CallError` for what cannot be. */
export function encodeRequest(request: CallRequested, maxBytes: number): Uint8Array {
  const body = new TextEncoder().encode(writeJson(toWire(request, REQUEST_WIRE)));
  if (body.length > maxBytes) throw tooLarge("The request", body.length, maxBytes);
  return body;
}

function writeJson(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (cause) {
    // A getter that answers differently the second time, or more text than a string can hold.
    throw new CallError("VALIDATION_ERROR", "The request cannot be written as JSON.", { cause });
  }
}

/** Reads a request back, or says nothing when it is not one. */
export function decodeRequest(body: Uint8Array): CallRequested | undefined {
  try {
    const value = fromWire(JSON.parse(decodeText(body)), REQUEST_WIRE) as CallRequested;
    return requested.check(value) && value.type === "call.requested" ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Writes an ending down; a result that cannot be written, or is too large, becomes the error that says so. */
export function encodeEnding(ending: Ending, maxBytes: number): Uint8Array {
  if ("error" in ending) return encodeError(ending.error);
  try {
    const body = new TextEncoder().encode(`+${encodeEnvelope(ending.envelope)}`);
    return body.length > maxBytes ? encodeError(tooLarge("The result", body.length, maxBytes)) : body;
  } catch (thrown) {
    return encodeError(toCallError(thrown));
  }
}

/** Reads an ending back; what is none becomes an error. */
export function decodeEnding(body: Uint8Array): Ending {
  try {
    const text = decodeText(body);
    if (text.startsWith("+")) return { envelope: decodeEnvelope(text.slice(1)) };
    const payload: unknown = JSON.parse(text.slice(1));
    if (text.startsWith("-") && failed.check(payload)) {
      return { error: fromErrorPayload(payload as CallErrorPayload) };
    }
  } catch {
    // Falls through to the same error as everything else that cannot be read.
  }
  return { error: new CallError("OUTPUT_INVALID", "What was stored as the result of the call is not one.") };
}

function encodeError(error: CallError): Uint8Array {
  return new TextEncoder().encode(`-${JSON.stringify(toErrorPayload(error))}`);
}

function decodeText(body: Uint8Array): string {
  return new TextDecoder("utf-8", { fatal: true }).decode(body);
}

function tooLarge(what: string, bytes: number, allowed: number): CallError {
  const message = `${what} is ${bytes} bytes written down; at most ${allowed} are allowed.`;
  return overLimit(message, { limit: "messageBytes", allowed }, false);
}
