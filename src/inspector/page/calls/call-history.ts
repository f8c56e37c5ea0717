import type { CallRow } from "../../protocol.ts";
import type { Live } from "../connection/live.ts";
import { CallBuckets } from "./call-buckets.ts";

/** Ended calls that are recognised when they are told again. */
export const MOST_SEEN = 10_000;

/** Within this time of the first call, calls are told that ended long ago, which say nothing about clocks. */
const SETTLE_MS = 1_500;
/** Clocks that differ by less are taken for the same. */
const LEAST_SKEW_MS = 2_000;

/** How the calls of the last minutes went, counted whichever view is shown. */
export class CallHistory {
  readonly buckets = new CallBuckets();
  /** Calls with their beginning: a gateway that starts again counts from the start. */
  readonly #seen = new Set<string>();
  #firstAt: number | undefined;
  /** A call is told soon after its end: the shortest time that ever took is how far the clocks are apart. */
  #lag = Number.POSITIVE_INFINITY;

  /** Counts a call that ended, once: all that is remembered is told again when the connection was lost. */
  take(row: CallRow, now = Date.now()): void {
    const key = `${row.seq} ${row.startedAt}`;
    if (row.outcome === undefined || this.#seen.has(key)) return;
    this.#seen.add(key);
    const [oldest = ""] = this.#seen;
    if (this.#seen.size > MOST_SEEN) this.#seen.delete(oldest);
    this.#firstAt ??= now;
    const lag = now - row.startedAt - (row.durationMs ?? 0);
    if (lag < 0 || now - this.#firstAt > SETTLE_MS) this.#lag = Math.min(this.#lag, lag);
    this.buckets.add(row);
  }

  /** The present moment by the clock of the gateway, Unix epoch milliseconds. */
  clock(now = Date.now()): number {
    const isOff = Number.isFinite(this.#lag) && Math.abs(this.#lag) > LEAST_SKEW_MS;
    return isOff ? now - this.#lag : now;
  }
}

const histories = new WeakMap<Live, CallHistory>();

/** The history of what a page hears; it begins the first time it is asked for. */
export function historyOf(live: Live): CallHistory {
  const known = histories.get(live);
  if (known !== undefined) return known;
  const history = new CallHistory();
  histories.set(live, history);
  for (const row of live.rows) history.take(row);
  live.onEnd((row) => history.take(row));
  return history;
}
