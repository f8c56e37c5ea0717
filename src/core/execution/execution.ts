import {
  isErrorEnvelope,
  localEnvelope,
  type ResponseEnvelope,
  type ResultFacts,
  toMarkedEnvelope,
  withFacts,
  withOperationId,
} from "../envelope/envelope.ts";
import { CallError } from "../errors/errors.ts";
import type { OperationEntry } from "../registry/operation-entry.ts";
import { blocksBesideData, linksFrom } from "../result/human-text.ts";
import { type ResultSaid, resultFacts } from "../result/said.ts";
import { type CallContext, closeContext, isOver } from "./call-context.ts";
import type { Cancellation } from "./cancellation.ts";
import { toHandlerError } from "./handler-error.ts";
import { checkedInput, parsedInput } from "./input.ts";
import { reconcile, reconcileParsed } from "./output.ts";
import { warnOfLooks } from "./unmarked-result.ts";

/** An envelope, now or later: only what has to be waited for is. */
export type EnvelopeOrPromise = ResponseEnvelope | Promise<ResponseEnvelope>;

/**
 * Validates the input, runs the handler, wraps and checks what it gives; fails with nothing but `CallError`.
 *
 * What has to be waited for is guarded by the cancellation, if there is one.
 */
export function run(
  entry: OperationEntry,
  input: unknown,
  context: CallContext,
  cancellation?: Cancellation,
): EnvelopeOrPromise {
  const { validate } = entry.input;
  if (validate === undefined)
    return invoke(entry, checkedInput(entry, input, context), context, cancellation);
  const pending = parsedInput(entry, input, validate, context).then((parsed) => {
    // A parser may take its time, and nobody may be waiting any more when it is done.
    if (isOver(context)) throw new CallError("ABORTED");
    return invoke(entry, parsed, context);
  });
  return cancellation === undefined ? pending : cancellation.guard(pending);
}

/** Wraps what a handler gave, unless it is a result already, and holds its data against the output schema. */
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

/** Adds what the operation says about its data, where its handler said nothing. */
function withRendered(entry: OperationEntry, envelope: ResponseEnvelope): ResponseEnvelope {
  if (entry.render === undefined || envelope.meta.waybill?.said !== undefined) return envelope;
  try {
    const said: unknown = entry.render.call(entry.operation, envelope.data as never);
    if (said === undefined) return envelope;
    // Nobody waits for it, and a promise that nobody looks at would end the process when it fails.
    if (said instanceof Promise) said.catch(() => {});
    return withFacts(envelope, renderedFacts(envelope, resultFacts(said as ResultSaid)));
  } catch (cause) {
    const message = `The render function of "${entry.id}" failed; the result goes on without what it says.`;
    entry.settings.warn({ type: "render-failed", message, operationId: entry.id, cause });
    return envelope;
  }
}

/** The blocks of an MCP tool stay beside those that are said about it. */
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
  cancellation?: Cancellation,
): EnvelopeOrPromise {
  try {
    const value: unknown = entry.handler.call(entry.operation, input as never, context);
    if (isThenable(value) || entry.parsesOutput) return wait(entry, value, context, cancellation);
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
): Promise<ResponseEnvelope> {
  if (cancellation === undefined) return settle(entry, value, context);
  if (entry.parsesOutput) return cancellation.guard(settle(entry, value, context));
  return settleInTime(entry, Promise.resolve(value), context, cancellation);
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

/** The same for a call that can end early: one promise, settled by whoever comes first. */
function settleInTime(
  entry: OperationEntry,
  pending: Promise<unknown>,
  context: CallContext,
  cancellation: Cancellation,
): Promise<ResponseEnvelope> {
  return new Promise((resolve, reject) => {
    const fail = (thrown: unknown) => {
      closeContext(context);
      // What a nested call failed with because time was up says less than that time was up.
      reject(cancellation.finish() ?? toHandlerError(entry, thrown));
    };
    const succeed = (value: unknown) => {
      try {
        closeContext(context);
        const result = conclude(entry, value);
        // A late answer has been rejected by now.
        if (cancellation.finish() === undefined) resolve(result);
      } catch (thrown) {
        fail(thrown);
      }
    };
    cancellation.watch(reject);
    // As `await` does it, whatever `then` a handler put on its promise.
    Promise.prototype.then.call(pending, succeed, fail);
  });
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  if (value instanceof Promise) return true;
  if (typeof value !== "object" || value === null) return false;
  return typeof (value as { then?: unknown }).then === "function";
}
