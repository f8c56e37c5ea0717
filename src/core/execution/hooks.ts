import { isMarkedEnvelope, type ResponseEnvelope } from "../envelope/envelope.ts";
import { CallError, toCallError } from "../errors/errors.ts";
import type { OperationContext } from "../operation/operation-context.ts";
import type { AnyOperation } from "../operation/operation-types.ts";

/** One call as hooks see it. */
export interface HookedCall {
  /** As the caller asked for it. */
  readonly operationId: string;
  /** Absent when there is no such operation for this caller. */
  readonly operation: AnyOperation | undefined;
  readonly input: unknown;
  readonly context: OperationContext;
}

/**
 * Stands around calls: sees each one, what it came to, and what it failed with.
 *
 * The hook added first is outermost. `next()` goes on with the same input, `next(input)` with another one, for which access
 * is decided again. A hook may answer with an envelope of its own, fail, or call `next` again to retry. Whether the call is
 * allowed is settled before: when it is not, `next` fails with the reason, and so does the call, whatever the hook answers.
 */
export type CallHook = (
  call: HookedCall,
  next: (input?: unknown) => Promise<ResponseEnvelope>,
) => Promise<ResponseEnvelope>;

/** Stands around subscriptions, by the same rules: it sees the stream and may pass on another one. */
export type SubscribeHook = (
  call: HookedCall,
  next: (input?: unknown) => AsyncIterable<ResponseEnvelope>,
) => AsyncIterable<ResponseEnvelope>;

/** Hooks for calls, for subscriptions, or for both. */
export interface Hooks {
  readonly execute?: CallHook;
  readonly subscribe?: SubscribeHook;
}

/** Nests hooks around the last step; `next` without an argument goes on with the input at hand. */
export function nestHooks<R>(
  hooks: readonly ((call: HookedCall, next: (input?: unknown) => R) => R)[],
  call: HookedCall,
  last: (input: unknown) => R,
): R {
  const step = (index: number, input: unknown): R => {
    const hook = hooks[index];
    if (hook === undefined) return last(input);
    const seen = input === call.input ? call : Object.freeze({ ...call, input });
    return hook(seen, (...given) => step(index + 1, given.length === 0 ? input : given[0]));
  };
  return step(0, call.input);
}

/** Runs a call through hooks; a refusal stands whatever they answer. */
export async function runHooks(
  hooks: readonly CallHook[],
  call: HookedCall,
  refusal: CallError | undefined,
  last: (input: unknown) => Promise<ResponseEnvelope>,
): Promise<ResponseEnvelope> {
  try {
    const envelope = await nestHooks(hooks, call, last);
    if (refusal === undefined) return fromHook(envelope);
  } catch (thrown) {
    throw refusal ?? toCallError(thrown);
  }
  throw refusal;
}

/** Only envelopes made here leave a hook: anything else would pass for one without having been checked. */
export function fromHook(value: unknown): ResponseEnvelope {
  if (isMarkedEnvelope(value)) return value;
  const cause = new TypeError(
    "A hook must answer with an envelope: that of next(), or one made by a factory.",
  );
  throw new CallError("EXECUTION_ERROR", undefined, { cause });
}
