import { LONGEST_DELAY } from "../../core/execution/cancellation.ts";
import type { Lane } from "./fair-queue.ts";

/** A limit whose slots replicas share: places of calls that run, or starts that count for a period. */
export interface SlotLimit {
  /** Names it among all limits of a gateway. */
  readonly name: string;
  readonly count: number;
  /** Milliseconds from the start of a call for which its slot is taken; 0 where that is as long as the call runs. */
  readonly restMs: number;
}

/** What a gate makes of its slots. */
export interface SlotUse {
  /** Slots that are taken. */
  used(now: number): number;
  /** Calls that wait at the gate. */
  readonly waiting: number;
  /** Milliseconds until the first of the slots is there again by itself; nothing where none is. */
  restsFor(now: number): number | undefined;
  /** Hears that there may be others. */
  onSlots(): void;
}

/** Slots that this replica has of a limit: it is told how they are used, and gets more where it can. */
export interface LeasedSlots {
  readonly slots: number;
  /** Whether there will be none until the store of the replicas is back. */
  readonly isRefused: boolean;
  /** Hears that a call has taken one. */
  started(): void;
  /** Hears that one is free again, or that a call waits. */
  changed(): void;
  /** Takes another count. */
  change(limit: SlotLimit): void;
  /** Gives back what is not in use. */
  close(): void;
}

/** Leases the slots of a limit, where replicas share it. */
export type LeaseSlots = (limit: SlotLimit, use: SlotUse) => LeasedSlots | undefined;

interface Waiting {
  /** The round of the last one that came. */
  round: number;
  count: number;
}

/** The rounds in which callers get through a gate: everybody who waits gets through once before anybody does a second time. */
export class Rounds {
  #now = 0;
  readonly #waiting = new Map<string, Waiting>();

  /** The round in which a caller's next call gets through. */
  next(owner: string): number {
    return Math.max(this.#now, this.#waiting.get(owner)?.round ?? 0) + 1;
  }

  add(owner: string, round: number): void {
    const waiting = this.#waiting.get(owner) ?? { round, count: 0 };
    waiting.round = Math.max(waiting.round, round);
    waiting.count += 1;
    this.#waiting.set(owner, waiting);
  }

  /** Takes out a call that waits no more, whichever way. */
  remove(owner: string): void {
    const waiting = this.#waiting.get(owner);
    if (waiting === undefined) return;
    waiting.count -= 1;
    if (waiting.count === 0) this.#waiting.delete(owner);
  }

  /** Hears that a call of some round got through. */
  start(round: number): void {
    this.#now = Math.max(this.#now, round);
  }
}

/** Something that lets only some calls through at a time. */
export interface Gate {
  /** Those with calls that wait for this gate. */
  readonly lanes: Set<Lane>;
  readonly rounds: Rounds;
  /** What this replica has of the slots; nothing where the limit is this process's own. */
  readonly leased: LeasedSlots | undefined;
  hasRoom(now: number): boolean;
  /** Counts one that goes through. */
  take(now: number): void;
}

/** Lets so many calls run at a time. */
export class PlaceGate implements Gate {
  readonly lanes = new Set<Lane>();
  readonly rounds = new Rounds();
  leased: LeasedSlots | undefined;
  running = 0;
  /** `Infinity` where the rule is gone. */
  #places: number;
  readonly #rule: string;

  constructor(places: number, rule = "") {
    this.#places = places;
    this.#rule = rule;
  }

  get limit(): SlotLimit {
    return { name: `places ${this.#rule}`, count: this.#places, restMs: 0 };
  }

  hasRoom(): boolean {
    return this.running < (this.leased?.slots ?? this.#places);
  }

  take(): void {
    this.running++;
    this.leased?.started();
  }

  leave(): void {
    this.running--;
  }

  used(): number {
    return this.running;
  }

  restsFor(): undefined {
    return undefined;
  }

  change(places: number): void {
    this.#places = places;
    if (places !== Number.POSITIVE_INFINITY) {
      this.leased?.change(this.limit);
      return;
    }
    this.leased?.close();
    this.leased = undefined;
  }
}

/** How many calls may start in a period. */
export interface Rate {
  readonly calls: number;
  readonly perMs: number;
}

/** Lets so many calls start in a period: in any period, wherever it begins. */
export class RateGate implements Gate {
  readonly lanes = new Set<Lane>();
  readonly rounds = new Rounds();
  leased: LeasedSlots | undefined;
  /** Absent where the rule is gone. */
  rate: Rate | undefined;
  readonly #rule: string;
  /** When calls of the last period started, on the monotonic clock; the first ones up to `#first` are older. */
  #starts: number[] = [];
  #first = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(rate: Rate, rule = "") {
    this.rate = rate;
    this.#rule = rule;
  }

  get limit(): SlotLimit {
    const { calls = Number.POSITIVE_INFINITY, perMs = 0 } = this.rate ?? {};
    return { name: `rate ${this.#rule}`, count: calls, restMs: perMs };
  }

  hasRoom(now: number): boolean {
    return this.rate === undefined || this.used(now) < (this.leased?.slots ?? this.rate.calls);
  }

  take(now: number): void {
    if (this.rate === undefined) return;
    this.#starts.push(now);
    this.leased?.started();
  }

  /** Starts that count now. */
  used(now: number): number {
    if (this.rate === undefined) return 0;
    this.#forgetOld(now - this.rate.perMs);
    return this.#starts.length - this.#first;
  }

  restsFor(now: number): number | undefined {
    const oldest = this.#starts[this.#first];
    return oldest === undefined || this.rate === undefined ? undefined : oldest + this.rate.perMs - now;
  }

  /** Calls back when there may be room again; one timer, however many wait, and none where nobody does. */
  wakeWhenOpen(now: number, wake: () => void): void {
    if (this.lanes.size === 0 || this.hasRoom(now)) {
      clearTimeout(this.#timer);
      this.#timer = undefined;
      return;
    }
    const { calls, perMs } = this.rate as Rate;
    // Fewer may be allowed than have started: then it is not the oldest that has to be over.
    const deciding = this.#starts[this.#starts.length - (this.leased?.slots ?? calls)];
    // Where there are no slots here, it is not time that brings any.
    if (deciding === undefined) return;
    const delay = Math.min(Math.max(Math.ceil(deciding + perMs - now), 1), LONGEST_DELAY);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      wake();
    }, delay);
  }

  /** Takes a new rate, or none, for those who wait too. */
  change(rate: Rate | undefined): void {
    this.rate = rate;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (rate !== undefined) {
      this.leased?.change(this.limit);
      return;
    }
    this.leased?.close();
    this.leased = undefined;
    this.#starts = [];
    this.#first = 0;
  }

  /** Stops waking. */
  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #forgetOld(until: number): void {
    const starts = this.#starts;
    while (this.#first < starts.length && (starts[this.#first] as number) <= until) this.#first++;
    if (this.#first === starts.length) {
      starts.length = 0;
      this.#first = 0;
    } else if (this.#first > 1_000 && this.#first > starts.length / 2) {
      starts.splice(0, this.#first);
      this.#first = 0;
    }
  }
}
