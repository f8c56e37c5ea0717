import { monotonicNow } from "../../core/execution/deadline.ts";

/** Work that can be left between any two of its steps. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Work for one service, and what to do with its outcome. */
export interface Reading<T> {
  /** How much there is to read; what is small is read at once. */
  readonly size: number;
  readonly steps: Steps<T>;
  readonly apply: (outcome: T) => void;
}

interface QueuedReading<T> extends Reading<T> {
  readonly ended: Promise<void>;
  readonly end: () => void;
}

/** The largest size that is read at once. */
const SMALL = 50;
/** Milliseconds that reading at once may take before other work gets its turn. */
const AT_ONCE_MS = 100;
/** Milliseconds of reading between two turns of everything else. */
const SLICE_MS = 10;

/**
 * Reads what services offer without keeping everything else waiting: what is small at once, the rest one service after the
 * other in short slices. What a service says later takes the place of what is still being read of it.
 */
export class OfferReader<T> {
  readonly #queue = new Map<string, QueuedReading<T>>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Milliseconds read at once lately; as many are forgiven as pass without reading. */
  #spent = 0;
  #lastRead = Number.NEGATIVE_INFINITY;

  /** True while something is being read. */
  get isBusy(): boolean {
    return this.#queue.size > 0;
  }

  /** Reads for a service, in place of what is being read for it. */
  read(serviceId: string, reading: Reading<T>): void {
    this.drop(serviceId);
    if (reading.size < SMALL && this.#readAtOnce(reading)) return;
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#queue.set(serviceId, { ...reading, ended, end });
    this.#schedule();
  }

  /** Gives up what is being read for a service. */
  drop(serviceId: string): void {
    const reading = this.#queue.get(serviceId);
    if (reading === undefined) return;
    this.#queue.delete(serviceId);
    reading.end();
    if (this.#queue.size === 0) this.#rest();
  }

  /** Resolves once everything that is being read now has been, or was given up. */
  async settled(): Promise<void> {
    // Twice, for services that changed meanwhile; not until all is quiet, which may be never.
    for (let round = 0; round < 2 && this.isBusy; round++) {
      await Promise.all(Array.from(this.#queue.values(), ({ ended }) => ended));
    }
  }

  /** Gives up everything. */
  stop(): void {
    for (const serviceId of [...this.#queue.keys()]) this.drop(serviceId);
  }

  #readAtOnce({ steps, apply }: Reading<T>): boolean {
    const start = monotonicNow();
    const spent = Math.max(0, this.#spent - (start - this.#lastRead));
    if (spent >= AT_ONCE_MS) return false;
    const step = advance(steps, start + AT_ONCE_MS - spent);
    if (step.done) apply(step.value);
    this.#lastRead = monotonicNow();
    this.#spent = spent + this.#lastRead - start;
    return step.done === true;
  }

  #readSlice(): void {
    this.#timer = undefined;
    const until = monotonicNow() + SLICE_MS;
    for (const [serviceId, { steps, apply, end }] of this.#queue) {
      const step = advance(steps, until);
      if (!step.done) break;
      this.#queue.delete(serviceId);
      apply(step.value);
      end();
      if (monotonicNow() >= until) break;
    }
    if (this.#queue.size === 0) this.#rest();
    else this.#schedule();
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => this.#readSlice(), 0);
  }

  #rest(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

/** Takes one step at least, and further ones while there is time. */
function advance<T>(steps: Steps<T>, until: number): IteratorResult<undefined, T> {
  let step = steps.next();
  while (!step.done && monotonicNow() < until) step = steps.next();
  return step;
}
