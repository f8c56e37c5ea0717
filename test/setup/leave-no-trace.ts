import { afterAll, vi } from "vitest";

const TIMERS = [setTimeout, setInterval, setImmediate, performance.now, Date] as const;

// Files share a process: one that leaves a stopped clock behind would make another wait for ever.
afterAll(() => {
  const isFake = vi.isFakeTimers();
  vi.useRealTimers();
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
  if (isFake)
    throw new Error(
      "This file leaves fake timers behind: call vi.useRealTimers() in an afterEach or a finally.",
    );
  const now = [setTimeout, setInterval, setImmediate, performance.now, Date];
  const left = TIMERS.filter((timer, i) => timer !== now[i]).map(({ name }) => name);
  if (left.length > 0) throw new Error(`This file leaves a replaced ${left.join(", ")} behind: restore it.`);
});
