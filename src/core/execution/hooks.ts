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
  /** Why the caller may not make this call: what `next` fails with. Absent when it may. */
  readonly refusal?: CallError | undefined;
}

/** What holds for all that stands inside a hook: hooks added later, the handler, and the calls it makes. */
export interface NextOptions {
  /** One more signal that ends it. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds it may take; what is left to the call, when that is less. */
  readonly timeoutMs?: number | undefined;
  /** True lets it go on when the caller leaves or runs out of time: then `signal` and `timeoutMs` alone end it. @default false */
  readonly detached?: boolean | undefined;
}

/**
 * Stands around calls: sees each one, what it came to, and what it failed with.
 *
 * The hook added first is outermost. `next()` goes on with the same input, `next(input)` with another one, for which access
 * is decided again, and `next(input, options)` within bounds of its own. A hook may answer with an envelope of its own, fail, or call `next` again to retry. Whether the call is
 * allowed is settled before: when it is not, `next` fails with the reason, and so does the call, whatever the hook answers.
 */
export type CallHook = (
  call: HookedCall,
  next: (input?: unknown, options?: NextOptions) => Promise<ResponseEnvelope>,
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

/** A call within the bounds it has where a hook stands. */
export interface HookFrame {
  readonly call: HookedCall;
}

/** What nested hooks stand around. */
export interface HookedSteps<R, F extends HookFrame> {
  /** The innermost step. */
  last(input: unknown, frame: F): R;
  /** Runs the rest within bounds of a hook's making. */
  within(frame: F, options: NextOptions, run: (inner: F) => R): R;
}

/** Nests hooks around the last step; `next` without an argument goes on with the input at hand. */
export function nestHooks<R, F extends HookFrame>(
  hooks: readonly ((call: HookedCall, next: (input?: unknown, options?: NextOptions) => R) => R)[],
  outermost: F,
  steps: HookedSteps<R, F>,
): R {
  const step = (index: number, input: unknown, frame: F): R => {
    const hook = hooks[index];
    if (hook === undefined) return steps.last(input, frame);
    const { call } = frame;
    const seen = input === call.input ? call : Object.freeze({ ...call, input });
    return hook(seen, (...given) => {
      const wanted = given.length === 0 ? input : given[0];
      const options = given[1];
      if (options === undefined) return step(index + 1, wanted, frame);
      return steps.within(frame, options, (inner) => step(index + 1, wanted, inner));
    });
  };
  return step(0, outermost.call.input, outermost);
}

/** Runs a call through hooks; a refusal stands whatever they answer. */
export async function runHooks<F extends HookFrame>(
  hooks: readonly CallHook[],
  frame: F,
  steps: HookedSteps<Promise<ResponseEnvelope>, F>,
): Promise<ResponseEnvelope> {
  const { refusal } = frame.call;
  try {
    const envelope = await nestHooks(hooks, frame, steps);
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
