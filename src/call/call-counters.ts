/** What was dropped or refused, and why; every field only ever grows. */
export interface CallCounters {
  /** Not an event: unreadable, or not of its schema. */
  readonly malformed: number;
  /** Larger than allowed. */
  readonly oversized: number;
  /** An event that had been there before: a request id, a sequence number. */
  readonly duplicate: number;
  /** An event for a call that has settled. */
  readonly late: number;
  /** An event by a path that is nobody's, or on behalf of another call than the path's own. */
  readonly forged: number;
  /** An event of a type that is unknown, or that the sender may not send. */
  readonly unexpected: number;
  /** A request whose sender is not believed to be who it says. */
  readonly unauthenticated: number;
  /** Part of a stream that never came. */
  readonly gaps: number;
  /** A call or a yield over a limit. */
  readonly overLimit: number;
}

/** What an event was dropped for. */
export type DropReason = keyof CallCounters;

/** Counters that can be counted up. */
export type LiveCounters = { -readonly [Reason in DropReason]: number };

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
  };
}
