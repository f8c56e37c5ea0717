import type { HistoryEvent } from "./history.ts";

const LOOK_EVERY_MS = 5;
/** Shorter ones excuse nothing. */
const SHORTEST_STALL_MS = 10;

/** Writes down when this process did not get to run; returns how to stop. */
export function watchStalls(write: (event: HistoryEvent) => void): () => void {
  let last = performance.now();
  const look = (): void => {
    const due = last + LOOK_EVERY_MS;
    last = performance.now();
    if (last - due >= SHORTEST_STALL_MS) write({ event: "stall", from: due, to: last });
  };
  const timer = setInterval(look, LOOK_EVERY_MS);
  return () => {
    look();
    clearInterval(timer);
  };
}
