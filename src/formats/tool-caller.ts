import { idOf } from "../core/execution/lookup.ts";
import { isRequestId, randomId } from "../core/execution/request-id.ts";
import { asJson } from "../core/json/as-json.ts";
import type { AnyOperation, CallArguments } from "../core/operation/operation-types.ts";
import type { ExecuteOptions, Executor } from "../core/registry/executor.ts";
import type { CallToolResult } from "../core/result/call-tool-result.ts";
import { type EndedCall, endCall } from "../core/result/ended-call.ts";
import { withMissedSchema } from "../core/result/missed-schema.ts";
import type { ResultFormat } from "../core/result/result-format.ts";
import { createResultFormat, type ResultFormatOptions } from "./result-format.ts";

/** Calls an operation and writes what comes of it as a tool result; failures too, so that it never throws for one. */
export type ToolCaller = <const T extends AnyOperation | string>(
  target: T,
  ...rest: CallArguments<T, ExecuteOptions>
) => Promise<CallToolResult>;

/** Wraps the operations of a registry so that every call answers in one of the published formats. */
export function createToolCaller(executor: Executor, options: ResultFormatOptions): ToolCaller {
  const format = createResultFormat(options);
  return async (target, ...rest) => {
    const [input, callOptions] = rest as [unknown, ExecuteOptions?];
    const requestId = isRequestId(callOptions?.requestId) ? callOptions.requestId : randomId();
    const call = await endCall(executor, idOf(target), input, { ...callOptions, requestId });
    return asAnnounced(await format.write(call), call, format);
  };
}

/** A server of the SDK refuses to send a result that misses the schema which `toolOutputSchema` gave it. */
function asAnnounced(result: CallToolResult, call: EndedCall, format: ResultFormat): CallToolResult {
  const { operation, outcome } = call;
  const violations = "envelope" in outcome ? (outcome.envelope.meta.waybill?.violations ?? []) : [];
  if (!("envelope" in outcome) || violations.length === 0 || result.isError === true) return result;
  if (operation?.outputSchema === undefined || format.outputSchema(operation) === undefined) return result;
  return withMissedSchema(result, asJson(outcome.envelope.data), violations);
}
