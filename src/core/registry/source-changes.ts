import { toOperation } from "../operation/operation.ts";
import type { OperationSource, RegistryChange } from "./executor.ts";
import { OperationEntry } from "./operation-entry.ts";
import type { RegistryCore } from "./registry-core.ts";

/**
 * Does to a registry what happened to a source. A source changes what came from it and nothing else: an operation that
 * cannot be registered, or whose id belongs to somebody else, is left out with a warning.
 */
export function applySourceChanges(
  core: RegistryCore,
  source: OperationSource,
  changes: readonly RegistryChange[],
): void {
  const done: RegistryChange[] = [];
  for (const change of changes) {
    try {
      const applied = applyChange(core, source, change);
      if (applied !== undefined) done.push(applied);
    } catch (cause) {
      const message = `A change of a source was not followed. ${cause instanceof Error ? cause.message : ""}`;
      core.warn({ type: "source-change-refused", message, operationId: String(change.operation?.id), cause });
    }
  }
  core.announce(done);
}

function applyChange(
  core: RegistryCore,
  source: OperationSource,
  { type, operation }: RegistryChange,
): RegistryChange | undefined {
  const current = core.table.byId.get(operation.id);
  if (type === "removed") return current?.source === source ? core.table.delete(operation.id) : undefined;
  if (current !== undefined && current.source !== source) {
    throw new TypeError(`Operation "${operation.id}" is registered already, and not by this source.`);
  }
  return core.table.put(new OperationEntry(toOperation(operation), core, source));
}
