import { ownerOf } from "../../core/access/identity.ts";
import { CallError } from "../../core/errors/errors.ts";
import { CallContext, inheritFrom } from "../../core/execution/call-context.ts";
import { LONGEST_DELAY, monotonicNow } from "../../core/execution/deadline.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { CallerSide } from "../../core/operation/caller-side.ts";
import type { Metadata, OperationContext } from "../../core/operation/operation-context.ts";
import { INPUT_META_KEY, REQUEST_ID_META_KEY } from "../meta-keys.ts";
import { NEAREST_LEVELS, type ServerLog } from "../provider.ts";
import type { McpConnection, McpRequestOptions } from "./mcp-connection.ts";

/** When input is sent as the member `input` of the arguments: always, never, or where it is no object and so cannot be them. */
export type WrapsInput = boolean | "unless-object";

/** A tool to be called, and what is sent besides its input. */
export interface ToolCall {
  /** Its exact name. */
  readonly tool: string;
  readonly input: unknown;
  /** As listed, for headers that mirror arguments. @default none are mirrored */
  readonly inputSchema?: Readonly<Record<string, unknown>> | undefined;
  /** Sends the input as the member `input` of the arguments. @default false */
  readonly wrapsInput?: WrapsInput | undefined;
  /** What the call is about; a trace in it goes on to the server. @default none */
  readonly metadata?: Metadata | undefined;
  /** Under which the server runs and logs the call, where it is one of Waybill's. @default its own */
  readonly requestId?: string | undefined;
}

/** The keys of `_meta` that carry a trace on, as the protocol names them. */
const TRACE_KEYS = ["traceparent", "tracestate", "baggage"] as const;
const TRACE_LENGTH = 8_192;

/** Calls a tool and resolves with what the server answered, unread. */
export async function callTool(
  connection: McpConnection,
  call: ToolCall,
  options: McpRequestOptions,
): Promise<unknown> {
  const isOddInput = call.wrapsInput === "unless-object" && !isArguments(call.input);
  const args = isOddInput ? { input: call.input } : toArguments(call);
  const { requestId } = call;
  const _meta = {
    ...traceOf(call.metadata),
    ...(requestId !== undefined && { [REQUEST_ID_META_KEY]: requestId }),
    ...(isOddInput && { [INPUT_META_KEY]: "wrapped" }),
  };
  const params = {
    name: call.tool,
    ...(args && { arguments: args }),
    ...(Object.keys(_meta).length > 0 && { _meta }),
  };
  const { inputSchema } = call;
  return await connection.request("tools/call", params, { ...options, ...(inputSchema && { inputSchema }) });
}

/** What a call over a connection takes over from the context of a handler. */
export function requestOptionsOf(
  context: OperationContext,
  timeoutMs: number | undefined,
): McpRequestOptions {
  const { signal, deadline, progress, log, identity } = context;
  const left = deadline === undefined ? timeoutMs : Math.max(0, deadline - monotonicNow());
  const caller = callerOf(context);
  return {
    signal,
    timeoutMs: left,
    onProgress: progress,
    caller,
    party: caller?.party ?? (identity && ownerOf(identity)),
    onServerLog: (line) => tellLog(log, line),
  };
}

/** Says what a server logged as if the handler had; a server of Waybill sends a message with its data, or a message alone. */
function tellLog(log: OperationContext["log"], { level, logger, data }: ServerLog): void {
  const { message, data: beside } = isPlainObject(data) ? data : {};
  if (typeof data === "string") log(NEAREST_LEVELS[level], data);
  else if (typeof message === "string") log(NEAREST_LEVELS[level], message, beside ?? data);
  else log(NEAREST_LEVELS[level], logger ?? "The server logged this.", data);
}

/** The same for a subscription, which lasts until somebody ends it. */
export function streamOptionsOf(context: OperationContext): McpRequestOptions {
  return requestOptionsOf(context, LONGEST_DELAY);
}

/** Whoever made the call, as one object for all their calls, so that it can be told whose question it is. */
function callerOf(context: OperationContext): CallerSide | undefined {
  if (context instanceof CallContext) return inheritFrom(context).caller;
  return {
    elicit: (request) => context.elicit(request),
    sample: (request) => context.sample(request),
  };
}

function toArguments({ tool, input, wrapsInput }: ToolCall): Record<string, unknown> | undefined {
  if (wrapsInput === true) return { input };
  if (isArguments(input)) return input;
  const message = `The input of the tool ${JSON.stringify(tool.slice(0, 200))} must be an object.`;
  const found = input === null ? "null" : Array.isArray(input) ? "an array" : typeof input;
  throw new CallError("VALIDATION_ERROR", message, {
    details: { issues: [{ pointer: "", expected: "object", found }] },
  });
}

function isArguments(input: unknown): input is Record<string, unknown> | undefined {
  return input === undefined || isPlainObject(input);
}

function traceOf(metadata: Metadata | undefined): Record<string, string> | undefined {
  if (metadata === undefined) return undefined;
  const trace: Record<string, string> = {};
  for (const key of TRACE_KEYS) {
    const value = Object.hasOwn(metadata, key) ? metadata[key] : undefined;
    if (typeof value === "string" && value.length <= TRACE_LENGTH) trace[key] = value;
  }
  return Object.keys(trace).length === 0 ? undefined : trace;
}
