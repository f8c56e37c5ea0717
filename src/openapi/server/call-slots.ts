import { CallError } from "../../core/errors/errors.ts";
import { CallerShares } from "./caller-shares.ts";

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
