interface Listening<T> {
  readonly listener: (news: T) => void;
  hasThrown: boolean;
}

/** Those who hear of something, in the order they came; one that throws keeps nobody else from hearing. */
export class Listeners<T = void> {
  readonly #listeners = new Set<Listening<T>>();
  readonly #onFault: (cause: unknown, isFirst: boolean) => void;
  /** Kept until somebody comes or goes, so that telling often copies nothing. */
  #present: readonly Listening<T>[] | undefined;

  /**
   * `onFault` hears what a listener threw, and whether it is the first time for that one; it must not throw. Without it, that is the listener's own
   * affair.
   */
  constructor(onFault: (cause: unknown, isFirst: boolean) => void = () => {}) {
    this.#onFault = onFault;
  }

  get size(): number {
    return this.#listeners.size;
  }

  /** Adds a listener as one of its own, so that one added twice hears twice and leaves once; returns how to stop listening. */
  add(listener: (news: T) => void): () => void {
    const added = { listener, hasThrown: false };
    this.#listeners.add(added);
    this.#present = undefined;
    return () => {
      if (this.#listeners.delete(added)) this.#present = undefined;
    };
  }

  /** Tells those who are there now: one that comes meanwhile hears the next time, and one that leaves meanwhile hears no more. */
  tell(news: T): void {
    this.#present ??= [...this.#listeners];
    const present = this.#present;
    for (const added of present) {
      if (this.#present !== present && !this.#listeners.has(added)) continue;
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
    this.#present = undefined;
  }

  #failed(added: Listening<T>, cause: unknown): void {
    const isFirst = !added.hasThrown;
    added.hasThrown = true;
    this.#onFault(cause, isFirst);
  }
}

/** Those who hear that what a key names has changed; what nobody listens to takes no room. */
export class KeyedListeners {
  readonly #byKey = new Map<string, Listeners>();

  /** Adds a listener as one of its own; returns how to stop listening. */
  add(key: string, listener: () => void): () => void {
    const listeners = this.#byKey.get(key) ?? new Listeners();
    this.#byKey.set(key, listeners);
    const stop = listeners.add(listener);
    return () => {
      stop();
      if (listeners.size === 0 && this.#byKey.get(key) === listeners) this.#byKey.delete(key);
    };
  }

  tell(key: string): void {
    this.#byKey.get(key)?.tell();
  }

  /** Tells of every key that is listened to: which of them changed is not known. */
  tellAll(): void {
    for (const listeners of [...this.#byKey.values()]) listeners.tell();
  }
}
