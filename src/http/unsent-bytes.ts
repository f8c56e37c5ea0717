/** Of all that may wait to be sent, one caller has the fourth part. */
const SHARES = 4;

/** Counts what clients of a listener have not taken of their answers, of each caller and in all. */
export class UnsentBytes {
  readonly #most: number;
  readonly #own = new Map<string, number>();
  #all = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Tells whether so many more may wait; `owner` names the caller where callers are told apart. What is alone always fits. */
  fits(owner: string | undefined, bytes: number): boolean {
    if (this.#all === 0) return true;
    const own = owner === undefined ? 0 : (this.#own.get(owner) ?? 0);
    return this.#all + bytes <= this.#most && (own === 0 || own + bytes <= Math.ceil(this.#most / SHARES));
  }

  take(owner: string | undefined, bytes: number): void {
    this.#all += bytes;
    if (owner !== undefined) this.#own.set(owner, (this.#own.get(owner) ?? 0) + bytes);
  }

  giveBack(owner: string | undefined, bytes: number): void {
    this.#all -= bytes;
    if (owner === undefined) return;
    const own = (this.#own.get(owner) ?? 0) - bytes;
    if (own > 0) this.#own.set(owner, own);
    else this.#own.delete(owner);
  }
}
