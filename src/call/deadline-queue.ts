import { LONGEST_DELAY, monotonicNow } from "../core/execution/deadline.ts";

/** What a queue ends when its time is over. */
export interface Timed {
  /** On the monotonic clock. */
  readonly deadline: number;
  expire(): void;
}

/** Deadlines are rounded up to this, so that thousands of calls share a timer; that late, at most, one is told. */
const GRAIN_MS = 10;

/** Ends many things on time with one timer, where one for each would cost more than the calls themselves. */
export class DeadlineQueue {
  readonly #slots = new Map<number, Set<Timed>>();
  #size = 0;
  /** The slot used last, kept while empty: the next call most likely needs it again. */
  #latest = -1;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #wakeAt = Number.POSITIVE_INFINITY;

  get size(): number {
    return this.#size;
  }

  add(timed: Timed): void {
    const at = slotOf(timed.deadline);
    let slot = this.#slots.get(at);
    if (slot === undefined) {
      this.#dropLatestIfEmpty();
      slot = new Set();
      this.#slots.set(at, slot);
      this.#latest = at;
    }
    slot.add(timed);
    if (this.#size++ === 0) keepAlive(this.#timer, true);
    if (at < this.#wakeAt) this.#wake(at);
  }

  /** Does nothing for what is not in the queue any more. */
  remove(timed: Timed): void {
    const at = slotOf(timed.deadline);
    const slot = this.#slots.get(at);
    if (slot === undefined || !slot.delete(timed)) return;
    if (slot.size === 0 && at !== this.#latest) this.#slots.delete(at);
    if (--this.#size === 0) keepAlive(this.#timer, false);
  }

  /** Forgets everything, the timer too. */
  clear(): void {
    clearTimeout(this.#timer);
    this.#slots.clear();
    this.#size = 0;
    this.#latest = -1;
    this.#timer = undefined;
    this.#wakeAt = Number.POSITIVE_INFINITY;
  }

  #wake(at: number): void {
    clearTimeout(this.#timer);
    this.#wakeAt = at;
    const delay = Math.ceil(at - monotonicNow());
    this.#timer = setTimeout(() => this.#fire(), Math.min(Math.max(delay, 0), LONGEST_DELAY));
    if (this.#size === 0) keepAlive(this.#timer, false);
  }

  #fire(): void {
    this.#timer = undefined;
    this.#wakeAt = Number.POSITIVE_INFINITY;
    const now = monotonicNow();
    const due = [...this.#slots.keys()].filter((at) => at <= now).sort((a, b) => a - b);
    for (const at of due) this.#expire(at);
    this.#dropLatestIfEmpty();
    // What expired may have added more, and set the timer by that.
    let next = Number.POSITIVE_INFINITY;
    for (const at of this.#slots.keys()) next = Math.min(next, at);
    if (next < this.#wakeAt) this.#wake(next);
  }

  #expire(at: number): void {
    const slot = this.#slots.get(at) ?? [];
    for (const timed of slot) {
      this.remove(timed);
      timed.expire();
    }
  }

  #dropLatestIfEmpty(): void {
    if (this.#slots.get(this.#latest)?.size === 0) this.#slots.delete(this.#latest);
  }
}

function slotOf(deadline: number): number {
  return Math.ceil(deadline / GRAIN_MS) * GRAIN_MS;
}

/** On Node a timer keeps the process running, which is right only while something waits. */
function keepAlive(timer: unknown, alive: boolean): void {
  const { ref, unref } = (timer ?? {}) as { ref?: () => void; unref?: () => void };
  (alive ? ref : unref)?.call(timer);
}
