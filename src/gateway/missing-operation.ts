import type { Identity } from "../core/access/identity.ts";
import { CallError, changedError, isCallError } from "../core/errors/errors.ts";
import type { AnyOperation } from "../core/operation/operation-types.ts";
import type { Gateway } from "./gateway.ts";
import type { Source } from "./sources/source.ts";

/**
 * Says why an operation is not there when the source it would come from is not up; nothing where that is not the reason, or the source is
 * one that the caller may not know of.
 */
export function explainMissing(
  operationId: string,
  sources: readonly Source[],
  isVisible: (source: Source) => boolean = () => true,
): CallError | undefined {
  const own = sources.find((source) => isOwner(source, operationId));
  if (own !== undefined) return seenFault(own, isVisible);
  // Modules and the bus may hold any namespace.
  const down = sources.find((source) => !hasOneNamespace(source) && source.state.status === "down");
  return down && seenFault(down, isVisible);
}

/** Looks at who asks only where there is something to say. */
function seenFault(source: Source, isVisible: (source: Source) => boolean): CallError | undefined {
  const fault = sourceFault(source);
  return fault !== undefined && isVisible(source) ? fault : undefined;
}

/** Where it is looked up who may call what. */
type Known = Pick<Gateway, "executor" | "policies" | "sourceOf">;

interface SourceVisitor {
  readonly identity: Identity | undefined;
  /** The operation that is asked for. @default any */
  readonly operationId?: string | undefined;
}

/**
 * Tells whether a caller may call anything of a source: of its operations where they are known, else the one that is asked for, or any, by
 * what policies say. To all others it is as if there were no such source.
 */
export function isSourceVisible(
  gateway: Known,
  { name }: Source,
  { identity, operationId }: SourceVisitor,
): boolean {
  const { executor, policies } = gateway;
  const isFrom = ({ id }: AnyOperation): boolean => gateway.sourceOf(id) === name;
  if ([...executor.operations].some(isFrom)) return executor.list({ identity }).some(isFrom);
  const { isEnabled, scopes } = policies.ofSource(name);
  if (operationId === undefined && !isEnabled) return false;
  const needed = operationId === undefined ? scopes : policies.scopesOf(operationId, name);
  return needed.every((scope) => identity?.scopes?.includes(scope) === true);
}

/** The part of an id before its first dot. */
function namespaceOf(operationId: string): string {
  return operationId.slice(0, Math.max(operationId.indexOf("."), 0));
}

/** Whether an operation would be a source's, by its name. */
export function isOwner(source: Source, operationId: string): boolean {
  return source.name === namespaceOf(operationId) && hasOneNamespace(source);
}

/** Whether the operations of a source stand under its name; those of modules and of a bus say it themselves. */
export function hasOneNamespace({ kind }: Source): boolean {
  return kind !== "local" && kind !== "bus";
}

/** What calls to a source fail with while it is not up. */
export function sourceFault(source: Source): CallError | undefined {
  const { name, state } = source;
  switch (state.status) {
    case "down":
      return sourceError(source, "is down", "");
    case "connecting":
      return unavailable(`The source "${name}" is not there yet: it is being connected to; try again soon.`);
    case "disabled":
      return unavailable(`The source "${name}" is disabled in the config.`, false);
    case "up":
    case "closed":
      return undefined;
  }
}

function unavailable(message: string, retryable = true): CallError {
  return new CallError("UNAVAILABLE", message, { retryable, stack: false });
}

/** What those who call from elsewhere are told in place of an error for the operator of the gateway. */
const TOLD = new WeakMap<CallError, string>();

/** What fails for want of a source: it says the whole reason, which is for the operator of the gateway; see `forCallers`. */
export function sourceError(
  { name, state }: Pick<Source, "name" | "state">,
  what: string,
  otherwise: string,
) {
  const start = `The source "${name}" ${what}:`;
  const isDown = state.status === "down";
  const error = new CallError("UNAVAILABLE", `${start} ${isDown ? state.reason : otherwise}`, {
    details: { source: name },
    retryable: true,
    stack: false,
  });
  if (isDown) TOLD.set(error, `${start} ${state.cause ?? "it cannot be used."}`);
  return error;
}

/** Where an MCP server is, as its errors name it: a program or a host. */
const PLACE = /(MCP server "[^"]{1,64}") \([^)]{1,200}\)/g;

/** The same error for those who call from elsewhere: without what a process wrote or a server answered, and without where that is. */
export function forCallers<T>(thrown: T): T | CallError {
  if (!isCallError(thrown)) return thrown;
  const error: CallError = thrown;
  const message = TOLD.get(error) ?? error.message.replace(PLACE, "$1");
  if (message === error.message) return thrown;
  return changedError(error, { message });
}
