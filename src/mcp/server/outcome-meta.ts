import type { PageFacts } from "../../core/envelope/response-meta.ts";
import { saidIn, withoutSaid } from "../../core/errors/source-words.ts";
import { toJsonTextOrNone } from "../../core/json/json-text.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { type CallToolResult, RESULT_META_KEY } from "../../core/result/call-tool-result.ts";
import type { EndedCall } from "../../core/result/ended-call.ts";
import { toWire } from "../../core/wire/wire.ts";

/**
 * Adds what a program on the other side needs to rebuild the outcome: which of the two kinds of error it was and why, and data
 * that plain JSON cannot hold, and where the next page is. What the format put there stays.
 */
export function withOutcome(result: CallToolResult, call: EndedCall): CallToolResult {
  const facts = factsOf(call, result);
  return facts === undefined ? result : withFacts(result, facts);
}

/** Merges facts into what `_meta` says about a result. */
export function withFacts(result: CallToolResult, facts: Readonly<Record<string, unknown>>): CallToolResult {
  const known = result._meta?.[RESULT_META_KEY];
  const merged = { ...(isPlainObject(known) && known), ...facts };
  return { ...result, _meta: { ...result._meta, [RESULT_META_KEY]: merged } };
}

function factsOf({ outcome }: EndedCall, result: CallToolResult): Record<string, unknown> | undefined {
  if ("error" in outcome) {
    const { details, ...told } = outcome.error.toJSON();
    const shown = keepsWordsBack(result) ? withoutSaid(details) : details;
    return { outcome: "call-error", ...told, ...(shown !== undefined && { details: shown }) };
  }
  const { data, meta } = outcome.envelope;
  const { code, message, details, page, violations } = meta.waybill ?? {};
  if (meta.isError !== true) {
    const wire = wireFacts(data, false);
    if (page === undefined && violations === undefined) return wire;
    return {
      ...wire,
      ...(page !== undefined && { page: writtenPage(page) }),
      ...(violations !== undefined && { violations }),
    };
  }
  return {
    outcome: "tool-error",
    ...(code !== undefined && { code }),
    ...(message !== undefined && { message }),
    ...(details !== undefined && toJsonTextOrNone(details) !== undefined && { details }),
    ...(meta.source !== "mcp" && wireFacts(data, result.structuredContent === undefined)),
  };
}

/** What asks for the next page holds a caller's input, which in this process may be more than JSON. */
function writtenPage({ next, input }: PageFacts): PageFacts {
  const isWritten = input !== undefined && toJsonTextOrNone(input) !== undefined;
  return { ...(next !== undefined && { next }), ...(isWritten && { input }) };
}

/** The tiered envelope says of errors only what its server lets through; what it keeps back is not said beside it either. */
function keepsWordsBack({ structuredContent }: CallToolResult): boolean {
  const error = isPlainObject(structuredContent) ? structuredContent["error"] : undefined;
  if (!isPlainObject(error) || !Object.hasOwn(error, "error_details")) return false;
  return saidIn(error["error_details"]) === undefined;
}

/** Tells whether data crosses as it is: nothing in it is changed by JSON, or looks like what stands for something that is. */
export function isItsWire(data: unknown): boolean {
  try {
    return Object.is(toWire(data, { errors: false }), data);
  } catch {
    return false;
  }
}

/** The wire form of data: where JSON alone would change it, or where it is nowhere else to be seen. */
function wireFacts(data: unknown, isHidden: boolean): { readonly wire: unknown } | undefined {
  try {
    const wire = toWire(data, { errors: false });
    return isHidden || !Object.is(wire, data) ? { wire } : undefined;
  } catch {
    // The format has said all that can be said.
    return undefined;
  }
}
