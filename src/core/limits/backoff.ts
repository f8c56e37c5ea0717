/** Where waits begin, and where they end. */
export interface BackoffOptions {
  /** @default 500 */
  readonly delayMs?: number | undefined;
  /** @default 30_000 */
  readonly maxDelayMs?: number | undefined;
}

/**
 * The wait in milliseconds before the attempt after so many: twice as long each time, and between half and all of that by chance, so that
 * callers do not come back together.
 */
export function backoffMs(attempts: number, delayMs: number, maxDelayMs: number): number {
  return Math.min(delayMs * 2 ** (attempts - 1), maxDelayMs) * (0.5 + Math.random() / 2);
}

/** The waits of something that is connected to again and again, until it lasts. */
export class Backoff {
  readonly #delayMs: number;
  readonly #maxDelayMs: number;
  #failures = 0;

  constructor({ delayMs = 500, maxDelayMs = 30_000 }: BackoffOptions = {}) {
    this.#delayMs = delayMs;
    this.#maxDelayMs = maxDelayMs;
  }

  /** Losses and failed attempts since the connection was last in good health. */
  get failures(): number {
    return this.#failures;
  }

  /** Counts a loss, after it lived so long, or a failed attempt, and gives the wait in milliseconds. */
  next(livedMs: number): number {
    // A server that crashes right after each start must not be taken for a healthy one.
    if (livedMs >= this.#maxDelayMs) this.#failures = 0;
    this.#failures += 1;
    return Math.round(backoffMs(this.#failures, this.#delayMs, this.#maxDelayMs));
  }
}
