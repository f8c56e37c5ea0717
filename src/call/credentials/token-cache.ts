/** How many tokens are remembered; the one that was not used for longest makes room. */
export const REMEMBERED_TOKENS = 1_000;

/** Remembers what was found out about a token, so that it is found out once. */
export class TokenCache<T> {
  readonly #isFresh: (value: T) => boolean;
  readonly #known = new Map<string, T>();
  /** What is being found out now; whoever asks meanwhile waits for the same answer. */
  readonly #pending = new Map<string, Promise<T>>();

  constructor(isFresh: (value: T) => boolean) {
    this.#isFresh = isFresh;
  }

  get size(): number {
    return this.#known.size;
  }

  /** Gives what is known, or finds it out; a failure is not remembered. */
  get(key: string, find: () => Promise<T>): T | Promise<T> {
    const value = this.#known.get(key);
    if (value === undefined) return this.#pending.get(key) ?? this.#find(key, find);
    this.#known.delete(key);
    if (!this.#isFresh(value)) return this.#find(key, find);
    this.#known.set(key, value);
    return value;
  }

  async #find(key: string, find: () => Promise<T>): Promise<T> {
    const pending = find();
    this.#pending.set(key, pending);
    try {
      const value = await pending;
      if (this.#isFresh(value)) this.#keep(key, value);
      return value;
    } finally {
      this.#pending.delete(key);
    }
  }

  #keep(key: string, value: T): void {
    this.#known.set(key, value);
    if (this.#known.size <= REMEMBERED_TOKENS) return;
    const { value: oldest } = this.#known.keys().next();
    if (oldest !== undefined) this.#known.delete(oldest);
  }
}
