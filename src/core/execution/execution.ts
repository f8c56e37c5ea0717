import type { StandardSchemaV1 } from "@standard-schema/spec";
import {
  isErrorEnvelope,
  localEnvelope,
  type ResponseEnvelope,
  type ResultFacts,
  toMarkedEnvelope,
  withFacts,
  withOperationId,
} from "../envelope/envelope.ts";
import { RESPONSE_SOURCES } from "../envelope/response-meta.ts";
import { isErrorCode } from "../errors/error-codes.ts";
import { CallError, isCallError, isOfAnotherCall, toCallError, turnDown } from "../errors/errors.ts";
import { joinPointer } from "../json/json-pointer.ts";
import type { OperationContext } from "../operation/operation-context.ts";
import type { KnownError, OperationEntry } from "../registry/operation-entry.ts";
import { blocksBesideData, linksFrom } from "../result/human-text.ts";
import { type ResultSaid, resultFacts } from "../result/said.ts";
import type { OperationSchema } from "../schema/any-schema.ts";
import { clipPointer, describeFound } from "../schema/evaluation.ts";
import { MAX_ISSUES } from "../schema/limits.ts";
import type { NormalizationReport, SchemaIssue } from "../schema/schema-issue.ts";
import { mismatchText } from "../schema/schema-issue.ts";
import { type CallContext, closeContext, isOver } from "./call-context.ts";
import type { Cancellation } from "./cancellation.ts";

/** An envelope, or a promise of one if something asynchronous is involved. */
export type EnvelopeOrPromise = ResponseEnvelope | Promise<ResponseEnvelope>;

/**
 * Validates the input, runs the handler, wraps and checks its return value; throws only `CallError`.
 *
 * The cancellation, if there is one, guards everything asynchronous, and goes on watching where this is only a part of the call.
 */
export function run(
  entry: OperationEntry,
  input: unknown,
  context: CallContext,
  cancellation: Cancellation | undefined,
  isPart: boolean,
): EnvelopeOrPromise {
  const { validate } = entry.input;
  if (validate === undefined)
    return invoke(entry, checkedInput(entry, input, context), context, cancellation, isPart);
  const pending = parsedInput(entry, input, validate, context).then((parsed) => {
    // An asynchronous parser may finish after the call has ended.
    if (isOver(context)) throw new CallError("ABORTED");
    return invoke(entry, parsed, context, undefined, isPart);
  });
  return guarded(pending, cancellation, isPart);
}

function guarded<T>(
  pending: Promise<T>,
  cancellation: Cancellation | undefined,
  isPart: boolean,
): Promise<T> {
  if (cancellation === undefined) return pending;
  return isPart ? cancellation.race(pending) : cancellation.guard(pending);
}

/** Wraps the handler's return value, unless it is a result already, and checks its data against the output schema. */
export function conclude(entry: OperationEntry, value: unknown): EnvelopeOrPromise {
  const authored = toMarkedEnvelope(value) ?? entry.returns?.toEnvelope(value, entry.operation.outputSchema);
  const envelope = authored === undefined ? wrap(entry, value) : withOperationId(authored, entry.id);
  const { output } = entry;
  if (authored !== undefined && isErrorEnvelope(envelope)) return envelope;
  if (output === undefined) return withRendered(entry, envelope);
  if (output.validate !== undefined) {
    const reconciled = reconcileParsed(entry, output, output.validate, envelope);
    return entry.render === undefined ? reconciled : reconciled.then((ended) => withRendered(entry, ended));
  }
  return withRendered(entry, output.isClean(envelope.data) ? envelope : reconcile(entry, output, envelope));
}

function wrap(entry: OperationEntry, value: unknown): ResponseEnvelope {
  if (!entry.warnedOfLooks) warnOfLooks(entry, value);
  return localEnvelope(value, entry.id);
}

/** Adds the texts of the operation's `render` if its handler gave none. */
function withRendered(entry: OperationEntry, envelope: ResponseEnvelope): ResponseEnvelope {
  if (entry.render === undefined || envelope.meta.waybill?.said !== undefined) return envelope;
  try {
    const said: unknown = entry.render.call(entry.operation, envelope.data as never);
    if (said === undefined) return envelope;
    // The promise is not awaited: without a handler, its rejection would end the process.
    if (said instanceof Promise) said.catch(() => {});
    return withFacts(envelope, renderedFacts(envelope, resultFacts(said as ResultSaid)));
  } catch (cause) {
    const message = `The render function of "${entry.id}" failed; the result goes on without what it says.`;
    entry.settings.warn({ type: "render-failed", message, operationId: entry.id, cause });
    return envelope;
  }
}

/** Keeps the blocks of an MCP tool beside the rendered ones. */
function renderedFacts({ data, meta }: ResponseEnvelope, facts: ResultFacts): ResultFacts {
  const { said } = facts;
  if (meta.source !== "mcp" || said?.content === undefined) return facts;
  const links = linksFrom(said.content);
  const own = blocksBesideData(meta.content, data);
  const content = [...said.content.slice(0, links), ...own, ...said.content.slice(links)];
  return { ...facts, said: { ...said, content } };
}

function invoke(
  entry: OperationEntry,
  input: unknown,
  context: CallContext,
  cancellation: Cancellation | undefined,
  isPart: boolean,
): EnvelopeOrPromise {
  try {
    const value: unknown = entry.handler.call(entry.operation, input as never, context);
    if (isThenable(value) || entry.parsesOutput) return wait(entry, value, context, cancellation, isPart);
    closeContext(context);
    return conclude(entry, value);
  } catch (thrown) {
    closeContext(context);
    throw toHandlerError(entry, thrown);
  }
}

function wait(
  entry: OperationEntry,
  value: unknown,
  context: CallContext,
  cancellation: Cancellation | undefined,
  isPart: boolean,
): Promise<ResponseEnvelope> {
  if (cancellation === undefined || entry.parsesOutput)
    return guarded(settle(entry, value, context), cancellation, isPart);
  return settleInTime(entry, Promise.resolve(value), context, cancellation, isPart);
}

async function settle(
  entry: OperationEntry,
  pending: unknown,
  context: CallContext,
): Promise<ResponseEnvelope> {
  try {
    const value = await pending;
    closeContext(context);
    return entry.parsesOutput ? await conclude(entry, value) : conclude(entry, value);
  } catch (thrown) {
    closeContext(context);
    throw toHandlerError(entry, thrown);
  }
}

/** The same for a call that can end early: one promise, settled by the handler or the cancellation, whichever is first. */
function settleInTime(
  entry: OperationEntry,
  pending: Promise<unknown>,
  context: CallContext,
  cancellation: Cancellation,
  isPart: boolean,
): Promise<ResponseEnvelope> {
  return new Promise((resolve, reject) => {
    const finish = () => {
      if (!isPart) return cancellation.finish();
      forget();
      return undefined;
    };
    const fail = (thrown: unknown) => {
      closeContext(context);
      // If the time is up, report that rather than the error that a nested call failed with because of it.
      reject(finish() ?? toHandlerError(entry, thrown));
    };
    const succeed = (value: unknown) => {
      try {
        closeContext(context);
        const result = conclude(entry, value);
        // The promise has been rejected already; the late answer is dropped.
        if (finish() === undefined) resolve(result);
      } catch (thrown) {
        fail(thrown);
      }
    };
    const forget = cancellation.watch(reject);
    // As `await` does it, whatever `then` a handler put on its promise.
    Promise.prototype.then.call(pending, succeed, fail);
  });
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  if (value instanceof Promise) return true;
  if (typeof value !== "object" || value === null) return false;
  return typeof (value as { then?: unknown }).then === "function";
}

/** Throws `VALIDATION_ERROR` unless the input passes; returns the handler's input, with defaults filled for a local one. */
export function checkedInput(entry: OperationEntry, input: unknown, context: Asking): unknown {
  const { input: schema } = entry;
  if (!schema.check(input)) throw invalid(entry, schema.errors(input));
  return entry.fillsDefaults ? withinTier(entry, schema.fillDefaults(input), context) : input;
}

/** The caller. */
type Asking = Pick<OperationContext, "identity">;

/** Checks the features again if defaults or a parser changed the input. */
function withinTier(entry: OperationEntry, ready: unknown, context: Asking): unknown {
  if (entry.tiers === undefined) return ready;
  const refusal = entry.tiers.refusal(context.identity, ready);
  if (refusal !== undefined) throw refusal;
  return ready;
}

/** The same for a schema with its own parser; a local handler gets the parsed value. */
export async function parsedInput(
  entry: OperationEntry,
  input: unknown,
  validate: StandardSchemaV1.Props["validate"],
  context: Asking,
): Promise<unknown> {
  // Our own check comes first: it is bounded, and looks at own properties only. Where a conversion may help, sizes and patterns are still held.
  const passes = entry.input.check(input);
  if (!passes && !(entry.local && entry.input.mayConvert?.(input) === true)) {
    throw invalid(entry, entry.input.errors(input));
  }
  const { value, issues } = await validated(entry, input, validate);
  if (issues !== undefined) throw invalid(entry, passes ? issues : entry.input.errors(input));
  return entry.local ? withinTier(entry, value, context) : input;
}

/** Runs a parser; whatever it returns or throws, this function returns a verdict. */
async function validated(
  entry: OperationEntry,
  input: unknown,
  validate: StandardSchemaV1.Props["validate"],
): Promise<{ readonly value?: unknown; readonly issues?: readonly SchemaIssue[] }> {
  try {
    const result = await validate(input);
    return result.issues ? { issues: toSchemaIssues(result.issues, input) } : { value: result.value };
  } catch (cause) {
    const message = `The schema of "${entry.id}" failed while it read the input.`;
    throw turnDown(new CallError("VALIDATION_ERROR", message, { cause }), entry.id);
  }
}

function invalid(entry: OperationEntry, issues: readonly SchemaIssue[]): CallError {
  const message = mismatchText(entry.id, issues);
  return turnDown(
    new CallError("VALIDATION_ERROR", message, { details: { issues }, stack: false }),
    entry.id,
  );
}

/** The report entry of a value that was replaced by its parsed form. */
const REPARSED: NormalizationReport = Object.freeze({ stripped: [], defaulted: [], converted: [""] });

/** Normalises data; data that still does not match is refused, or returned unchanged with its violations. */
function reconcile(
  entry: OperationEntry,
  output: OperationSchema,
  envelope: ResponseEnvelope,
): ResponseEnvelope {
  const { valid, value, report, issues } = output.normalize(envelope.data);
  return valid ? normalized(envelope, report, value) : violating(entry, envelope, issues);
}

/**
 * The same for a schema with its own parser, which may have rules that JSON Schema cannot express: what it refuses
 * is a violation too. Its parsed value is used only if the returned data cannot match, because the schema transforms.
 */
async function reconcileParsed(
  entry: OperationEntry,
  output: OperationSchema,
  validate: StandardSchemaV1.Props["validate"],
  envelope: ResponseEnvelope,
): Promise<ResponseEnvelope> {
  const { valid, value, report, issues } = output.normalize(envelope.data);
  const parsed = await validate(value);
  if (valid) {
    if (parsed.issues) return violating(entry, envelope, toSchemaIssues(parsed.issues, value));
    return normalized(envelope, report, value);
  }
  const usable = !parsed.issues && output.check(parsed.value);
  return usable ? normalized(envelope, REPARSED, parsed.value) : violating(entry, envelope, issues);
}

function normalized(
  envelope: ResponseEnvelope,
  report: NormalizationReport | undefined,
  value: unknown,
): ResponseEnvelope {
  return report === undefined ? envelope : withFacts(envelope, { normalization: report }, value);
}

function violating(
  entry: OperationEntry,
  envelope: ResponseEnvelope,
  issues: readonly SchemaIssue[],
): ResponseEnvelope {
  const message = `The output of "${entry.id}" does not match its schema.`;
  if (entry.strict) {
    throw turnDown(new CallError("OUTPUT_INVALID", message, { details: { issues } }), entry.id);
  }
  entry.settings.warn({ type: "output-invalid", message, operationId: entry.id, issues });
  const places = new Set(issues.map(({ pointer }) => pointer));
  const known = envelope.meta.waybill?.violations?.filter(({ pointer }) => !places.has(pointer)) ?? [];
  return withFacts(envelope, { violations: [...known, ...issues] });
}

type Shape = Readonly<Record<string, unknown>>;

/** The kinds of results that data can look like, each with advice for the author. */
const LOOKS = {
  envelope: {
    what: "a response envelope that was copied, or made by another copy of the package, so that it is none here",
    fix: "return withData(envelope, data) to change the data of an envelope, or the envelope itself, and where the package is installed twice run the copy that the handler imports",
  },
  failed: {
    what: "a tool result with isError: true",
    fix: "return toolError(), or give the operation returns: createResultReader() of waybill/formats",
  },
  published: {
    what: "a published envelope",
    fix: "return what composeToolPayload(), toToolResult() or tieredEnvelope() gives, uncopied, or give the operation returns: createResultReader() of waybill/formats",
  },
} as const;

/**
 * Warns, once for each operation, about data that looks like a result. It stays data, because a shape can be forged: only the
 * factories make results.
 */
function warnOfLooks(entry: OperationEntry, value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  if (!("content" in value || "meta" in value || "tier" in value)) return;
  const look = lookOf(value as Shape);
  if (look === undefined) return;
  entry.warnedOfLooks = true;
  const { what, fix } = LOOKS[look];
  const message = `The handler of "${entry.id}" returned what looks like ${what}. It is treated as data; ${fix}.`;
  entry.settings.warn({ type: "result-unmarked", message, operationId: entry.id });
}

function lookOf(value: Shape): keyof typeof LOOKS | undefined {
  try {
    const { content, meta } = value;
    if (Array.isArray(content)) return lookOfResult(value, content);
    if (typeof meta === "object" && meta !== null && "data" in value) return lookOfPair(meta as Shape);
    return isTiered(value) ? "published" : undefined;
  } catch {
    // A getter that throws must not fail the call.
    return undefined;
  }
}

function lookOfResult(value: Shape, content: readonly unknown[]): keyof typeof LOOKS | undefined {
  if (value["isError"] === true) return "failed";
  const { structuredContent } = value;
  if (isObject(structuredContent) && isPublished(structuredContent)) return "published";
  const { text } = isObject(content[1]) ? content[1] : {};
  return typeof text === "string" && /^__ENVELOPE_V\d+__:/.test(text) ? "published" : undefined;
}

function isPublished(value: Shape): boolean {
  const { meta } = value;
  return isTiered(value) || (isObject(meta) && "data" in value && lookOfPair(meta) === "published");
}

function lookOfPair(meta: Shape): "envelope" | "published" | undefined {
  const { source, status, summary } = meta;
  if (RESPONSE_SOURCES.some((known) => known === source)) return "envelope";
  const isStatus = ["ok", "error", "info", "warn"].some((known) => known === status);
  return isStatus && typeof summary === "string" ? "published" : undefined;
}

function isTiered(value: Shape): boolean {
  return typeof value["tier"] === "string" && "tool_id" in value && "request_id" in value && "error" in value;
}

function isObject(value: unknown): value is Shape {
  return typeof value === "object" && value !== null;
}

/**
 * Turns what a handler threw into the error of its call. A declared code keeps its message and details and gets its
 * declared status; a code of the table is kept. Any other code, and a refused call that the handler made, becomes
 * `EXECUTION_ERROR` and stays in `cause`.
 */
export function toHandlerError(entry: OperationEntry, thrown: unknown): CallError {
  const error = toCallError(thrown);
  const known = entry.errors.get(error.code);
  if (known !== undefined && isCallError(thrown)) return toDeclaredError(entry, known, error);
  // This call was not aborted, or its cancellation would have ended it: the handler aborted something itself.
  const isForeignAbort = error.code === "ABORTED" && !isCallError(thrown);
  const isOfAnother = isOfAnotherCall(error, entry.id);
  if (isErrorCode(error.code) && !isOfAnother && !isForeignAbort) return error;
  if (isOfAnother && (error.code === "TIMEOUT" || error.code === "ABORTED")) {
    return new CallError(error.code, undefined, { cause: thrown, stack: false });
  }
  return new CallError("EXECUTION_ERROR", undefined, { cause: thrown });
}

function toDeclaredError(entry: OperationEntry, known: KnownError, error: CallError): CallError {
  const issues = known.details?.errors(error.details) ?? [];
  if (issues.length > 0) {
    const message = `The details of "${error.code}", thrown by "${entry.id}", do not match their schema.`;
    entry.settings.warn({ type: "error-details-invalid", message, operationId: entry.id, issues });
  }
  const { httpStatus = error.httpStatus } = known;
  if (httpStatus === error.httpStatus) return error;
  const { message, details, retryable, correctable } = error;
  return new CallError(error.code, message, {
    details,
    retryable,
    correctable,
    httpStatus,
    cause: error,
    stack: false,
  });
}

const MAX_MESSAGE = 500;

/** Converts the issues of a Standard Schema to those of every other schema. */
export function toSchemaIssues(issues: readonly StandardSchemaV1.Issue[], value: unknown): SchemaIssue[] {
  const found = issues.map(({ message, path = [] }) => {
    const keys = path.map((segment) => (typeof segment === "object" ? segment.key : segment));
    const pointer = clipPointer(keys.reduce(pointTo, ""));
    const expected = String(message).slice(0, MAX_MESSAGE);
    return { pointer, expected, found: describeFound(readPath(value, keys)), message: expected };
  });
  return found.sort((a, b) => a.pointer.length - b.pointer.length).slice(0, MAX_ISSUES);
}

function pointTo(pointer: string, key: PropertyKey): string {
  return joinPointer(pointer, String(key));
}

function readPath(value: unknown, keys: readonly PropertyKey[]): unknown {
  let current = value;
  for (const key of keys) {
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, key)) return undefined;
    current = Reflect.get(current, key);
  }
  return current;
}
