import type { MCPResponseMeta } from "../../core/envelope/response-meta.ts";
import { isCallError } from "../../core/errors/errors.ts";
import { toPlatformSignal } from "../../core/execution/abort-listeners.ts";
import { randomId } from "../../core/execution/request-id.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { ExecuteOptions } from "../../core/registry/executor.ts";
import type { CallToolResult } from "../../core/result/call-tool-result.ts";
import { type EndedCall, endCall } from "../../core/result/ended-call.ts";
import { isEqual } from "../../core/schema/compare-values.ts";
import { INPUT_META_KEY, REQUEST_ID_META_KEY } from "../meta-keys.ts";
import { importedFrom, inputOf } from "./describe-tool.ts";
import { type Exchange, givenRequestId, metadataOf } from "./exchange.ts";
import { checkParamHeaders } from "./http-params.ts";
import type { PeerRequest } from "./peer-request.ts";
import { invalidParams, quoted } from "./protocol-errors.ts";
import { linkedUri } from "./seen-links.ts";
import type { ServedTools } from "./served-tools.ts";
import { endStream } from "./stream-tool.ts";
import { toFailure, toPlainJson, toResult } from "./to-result.ts";
import type { InputRequiredResult, MayGoOn, SuspendableRun } from "./waiting-calls.ts";
import { JsonResult } from "./write-answer.ts";

/** Answers `tools/call`. */
export async function callTool(
  served: ServedTools,
  request: PeerRequest,
  params: Readonly<Record<string, unknown>>,
): Promise<CallToolResult | InputRequiredResult | JsonResult> {
  const { name } = params;
  if (typeof name !== "string") throw invalidParams("A call needs the name of a tool.");
  const format = served.formatFor(request);
  const operation = served.table.find(name, request.identity);
  if (operation === undefined || operation.visibility === "internal")
    return missingTool(served, request, name);
  const input = readInput({ served, request, operation, name, args: params["arguments"] });
  const start = async (
    run: SuspendableRun,
    exchange: Exchange,
  ): Promise<CallToolResult | InputRequiredResult | JsonResult> => {
    let call: EndedCall;
    try {
      const ending = endOperation({ served, request, run, exchange }, operation, input);
      call = await served.running.orGivenUp(ending);
    } catch (thrown) {
      const givenUp = toGivenUp(thrown);
      request.abort(thrown);
      return givenUp;
    }
    if (isHidden(served, call)) throw unknownTool(name);
    if ("error" in call.outcome) request.assertCapable(call.outcome.error);
    const options = { served, request, operation, format };
    const requestId = givenRequestId(request);
    const json = requestId === undefined ? toPlainJson(call, options) : undefined;
    if (json !== undefined) return new JsonResult(json);
    const result = await toResult({ ...call, calledAs: name }, options);
    return requestId === undefined ? result : withRequestId(result, requestId);
  };
  return await request.run("tools/call", name, start, mayCall(served, [operation.id]));
}

/** Whether a caller may still call operations, when they answer what one of them asked. */
export function mayCall({ executor }: ServedTools, operations: readonly string[]): MayGoOn {
  return (identity) => {
    const listed = new Set<string>(executor.list({ identity }).map(({ id }) => id));
    return operations.every((id) => listed.has(id));
  };
}

interface AskedCall {
  readonly served: ServedTools;
  readonly request: PeerRequest;
  readonly operation: AnyOperation;
  readonly name: string;
  readonly args: unknown;
}

/** Reads the input; what is wrong with it is not said of a tool that this caller may not see. */
function readInput({ served, request, operation, name, args }: AskedCall): unknown {
  try {
    checkParamHeaders(request, inputOf(operation).schema, args);
    const isOddInput = request.meta?.[INPUT_META_KEY] === "wrapped";
    return toInput(operation, args, isOddInput);
  } catch (thrown) {
    const { identity } = request;
    const isListed = served.executor.list({ identity }).some(({ id }) => id === operation.id);
    if (isListed) throw thrown;
    throw unknownTool(name);
  }
}

/** One call on its way: what it runs on, for whom, and who listens. */
export interface CallScope {
  readonly served: ServedTools;
  readonly request: PeerRequest;
  readonly run: SuspendableRun;
  readonly exchange: Exchange;
}

/** Runs an operation to its end, a subscription too; links of an imported tool's result lead back to its server. */
export async function endOperation(
  scope: CallScope,
  operation: AnyOperation,
  input: unknown,
): Promise<EndedCall> {
  const { served, exchange, run } = scope;
  const options = toExecuteOptions(scope, operation.id);
  if (operation.type === "subscription") {
    return await endStream({ served, exchange, operation, input, options });
  }
  const call = await endCall(served.executor, operation.id, input, options);
  const { outcome } = call;
  if ("error" in outcome || outcome.envelope.meta.source !== "mcp") return call;
  const { data, meta } = outcome.envelope;
  if (!meta.content.some((block) => linkedUri(block) !== undefined)) return call;
  const { identity } = options;
  served.given.note(scope.request.owner, meta.content);
  const signal = toPlatformSignal(run.signal);
  const namespace = importedFrom(operation) ?? operation.namespace;
  const said = meta.waybill?.said;
  // What a tool of Waybill's said holds some of the blocks again.
  const given = [...meta.content, ...(said?.content ?? [])];
  const own = await served.ownLinks(namespace, given, { signal, identity });
  const _meta = served.ownMeta(namespace, meta._meta);
  if (own === given && _meta === meta._meta) return call;
  const content = own.slice(0, meta.content.length);
  const shown: MCPResponseMeta = {
    ...meta,
    content,
    ...(_meta !== undefined && { _meta }),
    ...(said?.content && {
      waybill: { ...meta.waybill, said: { ...said, content: own.slice(content.length) } },
    }),
  };
  // Where a tool gave no data, its content stands for it.
  const envelope = { data: isEqual(data, meta.content) ? content : data, meta: shown };
  return { ...call, outcome: { envelope } };
}

/** What a call is told about who makes it and who listens. */
function toExecuteOptions(
  { request, run, exchange }: CallScope,
  operationId: string,
): ExecuteOptions & { readonly requestId: string } {
  const { identity } = request;
  const options: Mutable<ExecuteOptions> & { readonly requestId: string } = {
    requestId: givenRequestId(request) ?? randomId(),
    signal: run.signal,
    onProgress: (value) => exchange.progress(value),
    onLog: (line) => exchange.log(line, operationId),
  };
  if (identity !== undefined) options.identity = identity;
  if (run.caller !== undefined) options.caller = run.caller;
  const metadata = metadataOf(request);
  if (metadata !== undefined) options.metadata = metadata;
  return options;
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** A caller who gave a request id gets it back, whatever the format. */
function withRequestId(result: CallToolResult, requestId: string): CallToolResult {
  return { ...result, _meta: { ...result._meta, [REQUEST_ID_META_KEY]: requestId } };
}

/** Unwraps what `toServedInput` wrapped; without arguments, an operation that declares no input gets none. */
function toInput(operation: AnyOperation, args: unknown, isOddInput: boolean): unknown {
  if (args !== undefined && !isPlainObject(args)) {
    throw invalidParams("The arguments of a call must be an object.");
  }
  // A Waybill client can send an operation that declares no input what is no object.
  if (inputOf(operation).wrapped || (isOddInput && operation.inputSchema === undefined))
    return args !== undefined && Object.hasOwn(args, "input") ? args["input"] : undefined;
  return args ?? (operation.inputSchema === undefined ? undefined : {});
}

/** A call that was given up is answered as one that failed; anything else is a fault. */
function toGivenUp(thrown: unknown): CallToolResult {
  if (!isCallError(thrown)) throw thrown;
  return toFailure(thrown);
}

/** Where it is known why a tool is not there, that is a failed call; else nobody has heard of it. */
function missingTool(served: ServedTools, { identity }: PeerRequest, name: string): CallToolResult {
  const error = served.explainMissing(name, identity);
  if (error === undefined) throw unknownTool(name);
  return toFailure(error);
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
