import { CallError } from "../core/errors/errors.ts";
import { sourceError } from "./source-error.ts";
import type { Source } from "./sources/source.ts";

/** Says why an operation is not there when the source it would come from is not up; nothing where that is not the reason. */
export function explainMissing(operationId: string, sources: readonly Source[]): CallError | undefined {
  const own = sources.find((source) => isOwner(source, operationId));
  if (own !== undefined) return sourceFault(own);
  // Modules and the bus may hold any namespace.
  const down = sources.find((source) => !hasOneNamespace(source) && source.state.status === "down");
  return down && sourceFault(down);
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
