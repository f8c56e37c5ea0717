interface Waiting {
  /** The round of the last one that came. */
  round: number;
  count: number;
}

/** The rounds in which callers get through a gate: everybody who waits gets through once before anybody does a second time. */
export class Rounds {
  #now = 0;
  readonly #waiting = new Map<string, Waiting>();

  /** The round in which a caller's next call gets through. */
  next(owner: string): number {
    return Math.max(this.#now, this.#waiting.get(owner)?.round ?? 0) + 1;
  }

  add(owner: string, round: number): void {
    const waiting = this.#waiting.get(owner) ?? { round, count: 0 };
    waiting.round = Math.max(waiting.round, round);
    waiting.count += 1;
    this.#waiting.set(owner, waiting);
  }

  /** Takes out a call that waits no more, whichever way. */
  remove(owner: string): void {
    const waiting = this.#waiting.get(owner);
    if (waiting === undefined) return;
    waiting.count -= 1;
    if (waiting.count === 0) this.#waiting.delete(owner);
  }

  /** Hears that a call of some round got through. */
  start(round: number): void {
    this.#now = Math.max(this.#now, round);
  }
}
