import { adoptEnvelope } from "../envelope/envelope.ts";
import { isResponseEnvelope } from "../envelope/is-response-envelope.ts";
import type { ResponseEnvelope } from "../envelope/response-meta.ts";
import { CallError } from "../errors/errors.ts";
import { fromWire } from "./from-wire.ts";
import { toWire } from "./to-wire.ts";
import { WIRE_LIMITS, type WireOptions } from "./wire-walk.ts";

export { WIRE_LIMITS, type WireOptions } from "./wire-walk.ts";
export { fromWire, toWire };

/** The envelope and its meta are two levels more than the data they carry. */
const ENVELOPE_WIRE = {
  code: "OUTPUT_INVALID",
  maxDepth: WIRE_LIMITS.depth + 2,
} as const satisfies WireOptions;

/** Writes an envelope as JSON text that `decodeEnvelope` reads back exactly. */
export function encodeEnvelope(envelope: ResponseEnvelope): string {
  const value = toWire(envelope, ENVELOPE_WIRE);
  try {
    return JSON.stringify(value);
  } catch (cause) {
    // A getter that answers differently the second time, or more text than a string can hold.
    throw new CallError("OUTPUT_INVALID", "The result cannot be written as JSON.", { cause });
  }
}

/** Reads an envelope back, checks it, and marks it as ours: call it only where the sender is trusted to make envelopes. */
export function decodeEnvelope(text: string): ResponseEnvelope {
  const value = fromWire(parseJson(text), ENVELOPE_WIRE);
  if (isResponseEnvelope(value)) return adoptEnvelope(value);
  throw new CallError("OUTPUT_INVALID", "What came back is JSON, but not a response envelope.");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CallError("OUTPUT_INVALID", "What came back is not JSON.", { cause });
  }
}
