import { CallError } from "../../../core/errors/errors.ts";
import {
  type AbortListener,
  addAbortListener,
  LONGEST_DELAY,
  monotonicNow,
  removeAbortListener,
} from "../../../core/execution/cancellation.ts";
import type { RateOptions } from "../../../core/options/shared-options.ts";
import { abortError, closedError, type Sent } from "./transport-errors.ts";

/** How many requests go out at a time and in a period, and how many wait for that. */
export interface SlotOptions {
  readonly concurrency: number;
  readonly queue: number;
  readonly rate: RateOptions | undefined;
}

/** One who waits for a slot. */
class Waiter implements AbortListener {
  readonly granted: Promise<void>;
  readonly signal: AbortSignal;
  readonly sent: Sent;
  readonly #leave: (waiter: Waiter) => void;
  #resolve!: () => void;
  #reject!: (error: CallError) => void;

  constructor(signal: AbortSignal, sent: Sent, leave: (waiter: Waiter) => void) {
    this.signal = signal;
    this.sent = sent;
    this.#leave = leave;
    this.granted = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    addAbortListener(signal, this);
  }

  onAbort(signal: AbortSignal): void {
    this.#leave(this);
    this.#reject(abortError(signal, this.sent));
  }

  grant(): void {
    removeAbortListener(this.signal, this);
    this.#resolve();
  }

  refuse(error: CallError): void {
    removeAbortListener(this.signal, this);
    this.#reject(error);
  }
}

/** Lets so many requests of one source run at a time, and so many begin in a period; the rest wait in line. */
export class RequestSlots {
  readonly #options: SlotOptions;
  /** In the order they came; a set, since a request that gives up leaves from the middle. */
  readonly #waiting = new Set<Waiter>();
  /** Those that have a slot and wait for a token alone; they go first, since others wait for their slots. */
  readonly #going = new Set<Waiter>();
  #running = 0;
  /** When the last requests began, a period back: a token is free again a period after it was taken. */
  readonly #taken: number[] = [];
  #oldest = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: SlotOptions) {
    this.#options = options;
  }

  /** Takes a slot at once and returns nothing, or returns what resolves when it is there. */
  take(signal: AbortSignal, sent: Sent): Promise<void> | undefined {
    if (signal.aborted) throw abortError(signal, sent);
    const isFree = this.#waiting.size === 0 && this.#running < this.#options.concurrency;
    if (isFree && this.#going.size === 0 && this.#takeToken()) {
      this.#running += 1;
      return undefined;
    }
    if (this.#waiting.size >= this.#options.queue) {
      const message = `More than ${this.#options.queue} requests wait for their turn; call more slowly, or raise the option queue.`;
      const { host, attempts } = sent;
      throw new CallError("RESOURCE_EXHAUSTED", message, { details: { host, attempts }, stack: false });
    }
    const waiter = new Waiter(signal, sent, this.#leave);
    this.#waiting.add(waiter);
    this.#admit();
    return waiter.granted;
  }

  /** The same for one more request in a slot that is taken, such as where it is redirected. */
  takeAgain(signal: AbortSignal, sent: Sent): Promise<void> | undefined {
    if (signal.aborted) throw abortError(signal, sent);
    if (this.#going.size === 0 && this.#takeToken()) return undefined;
    const waiter = new Waiter(signal, sent, this.#leave);
    this.#going.add(waiter);
    this.#admit();
    return waiter.granted;
  }

  /** Gives a slot back. */
  readonly release = (): void => {
    this.#running -= 1;
    if (this.#waiting.size > 0) this.#admit();
  };

  /** Rejects all waiting requests. */
  close(): void {
    clearTimeout(this.#timer);
    const waiting = [...this.#going, ...this.#waiting];
    this.#going.clear();
    this.#waiting.clear();
    for (const waiter of waiting) waiter.refuse(closedError(waiter.sent));
  }

  readonly #leave = (waiter: Waiter): void => {
    this.#waiting.delete(waiter);
    this.#going.delete(waiter);
    if (this.#waiting.size + this.#going.size === 0) clearTimeout(this.#timer);
  };

  readonly #admit = (): void => {
    clearTimeout(this.#timer);
    for (const waiter of this.#going) {
      if (!this.#takeTokenOrWait()) return;
      this.#going.delete(waiter);
      waiter.grant();
    }
    for (const waiter of this.#waiting) {
      if (this.#running >= this.#options.concurrency || !this.#takeTokenOrWait()) return;
      this.#waiting.delete(waiter);
      this.#running += 1;
      waiter.grant();
    }
  };

  #takeTokenOrWait(): boolean {
    if (this.#takeToken()) return true;
    this.#timer = setTimeout(this.#admit, this.#nextTokenMs());
    return false;
  }

  #takeToken(): boolean {
    const { rate } = this.#options;
    if (rate === undefined) return true;
    const now = monotonicNow();
    while (this.#oldest < this.#taken.length && now - (this.#taken[this.#oldest] as number) >= rate.perMs) {
      this.#oldest += 1;
    }
    if (this.#taken.length - this.#oldest >= rate.calls) return false;
    if (this.#oldest > 1_000 && this.#oldest * 2 > this.#taken.length) {
      this.#taken.splice(0, this.#oldest);
      this.#oldest = 0;
    }
    this.#taken.push(now);
    return true;
  }

  #nextTokenMs(): number {
    const since = monotonicNow() - (this.#taken[this.#oldest] as number);
    return Math.min(Math.max(1, Math.ceil((this.#options.rate?.perMs ?? 0) - since)), LONGEST_DELAY);
  }
}
