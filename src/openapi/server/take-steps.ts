import { setImmediate } from "node:timers/promises";

/** How long steps are taken in a row while others wait. */
const SLICE_MS = 10;

/** Work that can be interrupted wherever it yields. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Does all of a work at once. */
export function takeSteps<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/** Does a work bit by bit, so that a long one holds up nobody else. */
export async function takeStepsInSlices<T>(steps: Steps<T>): Promise<T> {
  let until = performance.now() + SLICE_MS;
  for (let step = steps.next(); ; step = steps.next()) {
    if (step.done === true) return step.value;
    if (performance.now() < until) continue;
    await setImmediate();
    until = performance.now() + SLICE_MS;
  }
}
