/** What becomes of faults that nobody caught, where somebody takes them. */
let taker: ((thrown: unknown) => void) | undefined;

/**
 * Listens for what nobody in this process caught: an error thrown in a timer, a promise that was rejected and left alone. Whoever takes them
 * gets them; else `onFault` does.
 */
export function listenForFaults(onFault: (thrown: unknown) => void): void {
  const listener = (thrown: unknown): void => (taker ?? onFault)(thrown);
  process.on("uncaughtException", listener);
  process.on("unhandledRejection", listener);
}

/** Takes faults from now on: what serves others goes on when a module of theirs forgets a promise. Returns how to stop. */
export function takeFaults(take: (thrown: unknown) => void): () => void {
  taker = take;
  return () => {
    if (taker === take) taker = undefined;
  };
}
