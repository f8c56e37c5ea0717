import { openSync, writeSync } from "node:fs";
import type { CallCounters } from "../../src/call/index.ts";
import type { WorkInput } from "./workload.ts";

/** How a call ended, as whoever waited for it saw it. */
export type Outcome =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly code: string; readonly retryable: boolean };

/** A client is about to send a call. */
export interface Asked {
  readonly event: "asked";
  readonly id: string;
  readonly operationId: string;
  readonly input: WorkInput;
  readonly timeoutMs: number;
  /** Tries that were allowed. */
  readonly attempts: number;
}

/** A plain call or a stream is over; times are those of `performance.now()` in its own process. */
export interface Settled {
  readonly event: "settled";
  readonly id: string;
  readonly outcome: Outcome;
  /** The values of a stream, in the order they were read. */
  readonly received?: readonly unknown[];
  /** When the call was under way: its deadline was set just before. */
  readonly calledAt: number;
  readonly at: number;
  /** Whether a timer of the same process, set for a while after the deadline, rang before it. */
  readonly wasOutrun: boolean;
}

/** The broker has acknowledged a stored call. */
export interface Accepted {
  readonly event: "accepted";
  readonly id: string;
}

/** A submit of a stored call failed; it may be stored all the same. */
export interface Refused {
  readonly event: "refused";
  readonly id: string;
  readonly code: string;
}

/** Somebody asked how a stored call ended. */
export interface Fetched {
  readonly event: "fetched";
  readonly id: string;
  readonly outcome: Outcome;
}

/** The process did not get to run between two points of its own clock. */
export interface Stall {
  readonly event: "stall";
  readonly from: number;
  readonly to: number;
}

/** The storm has been over for a while: from here on nothing may fail. */
export interface Calm {
  readonly event: "calm";
}

/** A client has seen all of its calls to their end. */
export interface Closed {
  readonly event: "closed";
  /** Calls that its map still holds. */
  readonly pending: number;
  readonly counters: CallCounters;
}

/** A handler is about to start. */
export interface Run {
  readonly event: "run";
  readonly id: string;
  readonly operationId: string;
  readonly pid: number;
}

/** A handler is about to return. */
export interface Done {
  readonly event: "done";
  readonly id: string;
}

/** One line of a history. */
export type HistoryEvent =
  | Asked
  | Settled
  | Accepted
  | Refused
  | Fetched
  | Stall
  | Calm
  | Closed
  | Run
  | Done;

const EVENTS: ReadonlySet<unknown> = new Set<HistoryEvent["event"]>([
  "asked",
  "settled",
  "accepted",
  "refused",
  "fetched",
  "stall",
  "calm",
  "closed",
  "run",
  "done",
]);

/** Appends to the history of one process, each line in one write: what was written outlives a kill of the process. */
export function createHistoryWriter(path: string): (event: HistoryEvent) => void {
  const file = openSync(path, "a");
  return (event) => void writeSync(file, `${JSON.stringify(event)}\n`);
}

/** What one process left behind. */
export interface History {
  /** The name of its file. */
  readonly name: string;
  /** Whether the nemesis killed it, after which it may have left things undone. */
  readonly killed: boolean;
  readonly events: readonly HistoryEvent[];
}

/** Reads a history; the last line of a killed process may be torn, anything else that cannot be read throws. */
export function parseHistory(name: string, text: string, killed: boolean): History {
  const lines = text.split("\n");
  const torn = lines.pop() ?? "";
  if (torn !== "" && !killed)
    throw new Error(`${name}: the last line is torn, and nobody killed its writer.`);
  return { name, killed, events: lines.map((line, index) => parseLine(line, `${name}:${index + 1}`)) };
}

function parseLine(line: string, place: string): HistoryEvent {
  try {
    const event = JSON.parse(line) as HistoryEvent;
    if (EVENTS.has(event.event)) return event;
  } catch {
    // Told below, with its place.
  }
  throw new Error(`${place}: not a line of a history: ${line.slice(0, 200)}`);
}
