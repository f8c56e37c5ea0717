import { type CallContext, closeContext, isOver } from "./call-context.ts";
import {
  isErrorEnvelope,
  isMarkedEnvelope,
  localEnvelope,
  type ResponseEnvelope,
  withOperationId,
} from "./envelope.ts";
import { CallError } from "./errors.ts";
import { toHandlerError } from "./handler-error.ts";
import { checkedInput, parsedInput } from "./input.ts";
import type { OperationEntry } from "./operation-entry.ts";
import { reconcile, reconcileParsed } from "./output.ts";

/** An envelope, now or later: only what has to be waited for is. */
export type Outcoming = ResponseEnvelope | Promise<ResponseEnvelope>;

/** Validates the input, runs the handler, wraps and checks what it gives; fails with nothing but `CallError`. */
export function run(entry: OperationEntry, input: unknown, context: CallContext): Outcoming {
  const { validate } = entry.input;
  if (validate === undefined) return invoke(entry, checkedInput(entry, input), context);
  return parsedInput(entry, input, validate).then((parsed) => {
    // A parser may take its time, and nobody may be waiting any more when it is done.
    if (isOver(context)) throw new CallError("ABORTED");
    return invoke(entry, parsed, context);
  });
}

/** Wraps what a handler gave, unless it is an envelope already, and holds its data against the output schema. */
export function conclude(entry: OperationEntry, value: unknown): Outcoming {
  const marked = isMarkedEnvelope(value);
  const envelope = marked ? withOperationId(value, entry.id) : localEnvelope(value, entry.id);
  const { output } = entry;
  if (output === undefined || (marked && isErrorEnvelope(envelope))) return envelope;
  if (output.validate !== undefined) return reconcileParsed(entry, output, output.validate, envelope);
  return output.isClean(envelope.data) ? envelope : reconcile(entry, output, envelope);
}

function invoke(entry: OperationEntry, input: unknown, context: CallContext): Outcoming {
  try {
    const value: unknown = entry.handler.call(entry.operation, input as never, context);
    if (isThenable(value) || entry.output?.validate !== undefined) return settle(entry, value, context);
    closeContext(context);
    return conclude(entry, value);
  } catch (thrown) {
    closeContext(context);
    throw toHandlerError(entry, thrown);
  }
}

async function settle(
  entry: OperationEntry,
  pending: unknown,
  context: CallContext,
): Promise<ResponseEnvelope> {
  try {
    const value = await pending;
    closeContext(context);
    const result = conclude(entry, value);
    return result instanceof Promise ? await result : result;
  } catch (thrown) {
    closeContext(context);
    throw toHandlerError(entry, thrown);
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  if (value instanceof Promise) return true;
  if (typeof value !== "object" || value === null) return false;
  return typeof (value as { then?: unknown }).then === "function";
}
