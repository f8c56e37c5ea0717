import type { CallCounters } from "../../src/call/index.ts";

/** What is dropped, counted by a model. */
export type LiveCounters = { -readonly [Reason in keyof CallCounters]: number };

/** Starts at zero. */
export function createCounters(): LiveCounters {
  return {
    malformed: 0,
    oversized: 0,
    duplicate: 0,
    late: 0,
    forged: 0,
    unexpected: 0,
    unauthenticated: 0,
    gaps: 0,
    overLimit: 0,
    ejected: 0,
    retried: 0,
    overBudget: 0,
    circuitOpen: 0,
  };
}
