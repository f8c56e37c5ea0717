import type { RegistryChange } from "./executor.ts";
import type { OperationEntry } from "./operation-entry.ts";

/** The operations of a registry, found by id or by namespace and name in constant time. */
export class EntryTable {
  readonly #byId = new Map<string, OperationEntry>();
  readonly #byNamespace = new Map<string, Map<string, OperationEntry>>();
  #sorted: readonly OperationEntry[] | undefined;

  get byId(): ReadonlyMap<string, OperationEntry> {
    return this.#byId;
  }

  get byNamespace(): ReadonlyMap<string, ReadonlyMap<string, OperationEntry>> {
    return this.#byNamespace;
  }

  /** Puts an entry in, in place of one with the same id. */
  put(entry: OperationEntry): RegistryChange {
    const { id, operation } = entry;
    const type = this.#byId.has(id) ? "replaced" : "added";
    this.#byId.set(id, entry);
    const names = this.#byNamespace.get(operation.namespace);
    if (names === undefined) this.#byNamespace.set(operation.namespace, new Map([[operation.name, entry]]));
    else names.set(operation.name, entry);
    this.#sorted = undefined;
    return { type, operation };
  }

  /** Takes an entry out, if it is there. */
  delete(id: string): RegistryChange | undefined {
    const operation = this.#byId.get(id)?.operation;
    if (operation === undefined) return undefined;
    this.#byId.delete(id);
    const names = this.#byNamespace.get(operation.namespace);
    names?.delete(operation.name);
    if (names?.size === 0) this.#byNamespace.delete(operation.namespace);
    this.#sorted = undefined;
    return { type: "removed", operation };
  }

  /** Every entry by id in code unit order, whatever order they were registered in. */
  sorted(): readonly OperationEntry[] {
    this.#sorted ??= [...this.#byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
    return this.#sorted;
  }
}
