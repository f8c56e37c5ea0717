/** The longest delay a timer takes; platforms fire a longer one at once. */
export const LONGEST_DELAY = 2 ** 31 - 1;

/** The clock deadlines are read on: milliseconds that never go back. */
export function monotonicNow(): number {
  return performance.now();
}

/** Turns a timeout into a point on the monotonic clock; `Infinity` sets no limit and `0` leaves no time at all. */
export function toDeadline(timeoutMs: unknown, now: number): number {
  if (typeof timeoutMs !== "number" || !(timeoutMs >= 0)) {
    throw new TypeError(
      `timeoutMs must be a number of milliseconds, 0 or more; it is ${describe(timeoutMs)}.`,
    );
  }
  return now + timeoutMs;
}

/** What a deadline ends; it keeps its own timer, so that none but the platform's is made. */
export interface Expiring {
  /** On the monotonic clock. */
  readonly deadline: number;
  timer: ReturnType<typeof setTimeout> | undefined;
  expire(): void;
}

/** Expires its owner once the deadline has passed, however far it lies ahead; clearing `timer` stops it. */
export function startTimer(owner: Expiring, remaining: number): void {
  owner.timer = setTimeout(fire, Math.min(Math.ceil(remaining), LONGEST_DELAY), owner);
}

/** A timer may fire a little early, and a long wait takes several. */
function fire(owner: Expiring): void {
  const remaining = owner.deadline - monotonicNow();
  if (remaining > 0) startTimer(owner, remaining);
  else owner.expire();
}

function describe(value: unknown): string {
  return typeof value === "number" ? String(value) : `of type ${value === null ? "null" : typeof value}`;
}
