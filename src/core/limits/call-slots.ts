import { CallError } from "../errors/errors.ts";
import { monotonicNow } from "../execution/cancellation.ts";

/** How many calls may run at a time; it may change. */
export interface CallSlotLimits {
  readonly calls: number;
}

/** Counts what runs at a time: calls, and requests whose bodies are being read. */
export class CallSlots {
  readonly #limits: CallSlotLimits;
  readonly #shares: CallerShares;
  readonly #own = new Map<string, number>();
  #taken = 0;

  /** Where `isShared`, callers are told apart, and one among others has three quarters at most. */
  constructor(limits: CallSlotLimits, isShared: boolean) {
    this.#limits = limits;
    this.#shares = new CallerShares(isShared);
  }

  /** Tells callers apart from now on, or does not. */
  setShared(isShared: boolean): void {
    this.#shares.isShared = isShared;
  }

  /** Throws where nothing more may run, or nothing more of this caller. */
  take(owner: string): void {
    const { calls } = this.#limits;
    const own = this.#own.get(owner) ?? 0;
    const share = this.#shares.ask(owner, calls);
    if (this.#taken >= calls) throw tooMany("Too many calls run at the moment; try again later.");
    if (own >= share) {
      throw tooMany("As many of your calls run as one caller may have; try again when some have ended.");
    }
    this.#taken += 1;
    this.#own.set(owner, own + 1);
  }

  giveBack(owner: string): void {
    this.#taken -= 1;
    const own = (this.#own.get(owner) ?? 1) - 1;
    if (own > 0) this.#own.set(owner, own);
    else this.#own.delete(owner);
  }
}

function tooMany(message: string): CallError {
  return new CallError("RESOURCE_EXHAUSTED", message, { details: { retryAfterMs: 1_000 }, stack: false });
}

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
