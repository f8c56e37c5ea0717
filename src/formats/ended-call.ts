import type { Identity } from "../core/access/identity.ts";
import { tierOf } from "../core/access/tier.ts";
import type { ResponseEnvelope } from "../core/envelope/response-meta.ts";
import { errorTraits } from "../core/errors/error-codes.ts";
import type { CallError } from "../core/errors/errors.ts";
import { isPlainObject } from "../core/json/json-value.ts";
import type { AnyOperation } from "../core/operation/operation-types.ts";
import type { ResultError, ToolResult, UpgradeHint } from "../core/result/tool-result.ts";
import { toWire } from "../core/wire/wire.ts";
import { isPlainJson, toJsonTextOrNone } from "./json-text.ts";
import { readEnvelope } from "./response-envelope/response-envelope-codec.ts";
import { isUpgradeHints } from "./result-fields.ts";

/** A call that has ended, and all that is known about it. */
export interface EndedCall {
  readonly operationId: string;
  /** Absent when there is no such operation. */
  readonly operation: AnyOperation | undefined;
  readonly requestId: string;
  readonly identity: Identity | undefined;
  /** From a monotonic clock. */
  readonly durationMs: number;
  /** What came back, or what it failed with. */
  readonly outcome: { readonly envelope: ResponseEnvelope } | { readonly error: CallError };
}

/** Reads a call that has ended into the canonical result. */
export function fromEndedCall(call: EndedCall): ToolResult {
  const { operationId, operation, requestId, identity, durationMs, outcome } = call;
  return {
    ...("envelope" in outcome ? readOutcome(outcome.envelope) : failedResult(outcome.error)),
    tool: operationId,
    ...(operation !== undefined && { toolVersion: operation.version }),
    requestId,
    durationMs,
    tier: tierOf(identity),
  };
}

/**
 * Data as JSON writes it: a member that is undefined is left out, a date is text. That is what the schema of a tool describes;
 * only what JSON cannot hold at all takes its wire form.
 */
export function asJson(data: unknown): unknown {
  if (isPlainJson(data)) return data;
  const text = toJsonTextOrNone(data);
  return text === undefined ? toWire(data, { errors: false }) : JSON.parse(text);
}

/** What takes its wire form says so, which `readEnvelope` sees to. */
function readOutcome({ data, meta }: ResponseEnvelope): ToolResult {
  const isWritten = data !== undefined && toJsonTextOrNone(data) !== undefined;
  return readEnvelope({ data: isWritten ? asJson(data) : data, meta }).result;
}

function failedResult(error: CallError): ToolResult {
  const upgradeHints = hintsOf(error);
  return { isError: true, error: toResultError(error), ...(upgradeHints && { upgradeHints }) };
}

/** Says what a failed call may say on a wire. */
function toResultError(error: CallError): ResultError {
  const { code, message, details, retryable, correctable } = error;
  return {
    message,
    code,
    category: errorTraits(code).category,
    ...(details !== undefined && { details }),
    recoverable: retryable || correctable,
  };
}

/** The hints of an error that asks for a higher tier. */
function hintsOf({ code, details }: CallError): readonly UpgradeHint[] | undefined {
  if (code !== "UPGRADE_REQUIRED" || !isPlainObject(details)) return undefined;
  const { upgradeHints } = details;
  return isUpgradeHints(upgradeHints) ? (upgradeHints as unknown as readonly UpgradeHint[]) : undefined;
}
