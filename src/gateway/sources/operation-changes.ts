import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { RegistryChange } from "../../core/registry/executor.ts";

/** What has become other between two sets of operations, by id; the same object is the same operation. */
export function operationChanges(
  before: ReadonlyMap<string, AnyOperation>,
  now: ReadonlyMap<string, AnyOperation>,
): readonly RegistryChange[] {
  const changes: RegistryChange[] = [];
  for (const [id, operation] of before) if (!now.has(id)) changes.push({ type: "removed", operation });
  for (const [id, operation] of now) {
    const known = before.get(id);
    if (known !== operation) changes.push({ type: known === undefined ? "added" : "replaced", operation });
  }
  return changes;
}
