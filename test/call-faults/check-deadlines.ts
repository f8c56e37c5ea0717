import { GRACE_MS } from "../lateness.ts";
import type { Asked, History, Stall } from "./history.ts";

/** How calls kept their deadlines. */
export interface Lateness {
  readonly problems: readonly string[];
  /** Milliseconds past its deadline of the latest call that a timer outran, without what its process was stalled for. */
  readonly worstMs: number;
  /** Calls that only their process excuses, which was stalled, or too busy for any timer. */
  readonly excused: number;
  /** Milliseconds of the longest stall, and of all of them together. */
  readonly longestStallMs: number;
  readonly stalledMs: number;
}

/**
 * Holds plain calls and streams to their deadlines: on the caller's side none may outlive its own by more than `GRACE_MS`. A process
 * that does not get to run can settle nothing, whether it was stopped or the machine was busy: what it wrote down as a stall is taken
 * off, and a call is in time that no timer of its process has outrun.
 */
export function checkDeadlines(clients: readonly History[]): Lateness {
  const all = clients.map(checkOne);
  return {
    problems: all.flatMap(({ problems }) => problems),
    worstMs: Math.max(0, ...all.map(({ worstMs }) => worstMs)),
    excused: all.reduce((sum, { excused }) => sum + excused, 0),
    longestStallMs: Math.max(0, ...all.map(({ longestStallMs }) => longestStallMs)),
    stalledMs: all.reduce((sum, { stalledMs }) => sum + stalledMs, 0),
  };
}

function checkOne({ name, events }: History): Lateness {
  const stalls = events.filter((event): event is Stall => event.event === "stall");
  const asked = new Map<string, Asked>();
  const problems: string[] = [];
  let worstMs = 0;
  let excused = 0;
  for (const event of events) {
    if (event.event === "asked") asked.set(event.id, event);
    const call = event.event === "settled" ? asked.get(event.id) : undefined;
    if (event.event !== "settled" || call === undefined) continue;
    const deadline = event.calledAt + call.timeoutMs;
    const late = event.at - deadline;
    if (late <= 0) continue;
    const stalled = stalledWithin(stalls, deadline, event.at);
    const own = late - stalled;
    if (event.wasOutrun) worstMs = Math.max(worstMs, own);
    if (own > GRACE_MS && event.wasOutrun) {
      const without = stalled > 0 ? `, without ${Math.round(stalled)} ms of stalls` : "";
      problems.push(`${name}: ${event.id} settled ${Math.round(own)} ms past its deadline${without}.`);
    } else if (late > GRACE_MS) excused += 1;
  }
  const lengths = stalls.map(({ from, to }) => to - from);
  const longestStallMs = lengths.reduce((longest, length) => Math.max(longest, length), 0);
  const stalledMs = lengths.reduce((sum, length) => sum + length, 0);
  return { problems, worstMs, excused, longestStallMs, stalledMs };
}

/** Stalls of one process follow each other, so that none is counted twice. */
function stalledWithin(stalls: readonly Stall[], from: number, to: number): number {
  let sum = 0;
  for (const stall of stalls) sum += Math.max(0, Math.min(to, stall.to) - Math.max(from, stall.from));
  return sum;
}
