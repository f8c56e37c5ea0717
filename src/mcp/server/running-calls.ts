import { CallError } from "../../core/errors/errors.ts";

/** Calls under way that can be given up together: each is answered, whatever becomes of its handler. */
export class RunningCalls {
  readonly #giveUps = new Set<(reason: CallError) => void>();

  /** What a call comes to, or a rejection with `UNAVAILABLE` where it is given up before. */
  orGivenUp<T>(call: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#giveUps.add(reject);
      call.then(
        (ended) => {
          this.#giveUps.delete(reject);
          resolve(ended);
        },
        (thrown) => {
          this.#giveUps.delete(reject);
          reject(thrown);
        },
      );
    });
  }

  /** Gives up all of them. */
  giveUp(): void {
    const reason = new CallError(
      "UNAVAILABLE",
      "The server closed before the call was done; try again later.",
      { stack: false },
    );
    for (const reject of this.#giveUps) reject(reason);
  }
}
