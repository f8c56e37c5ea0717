import { CallError } from "../../core/errors/errors.ts";
import { MOST_LOOKS_WAITING } from "./inspector-limits.ts";

/** One who asked for something, and may have left since. */
interface Asker {
  readonly destroyed: boolean;
}

/** Work that keeps a thread busy while it is done: one piece at a time. */
export class LookQueue {
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** Does a piece of work when those before it are done; it is not begun when whoever asked has left. */
  async run<T>(asker: Asker, work: () => Promise<T>): Promise<T> {
    if (this.#waiting > MOST_LOOKS_WAITING) {
      const message = `${MOST_LOOKS_WAITING} results, texts or inputs wait to be read already; try again soon.`;
      throw new CallError("RESOURCE_EXHAUSTED", message, { httpStatus: 429, stack: false });
    }
    this.#waiting += 1;
    const done = this.#last.then(async () => {
      if (asker.destroyed) throw new CallError("ABORTED", undefined, { stack: false });
      return await work();
    });
    this.#last = done.then(noop, noop);
    try {
      return await done;
    } finally {
      this.#waiting -= 1;
    }
  }
}

const noop = (): void => {};
