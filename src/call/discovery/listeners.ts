/** One that listens; it is reported once, however often it throws. */
interface Listening<T> {
  readonly listener: (news: T) => void;
  isReported: boolean;
}

/** Those who want to hear of something; one that throws keeps nobody else from hearing. */
export class Listeners<T> {
  readonly #what: string;
  readonly #listeners = new Set<Listening<T>>();

  /** `what` names what they listen to, for the report of one that throws. */
  constructor(what: string) {
    this.#what = what;
  }

  get size(): number {
    return this.#listeners.size;
  }

  /** Adds a listener; returns how to stop listening. */
  add(listener: (news: T) => void): () => void {
    // Wrapped, so that a listener added twice hears twice and leaves once.
    const added = { listener, isReported: false };
    this.#listeners.add(added);
    return () => void this.#listeners.delete(added);
  }

  tell(news: T): void {
    for (const added of [...this.#listeners]) {
      try {
        const returned: unknown = added.listener(news);
        // An async function is taken for a listener too, and a rejection that nobody handles ends the process.
        if (returned instanceof Promise) returned.catch((cause: unknown) => this.#report(added, cause));
      } catch (cause) {
        this.#report(added, cause);
      }
    }
  }

  clear(): void {
    this.#listeners.clear();
  }

  #report(added: Listening<T>, cause: unknown): void {
    if (added.isReported) return;
    added.isReported = true;
    console.warn(`[waybill] A listener of ${this.#what} threw.`, cause);
  }
}
