import type { CallError } from "../../core/errors/errors.ts";

/** A call that waits for its turn. */
export class Waiter {
  /** The lower came first. */
  readonly order: number;
  readonly settle: (error?: CallError) => void;
  previous: Waiter | undefined;
  next: Waiter | undefined;
  isListed = false;

  constructor(order: number, settle: (error?: CallError) => void) {
    this.order = order;
    this.settle = settle;
  }
}

/** Calls in the order they came; any of them can leave at the same small cost. */
export class WaitList {
  #first: Waiter | undefined;
  #last: Waiter | undefined;

  get first(): Waiter | undefined {
    return this.#first;
  }

  add(waiter: Waiter): void {
    waiter.previous = this.#last;
    waiter.isListed = true;
    if (this.#last === undefined) this.#first = waiter;
    else this.#last.next = waiter;
    this.#last = waiter;
  }

  /** Tells whether it was there. */
  remove(waiter: Waiter): boolean {
    if (!waiter.isListed) return false;
    const { previous, next } = waiter;
    if (previous === undefined) this.#first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    waiter.isListed = false;
    waiter.previous = undefined;
    waiter.next = undefined;
    return true;
  }
}
