/** Calls that wait at a time. */
const MOST_WAITING = 1_000;

interface WaitingCall {
  readonly isLeftOut: () => boolean;
  readonly leave: () => void;
}

/** Calls that wait for a source to be there for the first time. */
export class WaitingCalls {
  readonly #waiting = new Set<WaitingCall>();

  get isFull(): boolean {
    return this.#waiting.size >= MOST_WAITING;
  }

  /** Waits until a source has started; no longer than until policies leave the operation out, where nothing would come of it. */
  async wait(started: Promise<void>, isLeftOut: () => boolean): Promise<void> {
    let leave = (): void => {};
    const left = new Promise<void>((resolve) => {
      leave = resolve;
    });
    const call = { isLeftOut, leave };
    this.#waiting.add(call);
    try {
      await Promise.race([started, left]);
    } finally {
      this.#waiting.delete(call);
    }
  }

  /** Lets go of those whose operation is left out by now. */
  review(): void {
    for (const { isLeftOut, leave } of this.#waiting) if (isLeftOut()) leave();
  }
}
