import { monotonicNow } from "../../core/execution/deadline.ts";
import type { CallerSide } from "../../core/operation/caller-side.ts";

/** What a server may want to ask something about. */
const CALLS: ReadonlySet<string> = new Set([
  "tools/call",
  "prompts/get",
  "resources/read",
  "completion/complete",
]);

/** Bounds on what is remembered of calls that were given up. */
export const GIVEN_UP_LIMITS = {
  /** Calls; with one more, no question is anybody's for a while. */
  calls: 1_000,
  /** Milliseconds; a server that has not answered by then is taken to have stopped. */
  rememberMs: 600_000,
} as const;

/** Whose question it must be: the 2025 revisions do not say, so only what all calls in flight agree on is certain. */
export type CallerInFlight =
  | { readonly kind: "one"; readonly caller: CallerSide | undefined }
  | { readonly kind: "none" }
  | { readonly kind: "several" };

type Caller = CallerSide | undefined;

/** The id of a request. */
type Id = number | string;

/** Counts a call out; one given up before it was answered goes on at the server, and stays remembered under its id. */
export type Leave = (givenUpAs?: Id) => void;

/** The calls in flight over one connection, by caller, and those nobody waits for that the server may still be busy with. */
export class CallersInFlight {
  readonly #now: () => number;
  readonly #running = new Map<Caller, number>();
  /** In the order in which they were given up. */
  readonly #givenUp = new Map<Id, { readonly caller: Caller; readonly until: number }>();
  /** How many of those are of each caller. */
  readonly #waitedFor = new Map<Caller, number>();
  #unclearUntil = Number.NEGATIVE_INFINITY;

  /** The clock is one that never goes back, in milliseconds. */
  constructor(now: () => number = monotonicNow) {
    this.#now = now;
  }

  /** Returns how to take the call out again. */
  enter(method: string, caller: Caller): Leave {
    if (!CALLS.has(method)) return () => {};
    add(this.#running, caller);
    let left = false;
    return (givenUpAs) => {
      if (left) return;
      left = true;
      take(this.#running, caller);
      if (givenUpAs !== undefined) this.#giveUp(givenUpAs, caller);
    };
  }

  /** Tells whether somebody still waits for a call of this caller. */
  isRunning(caller: Caller): boolean {
    return this.#running.has(caller);
  }

  /** The server has answered a call that was given up: it asks no more about it. */
  answered(id: Id): void {
    const known = this.#givenUp.get(id);
    if (known === undefined) return;
    this.#givenUp.delete(id);
    take(this.#waitedFor, known.caller);
  }

  /** Finds the one whom a question of the server must be for. */
  find(): CallerInFlight {
    if (this.#running.size === 0) return { kind: "none" };
    this.#forgetOld();
    const [caller] = this.#running.keys();
    const others = this.#waitedFor.size - (this.#waitedFor.has(caller) ? 1 : 0);
    if (this.#running.size > 1 || others > 0 || this.#now() < this.#unclearUntil) return { kind: "several" };
    return { kind: "one", caller };
  }

  #giveUp(id: Id, caller: Caller): void {
    this.answered(id);
    this.#forgetOld();
    const until = this.#now() + GIVEN_UP_LIMITS.rememberMs;
    if (this.#givenUp.size >= GIVEN_UP_LIMITS.calls) {
      // Nobody is taken for the only one because another was forgotten.
      this.#unclearUntil = until;
      return;
    }
    this.#givenUp.set(id, { caller, until });
    add(this.#waitedFor, caller);
  }

  #forgetOld(): void {
    const now = this.#now();
    for (const [id, { until }] of this.#givenUp) {
      if (until > now) return;
      this.answered(id);
    }
  }
}

function add(counts: Map<Caller, number>, caller: Caller): void {
  counts.set(caller, (counts.get(caller) ?? 0) + 1);
}

function take(counts: Map<Caller, number>, caller: Caller): void {
  const count = (counts.get(caller) ?? 1) - 1;
  if (count > 0) counts.set(caller, count);
  else counts.delete(caller);
}
