import { setImmediate } from "node:timers/promises";
import { CallError } from "../../core/errors/errors.ts";
import { MOST_LOOKS_WAITING } from "./inspector-limits.ts";

/** Lets everybody else have their turn, in the middle of work that takes long. */
export type Breathe = () => Promise<void>;

/** One who asked for something, and may have left since. */
interface Asker {
  readonly destroyed: boolean;
}

/** Work that keeps the whole gateway busy while it is done: one piece at a time, with room for others in between. */
export class LookQueue {
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** Does a piece of work when those before it are done; it is given up when whoever asked has left. */
  async run<T>(asker: Asker, work: (breathe: Breathe) => Promise<T>): Promise<T> {
    if (this.#waiting > MOST_LOOKS_WAITING) {
      const message = `${MOST_LOOKS_WAITING} results or texts wait to be looked at already; try again soon.`;
      throw new CallError("RESOURCE_EXHAUSTED", message, { httpStatus: 429, stack: false });
    }
    const breathe = async (): Promise<void> => {
      await setImmediate();
      if (asker.destroyed) throw new CallError("ABORTED", undefined, { stack: false });
    };
    this.#waiting += 1;
    const done = this.#last.then(async () => {
      await breathe();
      return await work(breathe);
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
