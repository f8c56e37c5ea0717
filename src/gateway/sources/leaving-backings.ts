import type { CallsInFlight } from "./calls-in-flight.ts";

interface Leaving {
  readonly calls: CallsInFlight;
  readonly done: Promise<void>;
}

/** Milliseconds that calls over a connection have to end when another one takes its place. */
const RECONNECT_DRAIN_MS = 10_000;

/** What stood behind a source until something newer took its place: it ends when the calls it still runs have. */
export class LeavingBackings {
  readonly #leaving = new Set<Leaving>();

  /** Ends something once its calls have ended, or their time is up; `end` must not reject. */
  add(calls: CallsInFlight, end: () => Promise<void>): void {
    const done = calls
      .idle(RECONNECT_DRAIN_MS)
      .then(end)
      .finally(() => this.#leaving.delete(leaving));
    const leaving: Leaving = { calls, done };
    this.#leaving.add(leaving);
  }

  /** Resolves when all of them have ended. */
  async ended(): Promise<void> {
    await Promise.all([...this.#leaving].map(({ done }) => done));
  }

  /** The same, with less time for their calls. */
  async close(timeoutMs: number): Promise<void> {
    await Promise.all([...this.#leaving].map(({ calls }) => calls.idle(timeoutMs)));
    for (const { calls } of this.#leaving) calls.release();
    await this.ended();
  }
}
