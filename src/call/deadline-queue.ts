import { LONGEST_DELAY, monotonicNow } from "../core/execution/cancellation.ts";

/** What a queue holds until it is over, and ends when its time is. It keeps its own neighbours, and is in one queue at a time. */
export interface Timed {
  /** On the monotonic clock; `Infinity` for what nothing ends but its own end. */
  readonly deadline: number;
  /** For the queue alone. */
  before: Timed | undefined;
  /** For the queue alone. */
  after: Timed | undefined;
  expire(): void;
}

/** Deadlines are rounded up to this, so that thousands of calls share a timer; that late, at most, one is told. */
const GRAIN_MS = 10;

/** Those that are due together, in a circle that begins and ends here. */
class Slot implements Timed {
  before: Timed = this;
  after: Timed = this;
  readonly deadline: number;

  constructor(deadline: number) {
    this.deadline = deadline;
  }

  expire(): void {}
}

/**
 * Holds what is under way and ends it on time with one timer, where one for each would cost more than the calls themselves. Adding and
 * removing are a few assignments: see `LinkedSet` for why no `Set` holds them.
 */
export class DeadlineQueue<T extends Timed = Timed> {
  readonly #slots = new Map<number, Slot>();
  /** How many there are. */
  size = 0;
  /** How many of them have a deadline. */
  #timed = 0;
  /** The slot used last, kept while empty: the next call most likely needs it again. */
  #latest = new Slot(Number.NEGATIVE_INFINITY);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #wakeAt = Number.POSITIVE_INFINITY;

  add(timed: T): void {
    const at = slotOf(timed.deadline);
    const slot = this.#latest.deadline === at ? this.#latest : this.#slotAt(at);
    const last = slot.before;
    timed.before = last;
    timed.after = slot;
    last.after = timed;
    slot.before = timed;
    this.size++;
    if (at !== Number.POSITIVE_INFINITY && this.#timed++ === 0) keepAlive(this.#timer, true);
    if (at < this.#wakeAt) this.#wake(at);
  }

  /** Tells whether it was in the queue. */
  remove(timed: T): boolean {
    const { before, after } = timed;
    if (before === undefined || after === undefined) return false;
    before.after = after;
    after.before = before;
    timed.before = undefined;
    timed.after = undefined;
    this.size--;
    // Only a slot has nobody but itself beside it.
    if (before === after && before !== this.#latest) this.#slots.delete(before.deadline);
    if (timed.deadline !== Number.POSITIVE_INFINITY && --this.#timed === 0) keepAlive(this.#timer, false);
    return true;
  }

  /** Those there are now, each kind of deadline in the order they came. */
  toArray(): T[] {
    return [...this.#slots.values()].flatMap((slot) => membersOf(slot) as T[]);
  }

  /** Forgets everything, the timer too. */
  clear(): void {
    clearTimeout(this.#timer);
    for (const timed of this.toArray()) this.remove(timed);
    this.#dropLatestIfEmpty();
    this.#timer = undefined;
    this.#wakeAt = Number.POSITIVE_INFINITY;
  }

  #slotAt(at: number): Slot {
    this.#dropLatestIfEmpty();
    const slot = this.#slots.get(at) ?? new Slot(at);
    this.#slots.set(at, slot);
    this.#latest = slot;
    return slot;
  }

  #wake(at: number): void {
    clearTimeout(this.#timer);
    this.#wakeAt = at;
    const delay = Math.ceil(at - monotonicNow());
    this.#timer = setTimeout(() => this.#fire(), Math.min(Math.max(delay, 0), LONGEST_DELAY));
    if (this.#timed === 0) keepAlive(this.#timer, false);
  }

  #fire(): void {
    this.#timer = undefined;
    this.#wakeAt = Number.POSITIVE_INFINITY;
    const now = monotonicNow();
    const due = [...this.#slots.values()].filter(({ deadline }) => deadline <= now);
    for (const slot of due.sort((a, b) => a.deadline - b.deadline)) this.#expire(slot);
    this.#dropLatestIfEmpty();
    // What expired may have added more, and set the timer by that.
    let next = Number.POSITIVE_INFINITY;
    for (const at of this.#slots.keys()) next = Math.min(next, at);
    if (next < this.#wakeAt) this.#wake(next);
  }

  #expire(slot: Slot): void {
    for (const timed of membersOf(slot)) {
      // One that expired may have ended another.
      if (timed.after === undefined) continue;
      timed.expire();
      this.remove(timed as T);
    }
  }

  #dropLatestIfEmpty(): void {
    const latest = this.#latest;
    if (latest.after !== latest) return;
    this.#slots.delete(latest.deadline);
    this.#latest = new Slot(Number.NEGATIVE_INFINITY);
  }
}

function membersOf(slot: Slot): Timed[] {
  const members: Timed[] = [];
  for (let at = slot.after; at !== slot; at = at.after as Timed) members.push(at);
  return members;
}

function slotOf(deadline: number): number {
  return Math.ceil(deadline / GRAIN_MS) * GRAIN_MS;
}

/** On Node a timer keeps the process running, which is right only while something waits. */
function keepAlive(timer: unknown, alive: boolean): void {
  const { ref, unref } = (timer ?? {}) as { ref?: () => void; unref?: () => void };
  (alive ? ref : unref)?.call(timer);
}
