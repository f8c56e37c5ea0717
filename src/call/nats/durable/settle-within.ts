import {
  type AbortListener,
  addAbortListener,
  removeAbortListener,
} from "../../../core/execution/abort-listeners.ts";
import { type Expiring, monotonicNow, startTimer } from "../../../core/execution/deadline.ts";

/** How long somebody waits for work that goes on without them. */
export interface Patience {
  /** On the monotonic clock. */
  readonly until: number;
  readonly signal?: AbortSignal | undefined;
  /** The error for time that is over. */
  readonly expired: () => Error;
  /** The error for a signal that has aborted. */
  readonly aborted: (reason: unknown) => Error;
}

/** Settles as the work does, or with an error once nobody waits for it any more; nothing is left behind. */
export function settleWithin<T>(patience: Patience, work: () => Promise<T>): Promise<T> {
  const { signal, until } = patience;
  if (signal?.aborted === true) return Promise.reject(patience.aborted(signal.reason));
  return new Promise((resolve, reject) => {
    const waiting: Expiring & AbortListener = {
      deadline: until,
      timer: undefined,
      expire: () => finish(() => reject(patience.expired())),
      onAbort: (source) => finish(() => reject(patience.aborted(source.reason))),
    };
    const finish = (settle: () => void): void => {
      clearTimeout(waiting.timer);
      if (signal !== undefined) removeAbortListener(signal, waiting);
      settle();
    };
    startTimer(waiting, until - monotonicNow());
    if (signal !== undefined) addAbortListener(signal, waiting);
    work().then(
      (value) => finish(() => resolve(value)),
      (thrown: unknown) => finish(() => reject(thrown)),
    );
  });
}
