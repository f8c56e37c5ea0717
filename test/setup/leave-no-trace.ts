import { afterAll, vi } from "vitest";

const KEPT = Symbol.for("waybill.test.timers");
const globals = globalThis as typeof globalThis & { [KEPT]?: Readonly<Record<string, unknown>> };

/** What tests replace to stop a clock, as it was before the first of them. */
const kept = globals[KEPT] ?? { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, Date };
globals[KEPT] = kept;

// Files share a process: one that leaves a stopped clock behind would make another wait for ever.
afterAll(() => {
  const isFake = vi.isFakeTimers();
  vi.useRealTimers();
  const names = Object.keys(kept).filter((name) => Reflect.get(globalThis, name) !== kept[name]);
  // A spy that was made while the clock was stopped brings it back whenever it is restored: no spy outlives its file.
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
  Object.assign(globalThis, kept);
  if (isFake || names.length > 0) {
    throw new Error(
      `This file leaves a stopped clock behind (${names.join(", ")}): call vi.useRealTimers() in an afterEach, after spies are restored.`,
    );
  }
});
