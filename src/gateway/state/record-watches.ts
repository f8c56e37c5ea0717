/** Those who hear that a record has changed, by the id of the record. */
export class RecordWatches {
  readonly #listeners = new Map<string, Set<() => void>>();

  /** Adds a listener as one of its own; returns how to stop listening. */
  add(id: string, listener: () => void): () => void {
    const listeners = this.#listeners.get(id) ?? new Set();
    const own = (): void => listener();
    this.#listeners.set(id, listeners.add(own));
    return () => {
      listeners.delete(own);
      if (listeners.size === 0 && this.#listeners.get(id) === listeners) this.#listeners.delete(id);
    };
  }

  tell(id: string): void {
    for (const listener of [...(this.#listeners.get(id) ?? [])]) listener();
  }

  /** Tells of every record that is watched: which of them changed is not known. */
  tellAll(): void {
    for (const id of [...this.#listeners.keys()]) this.tell(id);
  }
}
