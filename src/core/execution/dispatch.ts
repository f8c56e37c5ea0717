import type { ResponseEnvelope } from "../envelope/envelope.ts";
import type { ExecuteOptions } from "../registry/executor.ts";
import type { OperationEntry } from "../registry/operation-entry.ts";
import type { RegistryHost } from "../registry/registry-host.ts";
import { CallContext, closeContext } from "./call-context.ts";
import { boundedScope, type CallScope, openScope } from "./call-scope.ts";
import type { Cancellation } from "./cancellation.ts";
import { type EnvelopeOrPromise, run } from "./execution.ts";
import { type HookedCall, runHooks } from "./hooks.ts";
import { bringMissing, findEntry, idOf, missing, refusalOf } from "./lookup.ts";

/**
 * The one path of every call: look up, decide about access, then the hooks, and inside them validate, run and check.
 *
 * A synchronous handler is not waited for, and what can end a call early is watched only where there is such a thing.
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

/** Waits for an operation that is being fetched, for as long as the call may, and goes on whether it came or not. */
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
    if (host.executeHooks.length > 0) return runAround(host, entry, id, input, context, scope);
    if (entry === undefined) throw missing(host, id, scope);
    const result = runUnlessRefused(entry, id, input, context, scope, cancellation);
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
  guard: Cancellation | undefined,
): EnvelopeOrPromise {
  const refusal = refusalOf(entry, id, scope, input, "execute");
  if (refusal !== undefined) throw refusal;
  const { cancellation } = scope;
  const ended = cancellation?.check(cancellation.startedAt);
  if (ended !== undefined) throw ended;
  return run(entry, input, context, guard);
}

/** A call as its hooks see it, and what it runs with. */
interface Frame {
  readonly call: HookedCall;
  readonly context: CallContext;
  readonly scope: CallScope;
}

/** Each `next` decides anew: the input may be another one, and a retry may come too late. */
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
    // The authority of an operation is for the handler of a call that was let in.
    const shown = refusal === undefined ? context : new CallContext(host, undefined, id, scope);
    const call = { operationId: id, operation: entry?.operation, input, context: shown, refusal };
    return { call: Object.freeze(call), context, scope };
  };
  const result = runHooks(host.executeHooks, open(context, scope), {
    async last(given, { context, scope }) {
      const { cancellation } = scope;
      const ended = cancellation?.check();
      if (ended !== undefined) throw ended;
      if (entry === undefined) throw refusal;
      closeContext(context, false);
      const inner = runUnlessRefused(entry, id, given, context, scope, undefined);
      // Hooks hear at once how a call ended, even when its handler never does.
      return inner instanceof Promise && cancellation !== undefined ? cancellation.race(inner) : inner;
    },
    async within({ call, scope }, options, run) {
      const inner = boundedScope(scope, id, call.context.requestId, options);
      return inner.cancellation.guard(run(open(new CallContext(host, entry, id, inner), inner)));
    },
  });
  const { cancellation } = scope;
  return cancellation === undefined ? result : cancellation.guard(result);
}
