import { CallContext, closeContext } from "./call-context.ts";
import { type CallScope, openScope } from "./call-scope.ts";
import type { Cancellation } from "./cancellation.ts";
import type { ResponseEnvelope } from "./envelope.ts";
import { run } from "./execution.ts";
import type { ExecuteOptions } from "./executor.ts";
import { runHooks } from "./hooks.ts";
import { findEntry, idOf, refusalOf } from "./lookup.ts";
import type { OperationEntry } from "./operation-entry.ts";
import type { RegistryHost } from "./registry-host.ts";

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
    const result =
      host.executeHooks.length === 0
        ? runUnlessRefused(entry, id, input, context, scope)
        : runAround(host, entry, id, input, context, scope);
    if (cancellation !== undefined) return watched(result, cancellation);
    return result instanceof Promise ? result : Promise.resolve(result);
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
): ResponseEnvelope | Promise<ResponseEnvelope> {
  const refusal = refusalOf(entry, id, scope, input, "execute");
  if (entry === undefined || refusal !== undefined) throw refusal;
  return run(entry, input, context);
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
  const refusal = refusalOf(entry, id, scope, input, "execute");
  const call = Object.freeze({ operationId: id, operation: entry?.operation, input, context });
  return runHooks(host.executeHooks, call, refusal, async (given) => {
    closeContext(context, false);
    return runUnlessRefused(entry, id, given, context, scope);
  });
}

function watched(
  result: ResponseEnvelope | Promise<ResponseEnvelope>,
  cancellation: Cancellation,
): Promise<ResponseEnvelope> {
  if (result instanceof Promise) return cancellation.guard(result);
  cancellation.release();
  const late = cancellation.check();
  return late === undefined ? Promise.resolve(result) : Promise.reject(late);
}
