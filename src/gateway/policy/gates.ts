import { LONGEST_DELAY } from "../../core/execution/deadline.ts";
import { Rounds } from "./rounds.ts";
import type { Lane } from "./turns.ts";

/** Something that lets only some calls through at a time. */
export interface Gate {
  /** Those with calls that wait for this gate. */
  readonly lanes: Set<Lane>;
  readonly rounds: Rounds;
  hasRoom(now: number): boolean;
  /** Counts one that goes through. */
  take(now: number): void;
}

/** Lets so many calls run at a time. */
export class PlaceGate implements Gate {
  readonly lanes = new Set<Lane>();
  readonly rounds = new Rounds();
  /** `Infinity` where the rule is gone. */
  places: number;
  running = 0;

  constructor(places: number) {
    this.places = places;
  }

  hasRoom(): boolean {
    return this.running < this.places;
  }

  take(): void {
    this.running++;
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
  /** Absent where the rule is gone. */
  rate: Rate | undefined;
  /** When calls of the last period started, on the monotonic clock; the first ones up to `#first` are older. */
  #starts: number[] = [];
  #first = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(rate: Rate) {
    this.rate = rate;
  }

  hasRoom(now: number): boolean {
    if (this.rate === undefined) return true;
    this.#forgetOld(now - this.rate.perMs);
    return this.#starts.length - this.#first < this.rate.calls;
  }

  take(now: number): void {
    if (this.rate !== undefined) this.#starts.push(now);
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
    const deciding = this.#starts[this.#starts.length - calls] as number;
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
    if (rate !== undefined) return;
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
