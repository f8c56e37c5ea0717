import { CallError, isCallError, toCallError } from "../../../core/errors/errors.ts";
import { addAbortListener, removeAbortListener } from "../../../core/execution/abort-listeners.ts";

/** Waits for work that others may share, no longer than a signal allows; the work itself goes on. */
export function waitFor<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const listener = { onAbort: () => reject(stoppedBy(signal)) };
    if (signal.aborted) listener.onAbort();
    else addAbortListener(signal, listener);
    const end = () => removeAbortListener(signal, listener);
    work.then(
      (value) => {
        end();
        resolve(value);
      },
      (failure: unknown) => {
        end();
        reject(failure);
      },
    );
  });
}

function stoppedBy(signal: AbortSignal): CallError {
  const reason: unknown = signal.reason;
  if (isCallError(reason)) return toCallError(reason);
  const timedOut = reason instanceof Error && reason.name === "TimeoutError";
  return timedOut
    ? new CallError("TIMEOUT", "The time was up before credentials were there.", {
        cause: reason,
        stack: false,
      })
    : new CallError("ABORTED", "The call was aborted before credentials were there.", {
        cause: reason,
        stack: false,
      });
}
