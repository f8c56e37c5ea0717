import { monotonicNow } from "../../core/execution/deadline.ts";

/** Milliseconds between being told of a change and listing: changes that come closer together are listed once. */
export const LISTING_WAITS = {
  first: 50,
  /** Where changes are told of without end, the wait is doubled up to this. */
  most: 5_000,
} as const;

/** Decides when a list is read again: one reading runs at a time, and at most one more waits, which everybody shares. */
export class ListingTurns {
  readonly #list: () => Promise<void>;
  readonly #onFailure: (cause: unknown) => void;
  #running: Promise<void> | undefined;
  #waiting: Promise<void> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #wait: number = LISTING_WAITS.first;
  #endedAt = Number.NEGATIVE_INFINITY;
  #stopped = false;

  /** `onFailure` hears of readings that nobody waits for. */
  constructor(list: () => Promise<void>, onFailure: (cause: unknown) => void) {
    this.#list = list;
    this.#onFailure = onFailure;
  }

  /** Reads the list, once the reading under way is over; resolves after a reading that began after this was called. */
  now(): Promise<void> {
    if (this.#running === undefined) return this.#start();
    this.#waiting ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#waiting = undefined;
        return this.#start();
      });
    return this.#waiting;
  }

  /** Reads the list soon; the sooner after the last time this is called, the later. */
  soon(): void {
    if (this.#stopped || this.#timer !== undefined || this.#waiting !== undefined) return;
    const isCalm = monotonicNow() - this.#endedAt >= 2 * this.#wait && this.#running === undefined;
    this.#wait = isCalm ? LISTING_WAITS.first : Math.min(2 * this.#wait, LISTING_WAITS.most);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.now().catch((cause: unknown) => {
        if (!this.#stopped) this.#onFailure(cause);
      });
    }, this.#wait);
    this.#timer.unref?.();
  }

  /** Starts no more readings of its own accord. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #start(): Promise<void> {
    const running = this.#list().finally(() => {
      this.#running = undefined;
      this.#endedAt = monotonicNow();
    });
    this.#running = running;
    return running;
  }
}
