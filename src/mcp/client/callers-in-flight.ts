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
  /** Milliseconds of silence after which a server is taken to have stopped; as many as the call had run, where that is more. */
  rememberMs: 60_000,
  /** Milliseconds of silence that are enough for any call. */
  longestMs: 600_000,
} as const;

/** Whose question it must be: the 2025 revisions do not say, so only what all calls in flight agree on is certain. */
export type CallerInFlight =
  | { readonly kind: "one"; readonly caller: CallerSide | undefined }
  | { readonly kind: "none" }
  /** With how long it takes at most until a call that was given up is forgotten, where no other stands in the way. */
  | { readonly kind: "several"; readonly waitMs?: number };

type Caller = CallerSide | undefined;

/** Who stays the same over several calls. */
type Party = CallerSide["party"];

/** The id of a request. */
type Id = number | string;

/** Counts a call out; one given up before it was answered goes on at the server, and stays remembered under its id. */
export type Leave = (givenUpAs?: Id) => void;

/** A call that nobody waits for, and how long the server must have said nothing of it. */
interface GivenUp {
  readonly party: Party;
  readonly silenceMs: number;
  until: number;
}

/** The calls in flight over one connection, by caller, and those nobody waits for that the server may still be busy with. */
export class CallersInFlight {
  readonly #now: () => number;
  /** Whoever made the latest call comes last. */
  readonly #running = new Map<Caller, number>();
  /** How many of those calls are of each party. */
  readonly #parties = new Map<Party, number>();
  readonly #givenUp = new Map<Id, GivenUp>();
  #unclearUntil = Number.NEGATIVE_INFINITY;

  /** The clock is one that never goes back, in milliseconds. */
  constructor(now: () => number = monotonicNow) {
    this.#now = now;
  }

  /** Returns how to take the call out again. */
  enter(method: string, caller: Caller): Leave {
    if (!CALLS.has(method)) return () => {};
    const party = caller?.party ?? caller;
    const startedAt = this.#now();
    const count = this.#running.get(caller) ?? 0;
    this.#running.delete(caller);
    this.#running.set(caller, count + 1);
    this.#parties.set(party, (this.#parties.get(party) ?? 0) + 1);
    let left = false;
    return (givenUpAs) => {
      if (left) return;
      left = true;
      take(this.#running, caller);
      take(this.#parties, party);
      if (givenUpAs !== undefined) this.#giveUp(givenUpAs, party, startedAt);
    };
  }

  /** Tells whether somebody still waits for a call of this caller. */
  isRunning(caller: Caller): boolean {
    return this.#running.has(caller);
  }

  /** The server has answered a call that was given up: it asks no more about it. */
  answered(id: Id): void {
    this.#givenUp.delete(id);
  }

  /** The server goes on with a call that was given up: it may still ask about it. */
  progressed(id: Id): void {
    const known = this.#givenUp.get(id);
    if (known !== undefined) known.until = this.#now() + known.silenceMs;
  }

  /** Finds the one whom a question of the server must be for: the latest call of the only caller there is. */
  find(): CallerInFlight {
    if (this.#running.size === 0) return { kind: "none" };
    if (this.#parties.size > 1) return { kind: "several" };
    const [party] = this.#parties.keys();
    this.#forgetOld();
    const now = this.#now();
    let until = this.#unclearUntil;
    for (const other of this.#givenUp.values()) {
      if (other.party !== party) until = Math.max(until, other.until);
    }
    if (until > now) return { kind: "several", waitMs: until - now };
    return { kind: "one", caller: [...this.#running.keys()].at(-1) };
  }

  #giveUp(id: Id, party: Party, startedAt: number): void {
    this.#forgetOld();
    const now = this.#now();
    const { calls, rememberMs, longestMs } = GIVEN_UP_LIMITS;
    const silenceMs = Math.min(Math.max(now - startedAt, rememberMs), longestMs);
    const until = now + silenceMs;
    // Nobody is taken for the only one because another was forgotten.
    if (this.#givenUp.size >= calls) this.#unclearUntil = Math.max(this.#unclearUntil, until);
    else this.#givenUp.set(id, { party, silenceMs, until });
  }

  #forgetOld(): void {
    const now = this.#now();
    for (const [id, { until }] of this.#givenUp) {
      if (until <= now) this.#givenUp.delete(id);
    }
  }
}

function take<K>(counts: Map<K, number>, key: K): void {
  const count = (counts.get(key) ?? 1) - 1;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}
