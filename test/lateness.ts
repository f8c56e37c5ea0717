/** Milliseconds that something may take more than it should have. */
export const GRACE_MS = 50;

/** The clock as it is, also while a test has one of its own. */
const now: () => number = performance.now.bind(performance);

/** A timer that waits for everything that was due before it. */
export interface Alarm {
  readonly hasRung: boolean;
  readonly rings: Promise<void>;
  stop(): void;
}

/**
 * Rings some milliseconds from now, and not before every timer of this process has that was set by now for an earlier moment: what
 * comes after it was late by the order of things, however busy the machine is.
 */
export function setAlarm(ms: number): Alarm {
  const due = now() + ms;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let hasRung = false;
  let isStopped = false;
  const rings = new Promise<void>((resolve) => {
    const ring = () => {
      hasRung = !isStopped;
      if (hasRung) resolve();
    };
    const look = () => {
      const left = due - now();
      // A timer may fire early; and those that are due by now get their turn within two rounds of the event loop.
      if (left > 0) timer = setTimeout(look, Math.ceil(left));
      else setImmediate(() => setImmediate(ring));
    };
    look();
  });
  return {
    get hasRung() {
      return hasRung;
    },
    rings,
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}

/** Whether something ends when it should, `ms` from now, and not `graceMs` after that; it starts its own timers at once. */
export async function endsInTime(
  ms: number,
  run: () => Promise<unknown>,
  graceMs: number = GRACE_MS,
): Promise<boolean> {
  const ended = run();
  const alarm = setAlarm(ms + graceMs);
  try {
    return await Promise.race([ended.then(() => true), alarm.rings.then(() => false)]);
  } finally {
    alarm.stop();
  }
}

/** Whether something has ended once no promise has anything left to do: it waits for no timer and for nobody else. */
export async function endsAtOnce(ended: Promise<unknown>): Promise<boolean> {
  const later = new Promise<boolean>((resolve) => setImmediate(() => resolve(false)));
  return Promise.race([ended.then(() => true), later]);
}
