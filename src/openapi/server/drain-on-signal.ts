const SIGNALS = ["SIGTERM", "SIGINT"] as const;

type Close = () => Promise<void>;

/** The servers of this process that close on a signal. */
const waiting = new Set<Close>();

/**
 * Closes a server on a signal. When all of them have closed, the signal ends the process as it would have without us; a second signal
 * does so at once. Returns how to stop hearing of signals.
 */
export function drainOnSignal(close: Close): () => void {
  if (waiting.size === 0) for (const signal of SIGNALS) process.on(signal, drain);
  waiting.add(close);
  return () => {
    if (waiting.delete(close) && waiting.size === 0) stopHearing();
  };
}

function drain(signal: NodeJS.Signals): void {
  const closing = [...waiting].map((close) => close());
  waiting.clear();
  stopHearing();
  Promise.allSettled(closing).then(() => process.kill(process.pid, signal));
}

function stopHearing(): void {
  for (const signal of SIGNALS) process.off(signal, drain);
}
