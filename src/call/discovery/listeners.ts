/** Those who want to hear of something; one that throws keeps nobody else from hearing. */
export class Listeners<T> {
  readonly #listeners = new Set<(news: T) => void>();

  /** Adds a listener; returns how to stop listening. */
  add(listener: (news: T) => void): () => void {
    // Wrapped, so that a listener added twice hears twice and leaves once.
    const added = (news: T) => listener(news);
    this.#listeners.add(added);
    return () => void this.#listeners.delete(added);
  }

  tell(news: T): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(news);
      } catch (cause) {
        console.warn("[waybill] A listener of a directory threw.", cause);
      }
    }
  }

  clear(): void {
    this.#listeners.clear();
  }
}
