import { ExponentialBackoff, halfJitterGenerator, type IBackoff } from "cockatiel";
import {
  type AbortListener,
  addAbortListener,
  removeAbortListener,
} from "../../../core/execution/abort-listeners.ts";
import { LONGEST_DELAY } from "../../../core/execution/deadline.ts";
import type { ResponseHead } from "../http-message.ts";
import { abortError, closedError, type Sent } from "./transport-errors.ts";

/** Not now, perhaps later: timeout, too early, too many, bad gateway, unavailable, gateway timeout. */
const PASSING: ReadonlySet<number> = new Set([408, 425, 429, 502, 503, 504]);

/** Tells whether the same request may be answered better in a moment. */
export function isPassing(status: number): boolean {
  return status >= 408 && PASSING.has(status);
}

/** The waits between the attempts of one request: each about twice the one before, and varied. */
export class RetryDelays {
  readonly #factory: ExponentialBackoff<number>;
  #backoff: IBackoff<unknown> | undefined;

  constructor(delayMs: number, maxDelayMs: number) {
    this.#factory = new ExponentialBackoff({
      generator: halfJitterGenerator,
      initialDelay: delayMs,
      maxDelay: maxDelayMs,
    });
  }

  next(): number {
    this.#backoff = this.#backoff === undefined ? this.#factory.next() : this.#backoff.next(undefined);
    return this.#backoff.duration;
  }
}

/** Reads `Retry-After`, seconds or a date, as milliseconds from now. */
export function toRetryAfterMs(headers: ResponseHead["headers"], now = Date.now()): number | undefined {
  const header = headers["retry-after"];
  const text = (typeof header === "string" ? header : header?.[0])?.trim();
  if (text === undefined || text === "") return undefined;
  if (/^\d+(?:\.\d+)?$/.test(text)) return Number(text) * 1_000;
  const date = /[a-z]{3}/i.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/** Waits that a signal or the end of their transport cuts short. */
export class Pauses {
  readonly #open = new Set<Pause>();

  async wait(ms: number, signal: AbortSignal, sent: Sent): Promise<void> {
    if (signal.aborted) throw abortError(signal, sent);
    const pause = new Pause(ms, signal, sent);
    this.#open.add(pause);
    try {
      await pause.over;
    } finally {
      this.#open.delete(pause);
    }
  }

  close(): void {
    for (const pause of this.#open) pause.fail(closedError(pause.sent));
  }
}

class Pause implements AbortListener {
  readonly over: Promise<void>;
  readonly sent: Sent;
  readonly #signal: AbortSignal;
  readonly #timer: ReturnType<typeof setTimeout>;
  #resolve!: () => void;
  #reject!: (error: Error) => void;

  constructor(ms: number, signal: AbortSignal, sent: Sent) {
    this.sent = sent;
    this.#signal = signal;
    this.over = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    addAbortListener(signal, this);
    this.#timer = setTimeout(
      () => {
        removeAbortListener(signal, this);
        this.#resolve();
      },
      Math.min(ms, LONGEST_DELAY),
    );
  }

  onAbort(signal: AbortSignal): void {
    this.fail(abortError(signal, this.sent));
  }

  fail(error: Error): void {
    clearTimeout(this.#timer);
    removeAbortListener(this.#signal, this);
    this.#reject(error);
  }
}
