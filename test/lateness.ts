import { sleep } from "./make-operation.ts";

/**
 * Milliseconds by which something ended later than it should have, at `ms` from now, and later than a plain timer set for the
 * same moment: what a busy machine does to every timer of this process is not held against it.
 */
export async function lateness(ms: number, run: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  const plain = sleep(ms).then(() => performance.now());
  await run();
  const ended = performance.now();
  return ended - Math.max(start + ms, await plain);
}
