interface Listening<T> {
  readonly listener: (news: T) => void;
  hasThrown: boolean;
}

/** Those who hear of something; one that throws keeps nobody else from hearing. */
export class Listeners<T> {
  readonly #listeners = new Set<Listening<T>>();
  readonly #onFault: (cause: unknown, isFirst: boolean) => void;

  /** `onFault` hears what a listener threw, and whether it is the first time for that one; it must not throw. */
  constructor(onFault: (cause: unknown, isFirst: boolean) => void) {
    this.#onFault = onFault;
  }

  get size(): number {
    return this.#listeners.size;
  }

  /** Adds a listener as one of its own, so that one added twice hears twice and leaves once; returns how to stop listening. */
  add(listener: (news: T) => void): () => void {
    const added = { listener, hasThrown: false };
    this.#listeners.add(added);
    return () => void this.#listeners.delete(added);
  }

  tell(news: T): void {
    for (const added of [...this.#listeners]) {
      try {
        const returned: unknown = added.listener(news);
        // An async function is taken for a listener too, and a rejection that nobody handles ends the process.
        if (returned instanceof Promise) returned.catch((cause: unknown) => this.#failed(added, cause));
      } catch (cause) {
        this.#failed(added, cause);
      }
    }
  }

  clear(): void {
    this.#listeners.clear();
  }

  #failed(added: Listening<T>, cause: unknown): void {
    const isFirst = !added.hasThrown;
    added.hasThrown = true;
    this.#onFault(cause, isFirst);
  }
}
