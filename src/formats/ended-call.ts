import { tierOf } from "../core/access/tier.ts";
import type { ResponseEnvelope } from "../core/envelope/response-meta.ts";
import { errorTraits } from "../core/errors/error-codes.ts";
import type { CallError } from "../core/errors/errors.ts";
import { asJson } from "../core/json/as-json.ts";
import { toJsonTextOrNone } from "../core/json/json-text.ts";
import { isPlainObject } from "../core/json/json-value.ts";
import type { EndedCall } from "../core/result/ended-call.ts";
import type { ResultError, ToolResult, UpgradeHint } from "../core/result/tool-result.ts";
import { readEnvelope } from "./response-envelope/response-envelope-codec.ts";
import { isUpgradeHints } from "./result-fields.ts";

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
  const { code, message, details, retryable, correctable } = error.toJSON();
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
