import type { ResponseEnvelope } from "../envelope/envelope.ts";
import type { ExecuteOptions } from "../registry/executor.ts";
import type { OperationEntry } from "../registry/operation-entry.ts";
import type { RegistryHost } from "../registry/registry-host.ts";
import { CallContext, closeContext } from "./call-context.ts";
import { type CallScope, openScope } from "./call-scope.ts";
import type { Cancellation } from "./cancellation.ts";
import { type EnvelopeOrPromise, run } from "./execution.ts";
import { runHooks } from "./hooks.ts";
import { findEntry, idOf, refusalOf } from "./lookup.ts";

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
    const context = new CallContext(host, entry, id, scope);
    if (host.executeHooks.length > 0) return runAround(host, entry, id, input, context, scope);
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
  entry: OperationEntry | undefined,
  id: string,
  input: unknown,
  context: CallContext,
  scope: CallScope,
  guard: Cancellation | undefined,
): EnvelopeOrPromise {
  const refusal = refusalOf(entry, id, scope, input, "execute");
  if (entry === undefined || refusal !== undefined) throw refusal;
  const { cancellation } = scope;
  const ended = cancellation?.check(cancellation.startedAt);
  if (ended !== undefined) throw ended;
  return run(entry, input, context, guard);
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
  const { cancellation } = scope;
  const refusal = refusalOf(entry, id, scope, input, "execute");
  // The authority of an operation is for the handler of a call that was let in.
  const shown = refusal === undefined ? context : new CallContext(host, undefined, id, scope);
  const call = Object.freeze({ operationId: id, operation: entry?.operation, input, context: shown });
  const result = runHooks(host.executeHooks, call, refusal, async (given) => {
    const ended = cancellation?.check();
    if (ended !== undefined) throw ended;
    closeContext(context, false);
    const inner = runUnlessRefused(entry, id, given, context, scope, undefined);
    // Hooks hear at once how a call ended, even when its handler never does.
    return inner instanceof Promise && cancellation !== undefined ? cancellation.race(inner) : inner;
  });
  return cancellation === undefined ? result : cancellation.guard(result);
}
