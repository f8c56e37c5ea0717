import { useMemo, useRef, useState } from "preact/hooks";
import type { CallRow } from "../../protocol.ts";
import type { Live } from "../connection/live.ts";
import { type CallFilter, toTest } from "./call-filter.ts";
import { historyOf } from "./call-history.ts";

/** The calls that are listed, which stand still while the list is paused or scrolled. */
export interface HeldCalls {
  /** Newest first. */
  readonly rows: readonly CallRow[];
  /** The calls before they were filtered. */
  readonly held: readonly CallRow[];
  /** How many calls came since the list stands still; nothing while it goes on. */
  readonly newer: number | undefined;
  readonly isPaused: boolean;
  readonly setPaused: (isPaused: boolean) => void;
  readonly setScrolled: (isScrolled: boolean) => void;
}

/** Follows the calls of a page through a filter. */
export function useHeldCalls(live: Live, filter: CallFilter): HeldCalls {
  const [isPaused, setPaused] = useState(false);
  const [isScrolled, setScrolled] = useState(false);
  const still = useRef<readonly CallRow[]>();
  const all = useMemo(() => live.rows.toSorted((left, right) => right.seq - left.seq), [live, live.calls]);
  const isStill = isPaused || isScrolled;
  still.current = isStill ? (still.current ?? all) : undefined;
  const held = still.current ?? all;
  const test = toTest(filter, historyOf(live).clock());
  // What stands still is filtered anew for another filter alone: rows must not move under the pointer.
  const rows = useMemo(() => held.filter(test), [held, filter]);
  const last = held[0]?.seq ?? -1;
  const newer = isStill ? all.filter((row) => row.seq > last && test(row)).length : undefined;
  return { rows, held, newer, isPaused, setPaused, setScrolled };
}
