/**
 * Waits for something that cannot be told to stop, or for the signal, whichever is first; what comes too late is handed to `discard`.
 * Rejects with the signal's reason.
 */
export async function unlessAborted<T>(
  coming: Promise<T>,
  signal: AbortSignal,
  discard: (late: T) => Promise<unknown> | undefined,
): Promise<T> {
  let stop: () => void = () => {};
  const aborted = new Promise<never>((_, reject) => {
    const leave = (): void => reject(signal.reason);
    stop = () => signal.removeEventListener("abort", leave);
    signal.addEventListener("abort", leave, { once: true });
    if (signal.aborted) leave();
  });
  try {
    return await Promise.race([coming, aborted]);
  } catch (thrown) {
    if (signal.aborted) {
      coming.then(discard).catch(() => {
        // Nobody wants it any more.
      });
    }
    throw thrown;
  } finally {
    stop();
  }
}
