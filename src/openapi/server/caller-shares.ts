import { monotonicNow } from "../../core/execution/deadline.ts";

/** Milliseconds after which somebody who has asked for nothing more counts as gone. */
const OTHERS_MS = 60_000;

interface Asked {
  readonly owner: string;
  at: number;
}

/** What one caller may have of something: all of it while nobody else asks, three quarters otherwise, so that others find some. */
export class CallerShares {
  /** Where not, callers are not told apart. */
  isShared: boolean;
  /** Who asked last, and who did before that was the same one. */
  #last: Asked | undefined;
  #other: Asked | undefined;

  constructor(isShared: boolean) {
    this.isShared = isShared;
  }

  /** Hears that a caller asks, and tells how many of `most` it may have. */
  ask(owner: string, most: number): number {
    if (!this.isShared) return most;
    const now = monotonicNow();
    if (this.#last?.owner === owner) this.#last.at = now;
    else {
      this.#other = this.#last;
      this.#last = { owner, at: now };
    }
    const isAlone = this.#other === undefined || now - this.#other.at > OTHERS_MS;
    return isAlone ? most : Math.ceil((most * 3) / 4);
  }
}
