import type { OperationEntry } from "./operation-entry.ts";

/** The operations of a registry, found by id or by namespace and name in constant time. */
export class EntryTable {
  readonly byId = new Map<string, OperationEntry>();
  readonly byNamespace = new Map<string, Map<string, OperationEntry>>();
  #sorted: readonly OperationEntry[] | undefined;

  set(entry: OperationEntry): void {
    const { namespace, name } = entry.operation;
    this.byId.set(entry.id, entry);
    const names = this.byNamespace.get(namespace);
    if (names === undefined) this.byNamespace.set(namespace, new Map([[name, entry]]));
    else names.set(name, entry);
    this.#sorted = undefined;
  }

  delete(entry: OperationEntry): void {
    const { namespace, name } = entry.operation;
    this.byId.delete(entry.id);
    const names = this.byNamespace.get(namespace);
    names?.delete(name);
    if (names?.size === 0) this.byNamespace.delete(namespace);
    this.#sorted = undefined;
  }

  /** Every entry by id in code unit order, whatever order they were registered in. */
  sorted(): readonly OperationEntry[] {
    this.#sorted ??= [...this.byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
    return this.#sorted;
  }
}
