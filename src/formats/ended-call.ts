import { tierOf } from "../core/access/tier.ts";
import type { ResponseEnvelope } from "../core/envelope/response-meta.ts";
import { errorTraits } from "../core/errors/error-codes.ts";
import type { CallError } from "../core/errors/errors.ts";
import { quoteSaid, saidIn } from "../core/errors/source-words.ts";
import { asJson } from "../core/json/as-json.ts";
import { toJsonTextOrNone } from "../core/json/json-text.ts";
import { isPlainObject } from "../core/json/json-value.ts";
import type { AnyOperation } from "../core/operation/operation-types.ts";
import type { EndedCall } from "../core/result/ended-call.ts";
import { sentenceOf, textsIn } from "../core/result/human-text.ts";
import {
  fromFacts,
  type ResultError,
  type ToolResult,
  type UpgradeHint,
} from "../core/result/tool-result.ts";
import { readEnvelope } from "./response-envelope/response-envelope-codec.ts";
import { isUpgradeHints } from "./result-fields.ts";

/** Reads a call that has ended into the canonical result. */
export function fromEndedCall(call: EndedCall): ToolResult {
  const { operationId, operation, requestId, identity, durationMs, outcome } = call;
  return {
    ...("envelope" in outcome ? readOutcome(outcome.envelope, operation) : failedResult(outcome.error)),
    tool: call.calledAs ?? operationId,
    ...(operation !== undefined && { toolVersion: operation.version }),
    requestId,
    durationMs,
    tier: tierOf(identity),
  };
}

/** What takes its wire form says so, which `readEnvelope` sees to. */
function readOutcome({ data, meta }: ResponseEnvelope, operation: AnyOperation | undefined): ToolResult {
  const isWritten = data !== undefined && toJsonTextOrNone(data) !== undefined;
  const { result } = readEnvelope({ data: isWritten ? asJson(data) : data, meta });
  return meta.source === "mcp" ? result : withHeadline(withReason(result, operation));
}

/** Where a handler wrote a text about its error that does not say what went wrong, that stands above it. */
function withHeadline(result: ToolResult): ToolResult {
  const { error, summary, content = [], facts } = result;
  const texts = textsIn(content);
  if (error === undefined || summary !== undefined || texts.length === 0) return result;
  // The first block of a tool envelope is the whole of what its author says to people.
  const isWhole = facts?.obtained === "envelope-block" || texts.some((text) => text.includes(error.message));
  return isWhole ? result : { ...result, summary: error.message };
}

/** An error whose author gave a code, a category or advice and no message gets the sentence that is known for it. */
function withReason(result: ToolResult, operation: AnyOperation | undefined): ToolResult {
  const { facts, error, isError, summary } = result;
  if (!isError || error !== undefined || facts === undefined) return result;
  const { code, details, said, ...others } = facts;
  if (code === undefined && details === undefined && said === undefined) return result;
  const message = summary ?? sentenceOf(code, operation);
  const { error: told } = fromFacts(true, {
    message,
    details,
    ...(code !== undefined && { code }),
    ...(said !== undefined && { said }),
  });
  return { ...result, facts: others, ...(told && { error: told }) };
}

function failedResult(error: CallError): ToolResult {
  const upgradeHints = hintsOf(error);
  const said = saidIn(error.details);
  return {
    isError: true,
    error: toResultError(error),
    // For people, in formats that show lines and have no place for the facts of an error.
    ...(said !== undefined && { details: [quoteSaid(said)] }),
    ...(upgradeHints && { upgradeHints }),
  };
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
