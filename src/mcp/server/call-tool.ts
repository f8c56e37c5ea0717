import type { InputRequiredResult, ServerContext } from "@modelcontextprotocol/server";
import type { Identity } from "../../core/access/identity.ts";
import { CallError, toCallError } from "../../core/errors/errors.ts";
import { randomId } from "../../core/execution/request-id.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { ExecuteOptions } from "../../core/registry/executor.ts";
import type { CallToolResult } from "../../core/result/call-tool-result.ts";
import { type EndedCall, endCall } from "../../core/result/ended-call.ts";
import type { ResultFormat } from "../../core/result/result-format.ts";
import { withinInline } from "./big-result.ts";
import { inputOf, outputOf } from "./describe-tool.ts";
import { type Exchange, metadataOf } from "./exchange.ts";
import { checkParamHeaders } from "./http-params.ts";
import { withFacts, withOutcome } from "./outcome-meta.ts";
import type { PeerRequest } from "./peer-request.ts";
import { plainFormat, toErrorText } from "./plain-format.ts";
import { invalidParams, quoted } from "./protocol-errors.ts";
import type { ServedTools } from "./served-tools.ts";
import { endStream } from "./stream-tool.ts";
import type { SuspendableRun } from "./waiting-calls.ts";

/** Answers `tools/call`. */
export async function callTool(
  served: ServedTools,
  request: PeerRequest,
  params: Readonly<Record<string, unknown>>,
): Promise<CallToolResult | InputRequiredResult> {
  const { name } = params;
  if (typeof name !== "string") throw invalidParams("A call needs the name of a tool.");
  const format = served.formatFor(request.context);
  const operation = served.table.find(name, request.identity);
  if (operation === undefined || operation.visibility === "internal") throw unknownTool(name);
  checkParamHeaders(request.context, inputOf(operation).schema, params["arguments"]);
  const input = toInput(operation, params["arguments"]);
  return await request.run("tools/call", name, async (run, exchange) => {
    const call = await endOperation(
      served,
      operation,
      input,
      {
        ...toExecuteOptions(request.context, request.identity, run, exchange, operation.id),
      },
      exchange,
    );
    if (isHidden(served, call)) throw unknownTool(name);
    if ("error" in call.outcome) request.assertCapable(call.outcome.error);
    return await toResult(served, request, call, operation, format);
  });
}

/** What a call is told about who makes it and who listens. */
export function toExecuteOptions(
  context: ServerContext,
  identity: Identity | undefined,
  run: SuspendableRun,
  exchange: Exchange,
  operationId: string,
): ExecuteOptions & { readonly requestId: string } {
  const metadata = metadataOf(context);
  return {
    requestId: randomId(),
    signal: run.signal,
    onProgress: (value) => exchange.progress(value),
    onLog: (line) => exchange.log(line, operationId),
    ...(identity !== undefined && { identity }),
    ...(run.caller !== undefined && { caller: run.caller }),
    ...(metadata !== undefined && { metadata }),
  };
}

/** Runs an operation to its end, a subscription too. */
export function endOperation(
  served: ServedTools,
  operation: AnyOperation,
  input: unknown,
  options: ExecuteOptions & { readonly requestId: string },
  exchange: Exchange,
): Promise<EndedCall> {
  return operation.type === "subscription"
    ? endStream(served, operation, input, options, exchange)
    : endCall(served.executor, operation.id, input, options);
}

/** Unwraps what `toServedInput` wrapped; without arguments, an operation that declares no input gets none. */
function toInput(operation: AnyOperation, args: unknown): unknown {
  if (args !== undefined && !isPlainObject(args)) {
    throw invalidParams("The arguments of a call must be an object.");
  }
  if (inputOf(operation).wrapped)
    return args !== undefined && Object.hasOwn(args, "input") ? args["input"] : undefined;
  return args ?? (operation.inputSchema === undefined ? undefined : {});
}

function unknownTool(name: string): Error {
  return invalidParams(`Unknown tool: ${quoted(name)}.`);
}

/** What a caller may not see does not exist; one that is listed and still refuses says why. */
export function isHidden({ executor }: ServedTools, { outcome, operationId, identity }: EndedCall): boolean {
  if (!("error" in outcome)) return false;
  const { code } = outcome.error;
  if (code === "OPERATION_NOT_FOUND") return executor.get(operationId) === undefined || !isListed();
  return (code === "ACCESS_DENIED" || code === "UNAUTHENTICATED") && !isListed();

  function isListed(): boolean {
    return executor.list({ identity }).some(({ id }) => id === operationId);
  }
}

/** Writes a call that has ended as this peer takes it. */
export async function toResult(
  served: ServedTools,
  request: PeerRequest,
  call: EndedCall,
  operation: AnyOperation,
  format: ResultFormat,
): Promise<CallToolResult> {
  const schema = outputOf(operation, format);
  const written = withOutcome(await write(format, call), call);
  served.onContent(operation.namespace, written.content);
  const sent =
    served.store === undefined || format !== plainFormat
      ? written
      : await withinInline(written, {
          store: served.store,
          inlineCharacters: served.limits.inlineCharacters,
          isPromised: schema !== undefined,
          name: operation.id,
        });
  // An error has nothing to do with the schema of results.
  const projected = request.project(sent, sent.isError === true ? undefined : schema);
  const isWrapped = projected.structuredContent !== sent.structuredContent;
  return isWrapped ? withFacts(projected, { wrapsResult: true }) : projected;
}

/** A format does not throw; a result that cannot be written at all is a failed call. */
async function write(format: ResultFormat, call: EndedCall): Promise<CallToolResult> {
  try {
    return await format.write(call);
  } catch (thrown) {
    const cause = toCallError(thrown);
    const error = new CallError("OUTPUT_INVALID", "The result cannot be written as JSON.", { cause });
    return withOutcome(toErrorText(error), { ...call, outcome: { error } });
  }
}
