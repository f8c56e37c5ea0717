/** Those who hear of something; whoever listens badly keeps nobody else from it. */
export class ListenerSet<T> {
  readonly #listeners = new Set<(told: T) => void>();
  readonly #onFault: (cause: unknown) => void;

  /** `onFault` must not throw. */
  constructor(onFault: (cause: unknown) => void) {
    this.#onFault = onFault;
  }

  /** Adds a listener as one of its own, so that one added twice hears twice and leaves once. */
  add(listener: (told: T) => void): () => void {
    const own = (told: T): void => listener(told);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  tell(told: T): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(told);
      } catch (cause) {
        this.#onFault(cause);
      }
    }
  }

  clear(): void {
    this.#listeners.clear();
  }
}
