import type { Identity } from "../../core/access/identity.ts";
import { CallError } from "../../core/errors/errors.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { Executor } from "../../core/registry/executor.ts";

/** The reason a caller may not call an operation at all, whatever the input; it comes before anything that is wrong with a request. */
export function accessRefusal(
  executor: Executor,
  { id, access }: AnyOperation,
  identity: Identity | undefined,
): CallError | undefined {
  if (access === undefined || executor.list({ identity }).some((operation) => operation.id === id)) {
    return undefined;
  }
  const code = identity === undefined ? "UNAUTHENTICATED" : "ACCESS_DENIED";
  return new CallError(code, undefined, { stack: false });
}
