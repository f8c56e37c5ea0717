import { Listeners } from "../../../core/collections/listeners.ts";
import { backoffMs } from "../../../core/limits/backoff.ts";
import type { CallRow, LiveEvent } from "../../protocol.ts";
import { type Api, ApiError } from "./api.ts";

/** Whether the page hears what happens. */
export type LiveStatus = "connecting" | "open" | "lost" | "refused";

/** Calls that are held in the page; older ones are let go. */
export const MOST_ROWS = 5_000;

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

/** What happens at the gateway, held for the views: one stream for the whole page, taken up again when it breaks. */
export class Live {
  readonly #api: Api;
  readonly #listeners = new Listeners();
  readonly #rows = new Map<number, CallRow>();
  readonly #ended = new Listeners<CallRow>();
  #isTold = false;
  status: LiveStatus = "connecting";
  running = 0;
  dropped = 0;
  /** Counts changes of the sources, and of the operations. */
  sources = 0;
  operations = 0;
  /** Counts changes of the calls. */
  calls = 0;

  constructor(api: Api) {
    this.#api = api;
  }

  /** The calls that are held, oldest first. */
  get rows(): readonly CallRow[] {
    return [...this.#rows.values()];
  }

  row(seq: number): CallRow | undefined {
    return this.#rows.get(seq);
  }

  /** Hears of changes, at most once a frame; returns how to stop. */
  onChange(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  /** Hears of every call that has ended, at once; returns how to stop. */
  onEnd(listener: (row: CallRow) => void): () => void {
    return this.#ended.add(listener);
  }

  start(): () => void {
    const stop = new AbortController();
    void this.#follow(stop.signal);
    return () => stop.abort();
  }

  async #follow(signal: AbortSignal): Promise<void> {
    for (let tries = 1; !signal.aborted; tries++) {
      // The gateway ends it from time to time, so that readers say again who they are: that is no loss.
      let isLost = true;
      try {
        for await (const event of this.#api.live(signal)) {
          tries = 1;
          this.#take(event);
        }
        isLost = this.status !== "open";
      } catch (thrown) {
        if (signal.aborted) return;
        if (thrown instanceof ApiError && (thrown.status === 401 || thrown.status === 403)) {
          this.#setStatus("refused");
          return;
        }
      }
      if (signal.aborted) return;
      if (isLost) this.#setStatus("lost");
      await new Promise((resolve) => setTimeout(resolve, backoffMs(tries, FIRST_WAIT_MS, LONGEST_WAIT_MS)));
    }
  }

  #take(event: LiveEvent): void {
    switch (event.type) {
      case "begin":
        // What was missed meanwhile is asked for again.
        this.#rows.clear();
        this.running = event.running;
        this.sources += 1;
        this.operations += 1;
        this.calls += 1;
        this.#setStatus("open");
        return;
      case "calls":
        for (const row of event.rows) this.#add(row);
        this.running = event.running;
        this.dropped = event.dropped;
        this.calls += 1;
        break;
      case "sources":
        this.sources += 1;
        break;
      case "operations":
        this.operations += 1;
        break;
      case "ping":
        return;
    }
    this.#tell();
  }

  #add(row: CallRow): void {
    this.#rows.set(row.seq, row);
    if (this.#rows.size > MOST_ROWS) {
      const [oldest] = this.#rows.keys();
      if (oldest !== undefined) this.#rows.delete(oldest);
    }
    if (row.outcome !== undefined) this.#ended.tell(row);
  }

  #setStatus(status: LiveStatus): void {
    this.status = status;
    this.#tell();
  }

  #tell(): void {
    if (this.#isTold) return;
    this.#isTold = true;
    requestAnimationFrame(() => {
      this.#isTold = false;
      this.#listeners.tell();
    });
  }
}
