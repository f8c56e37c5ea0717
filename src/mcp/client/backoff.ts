import type { ReconnectOptions } from "./connection-options.ts";

/** Decides how long to wait before a lost connection is made again. */
export class Backoff {
  readonly #initialMs: number;
  readonly #maxMs: number;
  readonly #factor: number;
  #failures = 0;

  constructor({ initialMs = 500, maxMs = 30_000, factor = 2 }: ReconnectOptions = {}) {
    this.#initialMs = Math.min(initialMs, maxMs);
    this.#maxMs = maxMs;
    this.#factor = factor;
  }

  /** Losses and failed attempts since the connection was last in good health. */
  get failures(): number {
    return this.#failures;
  }

  /** Counts a loss or a failed attempt and gives the wait in milliseconds, shortened at random by up to a quarter. */
  next(livedMs: number): number {
    // A server that crashes right after each start must not be taken for a healthy one.
    if (livedMs >= this.#maxMs) this.#failures = 0;
    const full = Math.min(this.#initialMs * this.#factor ** this.#failures, this.#maxMs);
    this.#failures += 1;
    return Math.round(full * (1 - Math.random() / 4));
  }
}
