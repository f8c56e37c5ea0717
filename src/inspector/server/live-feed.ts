import type { ServerResponse } from "node:http";
import { callerKey } from "../../gateway/serve/caller-key.ts";
import type { CallRow, LiveEvent } from "../protocol.ts";
import { type CallLog, rowOf } from "./call-log.ts";
import { PING_MS, WRITE_TIMEOUT_MS } from "./inspector-limits.ts";
import { limitTime } from "./limit-time.ts";
import type { LoggedCall } from "./logged-call.ts";
import { UntoldCalls } from "./untold-calls.ts";
import type { Viewer } from "./viewer.ts";

/** What a feed is made of. */
export interface LiveFeedOptions {
  readonly log: CallLog;
  readonly viewer: Viewer;
  readonly response: ServerResponse;
  /** Writes an event as a line. */
  readonly write: (event: LiveEvent) => string;
}

/** One page that follows what happens: first what is remembered, then what changes, as fast as the page takes it. */
export class LiveFeed {
  readonly #options: LiveFeedOptions;
  readonly #untold: UntoldCalls;
  #isFull = false;
  #isOver = false;
  #lastWrite = 0;
  #hasNewSources = false;
  #newRevision: number | undefined;
  #lastRunning: number;
  #lastDropped = 0;

  constructor(options: LiveFeedOptions) {
    const { log, viewer, response } = options;
    this.#options = options;
    this.#untold = new UntoldCalls(log, viewer);
    response.on("drain", () => {
      this.#isFull = false;
      this.flush();
    });
    this.#lastRunning = this.#running();
    this.#write({ type: "begin", running: this.#lastRunning });
    this.flush();
  }

  /** Takes a call that changed. */
  take(call: LoggedCall): void {
    this.#untold.take(call);
  }

  /** Takes that sources changed. */
  takeSources(): void {
    this.#hasNewSources = true;
  }

  /** Takes that operations changed. */
  takeOperations(revision: number): void {
    this.#newRevision = revision;
  }

  /** Tells what is known, for as long as the page takes it. */
  flush(now = performance.now()): void {
    if (this.#isOver) return;
    if (!this.#isFull && this.#hasNewSources) {
      this.#hasNewSources = false;
      this.#write({ type: "sources" });
    }
    if (!this.#isFull && this.#newRevision !== undefined) {
      const revision = this.#newRevision;
      this.#newRevision = undefined;
      this.#write({ type: "operations", revision });
    }
    this.#flushCalls();
    if (!this.#isFull && now - this.#lastWrite >= PING_MS) this.#write({ type: "ping" });
  }

  /** Ends the stream. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.response.end();
    limitTime(this.#options.response, WRITE_TIMEOUT_MS);
  }

  #flushCalls(): void {
    while (!this.#isFull) {
      const calls = this.#untold.next();
      const isNews = this.#lastRunning !== this.#running() || this.#lastDropped !== this.#untold.dropped;
      if (calls.length === 0 && !isNews) return;
      this.#tell(calls.map(rowOf));
      if (calls.length === 0) return;
    }
  }

  #tell(rows: readonly CallRow[]): void {
    this.#lastRunning = this.#running();
    this.#lastDropped = this.#untold.dropped;
    this.#write({ type: "calls", rows, running: this.#lastRunning, dropped: this.#lastDropped });
  }

  #running(): number {
    const { log, viewer } = this.#options;
    return viewer.isOperator ? log.runningOf() : log.runningOf(callerKey(viewer.identity) ?? "");
  }

  #write(event: LiveEvent): void {
    const { response, write } = this.#options;
    if (response.destroyed || response.writableEnded) return;
    this.#lastWrite = performance.now();
    if (!response.write(write(event))) this.#isFull = true;
  }
}
