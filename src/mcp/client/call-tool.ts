import { ownerOf } from "../../core/access/identity.ts";
import { mcpEnvelope, type ResponseEnvelope, type ResultFacts } from "../../core/envelope/envelope.ts";
import type { SaidFacts } from "../../core/envelope/response-meta.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { CallContext, inheritFrom } from "../../core/execution/call-context.ts";
import { LightSignal, LONGEST_DELAY, monotonicNow } from "../../core/execution/cancellation.ts";
import { asJson, isPlainObject, isTooDeep } from "../../core/json/json-value.ts";
import type { CallerSide } from "../../core/operation/caller-side.ts";
import type { Metadata, OperationContext } from "../../core/operation/operation-context.ts";
import { type CursoredValue, withCursor } from "../../core/operation/with-cursor.ts";
import { RESULT_META_KEY, textOf } from "../../core/result/tool-result.ts";
import { decodeEnvelope, fromWire } from "../../core/wire/wire.ts";
import { bytesPlaceOf, MOST_BYTES_BLOCKS, toBytesBlock } from "../content-blocks.ts";
import { INPUT_META_KEY, REQUEST_ID_META_KEY, YIELD_META_KEY } from "../names.ts";
import { traceIn } from "../protocol/messages.ts";
import { NEAREST_LEVELS, type ServerLog } from "../provider.ts";
import type { McpLink, McpRequestOptions } from "./mcp-connection.ts";

/** When input is sent as the member `input` of the arguments: always, never, or where it is no object and so cannot be them. */
export type WrapsInput = boolean | "unless-object";

/** A tool to be called, and what is sent besides its input. */
export interface ToolCall {
  /** Its exact name. */
  readonly tool: string;
  readonly input: unknown;
  /** Sends the input as the member `input` of the arguments. @default false */
  readonly wrapsInput?: WrapsInput | undefined;
  /** What the call is about; a trace in it goes on to the server. @default none */
  readonly metadata?: Metadata | undefined;
  /** Under which the server runs and logs the call, where it is one of Waybill's. @default its own */
  readonly requestId?: string | undefined;
  /** Asks the server for a task in place of the result (2025-11-25). @default a call like any other */
  readonly task?: { readonly ttl: number } | undefined;
}

/** Calls a tool and resolves with what the server answered, unread; throws for input that cannot be sent. */
export function callTool(connection: McpLink, call: ToolCall, options: McpRequestOptions): Promise<unknown> {
  const isOddInput = call.wrapsInput === "unless-object" && !isArguments(call.input);
  const args = isOddInput ? { input: call.input } : toArguments(call);
  const params: Record<string, unknown> = { name: call.tool };
  if (args !== undefined) params["arguments"] = args;
  if (call.task !== undefined) params["task"] = call.task;
  const meta = metaOf(call, isOddInput);
  if (meta !== undefined) params["_meta"] = meta;
  return connection.request("tools/call", params, options);
}

function metaOf({ metadata, requestId }: ToolCall, isOddInput: boolean): Record<string, string> | undefined {
  const trace = metadata && traceIn(metadata);
  if (requestId === undefined && !isOddInput) return trace;
  const meta = trace ?? {};
  if (requestId !== undefined) meta[REQUEST_ID_META_KEY] = requestId;
  if (isOddInput) meta[INPUT_META_KEY] = "wrapped";
  return meta;
}

/** What a call over a connection takes over from the context of a handler. */
export function requestOptionsOf(
  context: OperationContext,
  timeoutMs: number | undefined,
): McpRequestOptions {
  const { deadline, progress, identity } = context;
  const { caller, signal } = givenBy(context);
  return {
    signal,
    timeoutMs: deadline === undefined ? timeoutMs : Math.max(0, deadline - monotonicNow()),
    onProgress: progress,
    caller,
    party: caller?.party ?? (identity && ownerOf(identity)),
    onServerLog: (line) => tellLog(context.log, line),
    call: context,
    // Set by those who know it: a member that is there is not added to a copy.
    inputSchema: undefined,
    task: undefined,
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
  return { ...requestOptionsOf(context, LONGEST_DELAY), signal: context.signal };
}

/**
 * The caller, as one object for all their calls, so that it can be told whose question it is, and what ends the call early:
 * a signal of the platform costs more than the rest of a call, and nobody but our own code listens to this one.
 */
function givenBy(context: OperationContext): Pick<McpRequestOptions, "caller" | "signal"> {
  if (context instanceof CallContext) {
    const { caller, cancellation } = inheritFrom(context);
    if (cancellation === undefined) return { caller, signal: undefined };
    const signal = new LightSignal();
    cancellation.watch((error) => signal.abort(error));
    return { caller, signal: signal as unknown as AbortSignal };
  }
  const caller: CallerSide = {
    elicit: (request) => context.elicit(request),
    sample: (request) => context.sample(request),
  };
  return { caller, signal: context.signal };
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

type Value = ResponseEnvelope | CursoredValue<ResponseEnvelope>;

/** How the values of a subscription behind a tool are fetched. */
export interface StreamRun {
  /** Values that wait for a slow reader. */
  readonly limit: number;
  /** Ends it from outside. @default it ends by itself or by leaving the loop */
  readonly signal?: AbortSignal | undefined;
  /** Masks what is secret in a value. @default values are given as they come */
  mask?(envelope: ResponseEnvelope): ResponseEnvelope;
  /** Runs the call until it is over; rejects with a `CallError`. */
  run(
    onProgress: (progress: Readonly<Record<string, unknown>>) => void,
    signal: AbortSignal,
  ): Promise<unknown>;
}

/**
 * The values of a subscription that Waybill serves as a tool: each comes in a progress notification, the call ends with the last.
 * Nothing is sent before the first value is asked for; leaving the loop cancels the call.
 */
export class ToolStream implements AsyncIterableIterator<Value, undefined> {
  readonly #stream: StreamRun;
  readonly #leaving = new AbortController();
  readonly #waiting: Value[] = [];
  #started = false;
  #over = false;
  #failure: { readonly error: unknown } | undefined;
  readonly #abort = () => this.#leaving.abort(this.#stream.signal?.reason);
  #wake: (() => void) | undefined;

  constructor(stream: StreamRun) {
    this.#stream = stream;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Value, undefined>> {
    if (!this.#started) this.#start();
    while (this.#waiting.length === 0 && !this.#over) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const value = this.#waiting.shift();
    if (value !== undefined) return { done: false, value };
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure.error;
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#started = true;
    this.#waiting.length = 0;
    this.#end();
    this.#leaving.abort();
    return { done: true, value: undefined };
  }

  #start(): void {
    this.#started = true;
    const { signal } = this.#stream;
    if (signal?.aborted) this.#abort();
    else signal?.addEventListener("abort", this.#abort, { once: true });
    const onProgress = (progress: Readonly<Record<string, unknown>>) => this.#hear(progress);
    this.#stream.run(onProgress, this.#leaving.signal).then(
      () => this.#end(),
      (error: unknown) => this.#end({ error }),
    );
  }

  #hear(progress: Readonly<Record<string, unknown>>): void {
    if (this.#over) return;
    try {
      const value = readYield(progress, (envelope) => this.#stream.mask?.(envelope) ?? envelope);
      if (value === undefined) return;
      if (this.#waiting.length >= this.#stream.limit) throw tooSlow(this.#stream.limit);
      this.#waiting.push(value);
      this.#wake?.();
    } catch (error) {
      this.#end({ error });
      this.#leaving.abort();
    }
  }

  #end(failure?: { readonly error: unknown }): void {
    if (!this.#over) this.#failure = failure;
    this.#over = true;
    this.#stream.signal?.removeEventListener("abort", this.#abort);
    this.#wake?.();
  }
}

function tooSlow(limit: number): CallError {
  return new CallError(
    "RESOURCE_EXHAUSTED",
    `More than ${limit} values of the subscription wait to be read.`,
  );
}

/** The value in a progress notification; nothing in one that is about something else. */
function readYield(
  progress: Readonly<Record<string, unknown>>,
  mask: (envelope: ResponseEnvelope) => ResponseEnvelope,
): Value | undefined {
  const meta = progress["_meta"];
  if (!isPlainObject(meta) || !Object.hasOwn(meta, YIELD_META_KEY)) return undefined;
  const text = meta[YIELD_META_KEY];
  if (typeof text !== "string")
    throw new CallError("OUTPUT_INVALID", "A value of the subscription is no text.");
  const { data, meta: told } = decodeEnvelope(text);
  const { cursor, sequence: _counted, ...facts }: ResultFacts = told.waybill ?? {};
  const isMcp = told.source === "mcp";
  // What it says of itself is not taken over: it came from an MCP server.
  const given = mcpEnvelope(data, {
    isError: told.isError === true,
    content: isMcp ? told.content : [],
    ...(isMcp && Object.hasOwn(told, "structuredContent") && { structuredContent: told.structuredContent }),
    waybill: facts,
  });
  const envelope = mask(given);
  if (typeof cursor !== "string") return envelope;
  const { data: shown } = mask(mcpEnvelope(cursor, { isError: false, content: [] }));
  return withCursor(envelope, String(shown));
}

interface WholeFetching {
  /** The exact name of the tool, for messages. */
  readonly tool: string;
  readonly request: Pick<McpRequestOptions, "signal" | "timeoutMs" | "call">;
  /** Hears of a whole that cannot be had; never throws. */
  warn(message: string, cause?: unknown): void;
}

/** The data of a result that was cut, as JSON. */
export interface WholeData {
  readonly data: unknown;
  /** Where the result said that it is. */
  readonly uri: string;
}

interface WholeResult {
  readonly result: unknown;
  readonly whole?: WholeData;
}

/** The longest address that is asked for. */
const URI_LENGTH = 8_192;

type Fields = Readonly<Record<string, unknown>>;

/**
 * Gives a result that Waybill cut to a preview its data back, read from where the result says the whole is: as structured content, or
 * apart where the result is an envelope. What cannot be read any more leaves the result as it came, and is a warning.
 */
export async function withWhole(
  connection: McpLink,
  result: unknown,
  { tool, request, warn }: WholeFetching,
): Promise<WholeResult> {
  const facts = factsOf(result);
  if (facts === undefined) return { result };
  const { stored, storedWire, storedAs, cuts: _, omittedCuts: __, preview: ___, ...others } = facts;
  const uri = storedWire ?? stored;
  if (typeof uri !== "string" || uri.length > URI_LENGTH) return { result };
  try {
    const value = readJson(await connection.request("resources/read", { uri }, request));
    const isWire = storedWire !== undefined;
    const data = isWire ? asJson(fromWire(value)) : storedAs === "envelope" ? dataOf(value) : value;
    const given = result as Fields;
    const meta = given["_meta"] as Fields;
    const _meta = { ...meta, [RESULT_META_KEY]: { ...others, ...(isWire && { wire: value }) } };
    if (storedAs !== undefined) {
      return { result: { ...given, _meta }, whole: { data, uri: String(stored) } };
    }
    const structuredContent = others["wrapsResult"] === true ? { result: data } : data;
    return { result: { ...given, structuredContent, _meta } };
  } catch (cause) {
    if (isCallError(cause) && cause.code === "ABORTED") throw cause;
    const name = JSON.stringify(tool.slice(0, 200));
    warn(`The tool ${name} sent a preview, and the whole cannot be read: the preview is the data.`, cause);
    return { result };
  }
}

/** Reads the bytes that a result links to because they were too long to send; what cannot be read stays a link, and is a warning. */
export async function withStoredBytes(
  connection: McpLink,
  result: unknown,
  { tool, request, warn }: WholeFetching,
): Promise<unknown> {
  const content = isPlainObject(result) ? result["content"] : undefined;
  const isStored = (block: unknown): boolean =>
    isPlainObject(block) && block["type"] === "resource_link" && bytesPlaceOf(block) !== undefined;
  if (!Array.isArray(content) || !content.some(isStored)) return result;
  const blocks: unknown[] = [];
  let left = MOST_BYTES_BLOCKS;
  for (const block of content) {
    const uri = isStored(block) && left-- > 0 ? block.uri : undefined;
    if (typeof uri !== "string" || uri.length > URI_LENGTH) {
      blocks.push(block);
      continue;
    }
    try {
      const { contents } = await connection.request("resources/read", { uri }, request);
      const [first]: readonly unknown[] = Array.isArray(contents) ? contents : [];
      const { blob, mimeType } = isPlainObject(first) ? first : {};
      if (typeof blob !== "string") throw new CallError("OUTPUT_INVALID", "What was stored are no bytes.");
      blocks.push(
        toBytesBlock(
          { uri, blob, mimeType: typeof mimeType === "string" ? mimeType : undefined },
          block._meta,
        ),
      );
    } catch (cause) {
      if (isCallError(cause) && cause.code === "ABORTED") throw cause;
      const name = JSON.stringify(tool.slice(0, 200));
      warn(`The tool ${name} sent a link to bytes that cannot be read: the link is in their place.`, cause);
      blocks.push(block);
    }
  }
  return { ...(result as Fields), content: blocks };
}

/** What a result says of itself, without what it said of being cut. */
export function withoutCut(said: SaidFacts | undefined, { uri }: WholeData): SaidFacts | undefined {
  if (said === undefined) return undefined;
  const { truncated: _, nextSteps = [], content = [], ...others } = said;
  const steps = nextSteps.filter((step) => !step.includes(uri));
  const blocks = content.filter(
    (block) =>
      !(block.type === "resource_link" && block.uri === uri) && !textOf(block)?.startsWith(`Read ${uri} `),
  );
  return {
    ...others,
    ...(steps.length > 0 && { nextSteps: steps }),
    ...(blocks.length > 0 && { content: blocks }),
  };
}

/** Puts whole data into an envelope that fills the structured content, where it has its one place; a tool envelope is in the text. */
export function withWholeData(structured: unknown, { data }: WholeData): unknown {
  return isPlainObject(structured) && Object.hasOwn(structured, "data")
    ? { ...structured, data }
    : structured;
}

function dataOf(value: unknown): unknown {
  if (isPlainObject(value) && Object.hasOwn(value, "data")) return value["data"];
  throw new CallError("OUTPUT_INVALID", "What was stored is no envelope.");
}

function factsOf(result: unknown): Fields | undefined {
  const meta = isPlainObject(result) ? result["_meta"] : undefined;
  const facts =
    isPlainObject(meta) && Object.hasOwn(meta, RESULT_META_KEY) ? meta[RESULT_META_KEY] : undefined;
  return isPlainObject(facts) ? facts : undefined;
}

function readJson({ contents }: Fields): unknown {
  const [first]: readonly unknown[] = Array.isArray(contents) ? contents : [];
  const text = isPlainObject(first) ? first["text"] : undefined;
  if (typeof text !== "string") throw new CallError("OUTPUT_INVALID", "What was stored is no text.");
  const value: unknown = JSON.parse(text);
  if (isTooDeep(text, value, undefined)) {
    throw new CallError("OUTPUT_INVALID", "What was stored is nested too deeply.");
  }
  return value;
}
