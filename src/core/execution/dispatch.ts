import { isMarkedEnvelope, type ResponseEnvelope, withFacts } from "../envelope/envelope.ts";
import { CallError, toCallError, turnDown } from "../errors/errors.ts";
import type { OperationContext } from "../operation/operation-context.ts";
import type { AnyOperation } from "../operation/operation-types.ts";
import type { ExecuteOptions } from "../registry/executor.ts";
import type { OperationEntry } from "../registry/operation-entry.ts";
import type { RegistryHost } from "../registry/registry-host.ts";
import { boundedScope, CallContext, type CallScope, closeContext, openScope } from "./call-context.ts";
import { type Cancellation, monotonicNow } from "./cancellation.ts";
import { type EnvelopeOrPromise, run } from "./execution.ts";

/**
 * The one path of every call: look up, decide about access, then the hooks, and inside them validate, run and check.
 *
 * A synchronous handler costs no promise, and signals and deadlines are watched only if the call has any.
 */
export function dispatch(
  host: RegistryHost,
  target: unknown,
  input: unknown,
  options: ExecuteOptions | undefined,
  parent: CallContext | undefined,
): Promise<ResponseEnvelope> {
  let cancellation: Cancellation | undefined;
  try {
    const id = idOf(target);
    const entry = findEntry(host, id, parent !== undefined);
    const scope = openScope(host, id, options, parent);
    cancellation = scope.cancellation;
    const coming = entry === undefined ? bringMissing(host, id, scope) : undefined;
    if (coming !== undefined) return runOnceThere(host, id, input, scope, coming);
    return runFound(host, entry, id, input, scope);
  } catch (error) {
    cancellation?.release();
    return Promise.reject(error);
  }
}

/** Waits for an operation that is being loaded, at most until the call's deadline, and continues whether it was found or not. */
async function runOnceThere(
  host: RegistryHost,
  id: string,
  input: unknown,
  scope: CallScope,
  coming: Promise<void>,
): Promise<ResponseEnvelope> {
  const { cancellation } = scope;
  try {
    await (cancellation === undefined ? coming : cancellation.race(coming));
  } catch (error) {
    cancellation?.release();
    throw error;
  }
  return await runFound(host, findEntry(host, id, scope.parent !== undefined), id, input, scope);
}

function runFound(
  host: RegistryHost,
  entry: OperationEntry | undefined,
  id: string,
  input: unknown,
  scope: CallScope,
): Promise<ResponseEnvelope> {
  const { cancellation } = scope;
  try {
    const context = new CallContext(host, entry, id, scope);
    if (host.executeHooks.length > 0 || host.isTimed)
      return runAround(host, entry, id, input, context, scope);
    if (entry === undefined) throw missing(host, id, scope);
    const result = runUnlessRefused(entry, id, input, context, scope);
    if (result instanceof Promise) return result;
    const late = cancellation?.finish();
    return late === undefined ? Promise.resolve(result) : Promise.reject(late);
  } catch (error) {
    cancellation?.release();
    return Promise.reject(error);
  }
}

function runUnlessRefused(
  entry: OperationEntry,
  id: string,
  input: unknown,
  context: CallContext,
  scope: CallScope,
  isPart = false,
): EnvelopeOrPromise {
  const refusal = refusalOf(entry, id, scope, input, "execute");
  if (refusal !== undefined) throw refusal;
  const { cancellation } = scope;
  const ended = cancellation?.check(cancellation.startedAt);
  if (ended !== undefined) throw ended;
  return run(entry, input, context, cancellation, isPart);
}

/** A call as its hooks see it, and the context it runs in. */
interface Frame {
  readonly call: HookedCall;
  readonly context: CallContext;
  readonly scope: CallScope;
}

/** Each `next` decides access again: the input may have changed, and a retry may be too late. */
function runAround(
  host: RegistryHost,
  entry: OperationEntry | undefined,
  id: string,
  input: unknown,
  context: CallContext,
  scope: CallScope,
): Promise<ResponseEnvelope> {
  const refusal =
    entry === undefined ? missing(host, id, scope) : refusalOf(entry, id, scope, input, "execute");
  const open = (context: CallContext, scope: CallScope): Frame => {
    // The authority of an operation applies to its handler only, after access was granted to the caller.
    const shown = refusal === undefined ? context : new CallContext(host, undefined, id, scope);
    const call = { operationId: id, operation: entry?.operation, input, context: shown, refusal };
    return { call: Object.freeze(call), context, scope };
  };
  return runHooks(host, open(context, scope), {
    // Not async: returning a promise from an async function takes three more microtasks.
    last(given, { context, scope }) {
      try {
        const ended = scope.cancellation?.check();
        if (ended !== undefined) throw ended;
        if (entry === undefined) throw refusal;
        closeContext(context, false);
        // Hooks see the end of a call at once, even if its handler never ends.
        const inner = runUnlessRefused(entry, id, given, context, scope, true);
        return inner instanceof Promise ? inner : Promise.resolve(inner);
      } catch (thrown) {
        return Promise.reject(thrown);
      }
    },
    async within({ call, context: first, scope }, options, run) {
      const { requestId } = call.context;
      const inner = boundedScope(scope, { operationId: id, requestId, first }, options);
      return inner.cancellation.guard(run(open(new CallContext(host, entry, id, inner), inner)));
    },
  });
}

const MAX_SHOWN_ID = 200;

/** The id a caller asks for: the string itself or the operation's; `""`, which no operation has, for anything else. */
export function idOf(target: unknown): string {
  if (typeof target === "string") return target;
  try {
    const id: unknown = (target as { id?: unknown } | null | undefined)?.id;
    return typeof id === "string" ? id : "";
  } catch {
    return "";
  }
}

/** Finds an operation; an internal one is not there for a caller from outside. */
export function findEntry(host: RegistryHost, id: string, nested: boolean): OperationEntry | undefined {
  const entry = host.table.byId.get(id);
  return entry?.internal === true && !nested ? undefined : entry;
}

/** The reason a call is refused, if there is one; of the input, only a resource id and gated features are read. */
export function refusalOf(
  entry: OperationEntry,
  id: string,
  scope: CallScope,
  input: unknown,
  way: "execute" | "subscribe",
): CallError | undefined {
  const denied = entry.access?.refusal(scope.identity, input);
  if (denied !== undefined) return entry.internal ? turnDown(denied, id) : denied;
  const fault = entry.ready ? undefined : entry.prepare();
  if (fault !== undefined) return turnDown(fault, id);
  const upgrade = entry.tiers?.refusal(scope.identity, input);
  if (upgrade !== undefined) return upgrade;
  return entry.streams === (way === "subscribe") ? undefined : wrongWay(entry);
}

/** Starts to load a missing operation by the registry's `bringMissing`; an internal one is not missing. */
function bringMissing(host: RegistryHost, id: string, { identity }: CallScope): Promise<void> | undefined {
  return host.bringMissing === undefined || host.table.byId.has(id)
    ? undefined
    : host.bringMissing(id, identity);
}

/** The same error for a missing, an invalid and a hidden id, unless the registry's `explainMissing` returns another. */
export function missing(host: RegistryHost, id: string, { identity }: CallScope): CallError {
  const explained = host.table.byId.has(id) ? undefined : host.explainMissing?.(id, identity);
  if (explained !== undefined) return explained;
  const message =
    id === "" ? undefined : `There is no operation ${JSON.stringify(id.slice(0, MAX_SHOWN_ID))}.`;
  return turnDown(new CallError("OPERATION_NOT_FOUND", message, { stack: false }), id);
}

function wrongWay({ id, streams }: OperationEntry): CallError {
  const message = streams
    ? `"${id}" is a subscription: use subscribe() instead of execute().`
    : `"${id}" is not a subscription: use execute() instead of subscribe().`;
  return turnDown(new CallError("VALIDATION_ERROR", message), id);
}

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

/** Limits for everything inside a hook: hooks added later, the handler, and the calls it makes. */
export interface NextOptions {
  /** An additional signal that ends it. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds it may take; the time left for the call, if that is less. */
  readonly timeoutMs?: number | undefined;
  /** If true, it continues when the caller leaves or times out: only `signal` and `timeoutMs` end it. @default false */
  readonly detached?: boolean | undefined;
}

/**
 * Runs around calls and sees each call, its result and its error.
 *
 * The hook added first is outermost. `next()` continues with the same input, `next(input)` with another one, for which access
 * is decided again, and `next(input, options)` with its own limits. A hook may return its own envelope, throw, or call `next` again
 * to retry. If the call is not allowed, `next` fails with the reason, and so does the call, whatever the hook returns.
 */
export type CallHook = (
  call: HookedCall,
  next: (input?: unknown, options?: NextOptions) => Promise<ResponseEnvelope>,
) => Promise<ResponseEnvelope>;

/** Runs around subscriptions, by the same rules: it sees the stream and may return another one. */
export type SubscribeHook = (
  call: HookedCall,
  next: (input?: unknown) => AsyncIterable<ResponseEnvelope>,
) => AsyncIterable<ResponseEnvelope>;

/** Hooks for calls, for subscriptions, or for both. */
export interface Hooks {
  readonly execute?: CallHook;
  readonly subscribe?: SubscribeHook;
}

/** A call with the limits that apply at its place among the hooks. */
export interface HookFrame {
  readonly call: HookedCall;
}

/** The parts that nested hooks run around. */
export interface HookedSteps<R, F extends HookFrame> {
  /** The innermost step. */
  last(input: unknown, frame: F): R;
  /** Runs the rest with the limits that a hook set. */
  within(frame: F, options: NextOptions, run: (inner: F) => R): R;
}

/** Nests hooks around the last step; `next` without an argument continues with the current input. */
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

/**
 * Runs a call through hooks, and takes its time if the registry does; a refused call stays refused, whatever they return. One promise, settled by
 * the hooks or the cancellation, whichever is first.
 */
function runHooks(
  { executeHooks, isTimed }: RegistryHost,
  frame: Frame,
  steps: HookedSteps<Promise<ResponseEnvelope>, Frame>,
): Promise<ResponseEnvelope> {
  const { refusal } = frame.call;
  const { cancellation } = frame.scope;
  const startedAt = isTimed ? monotonicNow() : 0;
  return new Promise((resolve, reject) => {
    const fail = (thrown: unknown): void => {
      cancellation?.release();
      reject(refusal ?? toCallError(thrown));
    };
    const succeed = (value: ResponseEnvelope): void => {
      try {
        if (refusal !== undefined) throw refusal;
        const envelope = fromHook(value);
        const timed = isTimed ? withFacts(envelope, { durationMs: millisecondsSince(startedAt) }) : envelope;
        // Otherwise the promise has been rejected already.
        if (cancellation?.finish() === undefined) resolve(timed);
      } catch (thrown) {
        fail(thrown);
      }
    };
    nestHooks(executeHooks, frame, steps).then(succeed, fail);
    cancellation?.watch(reject);
  });
}

/** To a microsecond, on the monotonic clock. */
function millisecondsSince(startedAt: number): number {
  return Math.round((monotonicNow() - startedAt) * 1_000) / 1_000;
}

/** Accepts only envelopes made by the factories from a hook: anything else would bypass the checks. */
export function fromHook(value: unknown): ResponseEnvelope {
  if (isMarkedEnvelope(value)) return value;
  const cause = new TypeError(
    "A hook must answer with an envelope: that of next(), or one made by a factory.",
  );
  throw new CallError("EXECUTION_ERROR", undefined, { cause });
}
