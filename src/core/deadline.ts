/** The longest delay a timer takes; platforms fire a longer one at once. */
const LONGEST_DELAY = 2 ** 31 - 1;

/** The clock deadlines are read on: milliseconds that never go back. */
export function monotonicNow(): number {
  return performance.now();
}

/** Turns a timeout into a point on the monotonic clock; `Infinity` sets no limit and `0` leaves no time at all. */
export function toDeadline(timeoutMs: unknown): number {
  if (typeof timeoutMs !== "number" || !(timeoutMs >= 0)) {
    throw new TypeError(
      `timeoutMs must be a number of milliseconds, 0 or more; it is ${describe(timeoutMs)}.`,
    );
  }
  return monotonicNow() + timeoutMs;
}

/** What a deadline ends. */
export interface Expiring {
  expire(): void;
}

/** Expires its owner once a deadline has passed, however far it lies ahead, unless stopped before. */
export class DeadlineTimer {
  readonly #deadline: number;
  readonly #owner: Expiring;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(deadline: number, owner: Expiring) {
    this.#deadline = deadline;
    this.#owner = owner;
    this.#arm(deadline - monotonicNow());
  }

  /** Forgets the deadline; safe to repeat. */
  stop(): void {
    clearTimeout(this.#timer);
  }

  #arm(remaining: number): void {
    this.#timer = setTimeout(DeadlineTimer.#fire, Math.min(Math.ceil(remaining), LONGEST_DELAY), this);
  }

  /** A timer may fire a little early, and a long wait takes several. */
  static #fire(self: DeadlineTimer): void {
    const remaining = self.#deadline - monotonicNow();
    if (remaining > 0) self.#arm(remaining);
    else self.#owner.expire();
  }
}

function describe(value: unknown): string {
  return typeof value === "number" ? String(value) : `of type ${value === null ? "null" : typeof value}`;
}
