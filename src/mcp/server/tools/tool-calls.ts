import { localEnvelope, withFacts } from "../../../core/envelope/envelope.ts";
import type { MCPResponseMeta, ResponseEnvelope } from "../../../core/envelope/response-meta.ts";
import { isCallError, toCallError } from "../../../core/errors/errors.ts";
import { randomId } from "../../../core/execution/call-context.ts";
import { monotonicNow, toPlatformSignal } from "../../../core/execution/cancellation.ts";
import { asJson, isPlainObject } from "../../../core/json/json-value.ts";
import type { AnyOperation } from "../../../core/operation/operation-types.ts";
import type { ExecuteOptions } from "../../../core/registry/executor.ts";
import { type EndedCall, endCall, warnOfUnexpected } from "../../../core/result/ended-call.ts";
import type { ResultFormat } from "../../../core/result/result-reader.ts";
import type { CallToolResult } from "../../../core/result/tool-result.ts";
import { isEqual } from "../../../core/schema/compare-values.ts";
import { MAX_ISSUES } from "../../../core/schema/limits.ts";
import type { SchemaIssue } from "../../../core/schema/schema-issue.ts";
import { truncateText } from "../../../core/text/truncate-text.ts";
import { encodeEnvelope } from "../../../core/wire/wire.ts";
import { linkedUri } from "../../content-blocks.ts";
import { INPUT_META_KEY, REQUEST_ID_META_KEY, YIELD_META_KEY } from "../../names.ts";
import { invalidParams, ProtocolError, quoted, RPC_CODES } from "../../protocol/messages.ts";
import {
  decodeHeader,
  isInexact,
  type MirroredParam,
  mirroredParams,
  mirroredValue,
} from "../../protocol/revisions.ts";
import { UI_EXTENSION } from "../../provider.ts";
import { givenRequestId, metadataOf, type PeerRequest, type RequestReporter } from "../peer-request.ts";
import { pageOf } from "../resources/resource-directory.ts";
import { JsonList, JsonResult, toFailure, toPlainJson, toResult } from "../results/to-result.ts";
import type { InputRequiredResult, MayGoOn, SuspendableRun } from "../suspended-calls.ts";
import { type CallReporter, planOf, runPlanned, type ToolWork } from "../tasks/task-calls.ts";
import { importedFrom, inputOf, isForPagesAlone, type StreamResult, streamSchema } from "./describe-tool.ts";
import type { ServedTools } from "./served-tools.ts";

/** Answers `tools/call`. */
export function answerToolCall(
  served: ServedTools,
  request: PeerRequest,
  params: Readonly<Record<string, unknown>>,
): Promise<object> | CallToolResult {
  const { name } = params;
  if (typeof name !== "string") throw invalidParams("A call needs the name of a tool.");
  const format = served.formatFor(request);
  const operation = served.table.find(name, request.identity);
  if (operation === undefined || operation.visibility === "internal")
    return missingTool(served, request, name);
  const input = readInput({ served, request, operation, name, args: params["arguments"] });
  if (served.mayBeTask(request, params)) {
    const planned = answerAsTask({ served, request, operation, name, format, input, params });
    if (planned !== undefined) return planned;
  }
  const start = async (
    run: SuspendableRun,
    exchange: RequestReporter,
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
    return await writeCall(call, { served, request, operation, name, format });
  };
  return request.run("tools/call", name, start, mayCall(served, [operation.id]));
}

interface NamedTool {
  readonly served: ServedTools;
  readonly request: PeerRequest;
  readonly operation: AnyOperation;
  readonly name: string;
  readonly format: ResultFormat;
}

/** Writes what a call came to; a tool that the caller may not see does not exist. */
async function writeCall(call: EndedCall, tool: NamedTool): Promise<CallToolResult | JsonResult> {
  const { served, request, name } = tool;
  if (isHidden(served, call)) throw unknownTool(name);
  if ("error" in call.outcome) request.assertCapable(call.outcome.error);
  const requestId = givenRequestId(request);
  const json = requestId === undefined ? toPlainJson(call, tool) : undefined;
  if (json !== undefined) return new JsonResult(json);
  const result = await toResult({ ...call, calledAs: name }, tool);
  return requestId === undefined ? result : withRequestId(result, requestId);
}

/** Answers a call that is a task, or may become one; nothing where it is an ordinary one. */
function answerAsTask(
  tool: NamedTool & { readonly input: unknown; readonly params: Readonly<Record<string, unknown>> },
): Promise<object> | undefined {
  const { served, request, operation, name, params } = tool;
  if (served.tasks === undefined) return undefined;
  // What a client of 2025 does not ask to be a task is none, unless the tool has to be one.
  const isAsked = params["task"] !== undefined || request.peer.era === "modern";
  if (!isAsked && served.taskSupportOf(operation.id) !== "required") return undefined;
  const { identity } = request;
  const isListed = (): boolean => served.executor.list({ identity }).some(({ id }) => id === operation.id);
  try {
    const plan = planOf(served, request, operation, params);
    if (plan === undefined) return undefined;
    if (operation.access !== undefined && !isListed()) throw unknownTool(name);
    const work: ToolWork = {
      ...tool,
      mayGoOn: mayCall(served, [operation.id]),
      end: (run, exchange) => endOperation({ served, request, run, exchange }, operation, tool.input),
      write: (call) => writeCall(call, tool),
    };
    return runPlanned(served, request, work, plan);
  } catch (thrown) {
    // What is wrong is not said of a tool that this caller may not see.
    if (operation.access === undefined || isListed()) throw thrown;
    throw unknownTool(name);
  }
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
export interface ToolCallScope {
  readonly served: ServedTools;
  readonly request: PeerRequest;
  readonly run: SuspendableRun;
  readonly exchange: CallReporter;
}

/** Runs an operation to its end, a subscription too; links of an imported tool's result lead back to its server. */
export async function endOperation(
  scope: ToolCallScope,
  operation: AnyOperation,
  input: unknown,
): Promise<EndedCall> {
  const { served, exchange, run } = scope;
  const options = toExecuteOptions(scope, operation.id);
  const call = await (operation.type === "subscription"
    ? endStream({ served, exchange, operation, input, options })
    : endCall(served.executor, operation.id, input, options));
  const { outcome } = call;
  // What a source said of its failure is in the details; what a handler threw is nowhere else.
  if ("error" in outcome && (operation.source ?? "local") === "local")
    warnOfUnexpected(served.onUnexpected, outcome.error, call);
  if (operation.type === "subscription") return call;
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
  { request, run, exchange }: ToolCallScope,
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

const DECIMAL = /^-?\d{1,20}(\.\d{1,20})?$/;

/**
 * Checks that the `Mcp-Param-*` headers of a 2026-07-28 call over HTTP repeat what the arguments say, wherever the tool's input
 * schema has an `x-mcp-header`: what routed the request must be what runs. Anything else is a protocol error.
 */
function checkParamHeaders(
  request: Pick<PeerRequest, "peer" | "hasHeaders" | "header">,
  inputSchema: object,
  args: unknown,
): void {
  if (!request.hasHeaders || request.peer.era !== "modern") return;
  const wrong = mirroredParams(inputSchema).find((each) => !agrees(each, args, request));
  if (wrong === undefined) return;
  const message = `The header ${wrong.header} does not repeat the argument ${wrong.path.join(".")}.`;
  throw new ProtocolError(RPC_CODES.headerMismatch, message, { mismatch: { header: wrong.header } });
}

/** A header is only needed for a value that can be written in one; without such a value, there is nothing it could repeat. */
function agrees(
  { path, header }: MirroredParam,
  args: unknown,
  request: Pick<PeerRequest, "header">,
): boolean {
  const value = mirroredValue(args, path);
  const given = request.header(header.toLowerCase());
  if (value === undefined) return given === undefined;
  if (isInexact(value)) return true;
  const text = given === undefined ? undefined : decodeHeader(given);
  if (text === undefined) return false;
  if (typeof value === "number" && DECIMAL.test(text)) return Number(text) === value;
  return text === String(value);
}

/** Characters of a value that people see in a progress notification. */
const MESSAGE_CHARACTERS = 1_000;

interface EndStreamOptions {
  readonly served: ServedTools;
  readonly exchange: CallReporter;
  readonly operation: AnyOperation;
  readonly input: unknown;
  readonly options: ExecuteOptions & { readonly requestId: string };
}

/** Runs a subscription to its end: each value is progress, and the result holds the first of them. */
async function endStream(asked: EndStreamOptions): Promise<EndedCall> {
  const { served, exchange, input, options } = asked;
  const { executor, limits } = served;
  // Formats judge the one result by the schema that is advertised for it.
  const operation = { ...asked.operation, outputSchema: streamSchema(asked.operation) };
  const startedAt = monotonicNow();
  const items: unknown[] = [];
  const violations: SchemaIssue[] = [];
  let count = 0;
  let outcome: EndedCall["outcome"];
  try {
    // The handler's own reports would get mixed up with its values, which are counted.
    const { onProgress: _, ...quiet } = options;
    for await (const envelope of executor.subscribe(operation.id, input, quiet)) {
      count += 1;
      const value = asJson(envelope.data ?? null);
      if (items.length < limits.streamItems) {
        const place = `/items/${items.push(value) - 1}`;
        for (const issue of envelope.meta.waybill?.violations ?? []) {
          if (violations.length < MAX_ISSUES) violations.push({ ...issue, pointer: place + issue.pointer });
        }
      }
      exchange.tell(toProgress(envelope, value, count));
    }
    const data: StreamResult = { items, count, truncated: count > items.length };
    const envelope = localEnvelope(data, operation.id);
    outcome = { envelope: violations.length === 0 ? envelope : withFacts(envelope, { violations }) };
  } catch (thrown) {
    outcome = { error: toCallError(thrown) };
  }
  const { requestId, identity } = options;
  const durationMs = Math.max(0, monotonicNow() - startedAt);
  return { operationId: operation.id, operation, requestId, identity, durationMs, outcome };
}

function toProgress(
  envelope: ResponseEnvelope,
  value: unknown,
  count: number,
): Parameters<RequestReporter["tell"]>[0] {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return {
    progress: count,
    message: truncateText(text, MESSAGE_CHARACTERS),
    _meta: { [YIELD_META_KEY]: encodeEnvelope(envelope) },
  };
}

/** Answers `tools/list`: what this caller may call, sorted by id, without what only pages call where the client shows none. */
export function listTools(served: ServedTools, request: PeerRequest, cursor: unknown): JsonList {
  const { executor, table, limits } = served;
  const format = served.formatFor(request);
  const visible = executor.list({ identity: request.identity });
  // The protocol has no other way to keep them from the model of a client that knows no pages.
  const hidden = visible.some(isForPagesAlone) && request.extensions[UI_EXTENSION] === undefined;
  const shown = hidden ? visible.filter((operation) => !isForPagesAlone(operation)) : visible;
  const { items, ...rest } = pageOf(shown, ({ id }) => id, { cursor, pageSize: limits.pageSize });
  return new JsonList("tools", table.jsonOf(items, request.peer.era, format), rest);
}
