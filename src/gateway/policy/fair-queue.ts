import { CallError, turnDown } from "../../core/errors/errors.ts";
import { type Cancellation, monotonicNow } from "../../core/execution/cancellation.ts";
import { CallerShares } from "../../core/limits/call-slots.ts";
import { type Gate, type LeaseSlots, PlaceGate, type Rate, RateGate } from "./gates.ts";

/** How many calls may wait for their turn, all together. */
export interface QueueLimits {
  readonly queue: number;
}

/** A call that needs a turn. */
export interface QueuedCall {
  /** Names it in errors. */
  readonly operationId: string;
  /** Whose it is: callers take turns with one another. */
  readonly owner: string;
}

/** Rates and places by the rule they belong to: those of a rule are counted over all the operations it holds for. */
export interface GateRules {
  readonly rates: ReadonlyMap<string, Rate>;
  readonly places: ReadonlyMap<string, number>;
}

/** Calls that go through the same gates: caller by caller, those of one in the order they came. */
export interface Lane {
  readonly rate: RateGate | undefined;
  readonly places: PlaceGate | undefined;
  readonly gates: readonly Gate[];
  readonly waiters: WaitList;
}

/**
 * Whose turn it is. A call starts when all its gates have room at the same time, so that nobody holds a place while waiting for a
 * rate, and no more start in a period than its rate allows. Of those that could start, callers take turns, so that one who makes many
 * calls holds nobody else up; of the calls of one caller, the one that came first starts first.
 */
export class FairQueue {
  readonly #limits: QueueLimits;
  readonly #rates = new Map<string, RateGate>();
  readonly #places = new Map<string, PlaceGate>();
  readonly #lanes = new Map<string, Lane>();
  readonly #shares: CallerShares;
  readonly #lease: LeaseSlots;
  readonly #waitingOf = new Map<string, number>();
  #waiting = 0;
  #lastOrder = 0;

  /**
   * Where `isShared`, callers are told apart, and one among others may be three quarters of those who wait. Limits hold for this process
   * alone where nothing leases their slots.
   */
  constructor(limits: QueueLimits, isShared: boolean, lease: LeaseSlots = () => undefined) {
    this.#limits = limits;
    this.#lease = lease;
    this.#shares = new CallerShares(isShared);
  }

  /** Tells callers apart from now on, or does not. */
  setShared(isShared: boolean): void {
    this.#shares.isShared = isShared;
  }

  /** Calls that wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Takes other rules; those who wait go on waiting, under the new ones. */
  change({ rates, places }: GateRules): void {
    for (const [owner, rate] of rates) {
      const gate = this.#rates.get(owner);
      if (gate === undefined) this.#rates.set(owner, this.#share(new RateGate(rate, owner)));
      else if (gate.rate?.calls !== rate.calls || gate.rate.perMs !== rate.perMs) gate.change(rate);
    }
    for (const [owner, count] of places) {
      const gate = this.#places.get(owner);
      if (gate === undefined) this.#places.set(owner, this.#share(new PlaceGate(count, owner)));
      else gate.change(count);
    }
    const gone = [...this.#rates].filter(([owner]) => !rates.has(owner));
    for (const [, gate] of gone) gate.change(undefined);
    for (const [owner, gate] of this.#places) if (!places.has(owner)) gate.change(Number.POSITIVE_INFINITY);
    for (const gate of [...this.#rates.values(), ...this.#places.values()]) this.#startNext(gate);
    // Lanes that have calls waiting are known to their gates.
    this.#lanes.clear();
    for (const [owner] of gone) this.#rates.delete(owner);
    for (const [owner, gate] of this.#places) {
      if (!places.has(owner) && gate.running === 0) this.#places.delete(owner);
    }
  }

  /** The lane of calls under the rate of one rule and the places of another; nothing where neither is known. */
  laneOf(rateOwner: string | undefined, placesOwner: string | undefined): Lane | undefined {
    const rate = rateOwner === undefined ? undefined : this.#rates.get(rateOwner);
    const places = placesOwner === undefined ? undefined : this.#places.get(placesOwner);
    if (rate === undefined && places === undefined) return undefined;
    const key = JSON.stringify([rateOwner, placesOwner]);
    const known = this.#lanes.get(key);
    if (known !== undefined) return known;
    const gates = [rate, places].filter((gate) => gate !== undefined);
    const lane: Lane = { rate, places, gates, waiters: new WaitList() };
    this.#lanes.set(key, lane);
    return lane;
  }

  /** Waits for a turn, which is given back with `leave`; the time that took, or a `CallError` when the call ends before. */
  async enter(lane: Lane, asked: QueuedCall, cancellation: Cancellation): Promise<number> {
    const now = monotonicNow();
    const ended = cancellation.check(now);
    if (ended !== undefined) throw ended;
    // A timer may be late, and calls that came before go before.
    for (const gate of lane.gates) if (gate.lanes.size > 0) this.#startNext(gate);
    if (lane.waiters.first === undefined && isOpen(lane, now)) {
      take(lane, now);
      return 0;
    }
    if (lane.gates.some(isRefused)) throw turnDown(lost(), asked.operationId);
    this.#assertRoom(asked);
    await this.#wait(lane, asked.owner, cancellation);
    return monotonicNow() - now;
  }

  /** Gives a turn back. */
  leave({ places }: Lane): void {
    if (places === undefined) return;
    places.leave();
    this.#startNext(places);
    places.leased?.changed();
  }

  /** Turns away everybody who waits; no timer is left. */
  close(error: CallError): void {
    const gates: readonly Gate[] = [...this.#rates.values(), ...this.#places.values()];
    for (const gate of gates) this.#turnAway(gate, error);
    for (const gate of this.#rates.values()) gate.close();
    for (const gate of gates) gate.leased?.close();
  }

  #turnAway(gate: Gate, error: CallError): void {
    for (const lane of [...gate.lanes]) {
      for (let waiter = lane.waiters.first; waiter !== undefined; waiter = lane.waiters.first) {
        this.#remove(lane, waiter);
        waiter.settle(error);
      }
    }
  }

  /** Leases the slots of a gate, where replicas share them. */
  #share<G extends RateGate | PlaceGate>(gate: G): G {
    const leased = this.#lease(gate.limit, {
      used: (now) => gate.used(now),
      get waiting() {
        let count = 0;
        for (const { waiters } of gate.lanes) count += waiters.size;
        return count;
      },
      restsFor: (now) => gate.restsFor(now),
      onSlots: () => {
        this.#startNext(gate);
        if (isRefused(gate)) this.#turnAway(gate, lost());
      },
    });
    gate.leased = leased;
    return gate;
  }

  #assertRoom({ operationId, owner }: QueuedCall): void {
    const { queue } = this.#limits;
    const share = this.#shares.ask(owner, queue);
    if (this.#waiting >= queue) {
      throw refused(operationId, `As many calls wait for their turn as may; "${operationId}" was not made.`);
    }
    if ((this.#waitingOf.get(owner) ?? 0) < share) return;
    const message = `As many of your calls wait for their turn as one caller may have; "${operationId}" was not made.`;
    throw refused(operationId, message);
  }

  #wait(lane: Lane, owner: string, cancellation: Cancellation): Promise<void> {
    return new Promise((resolve, reject) => {
      let forget = (): void => {};
      const rounds = new Map(lane.gates.map((gate) => [gate, gate.rounds.next(owner)]));
      const waiter = new Waiter({ owner, rounds, order: ++this.#lastOrder }, (error) => {
        forget();
        if (error === undefined) resolve();
        else reject(error);
      });
      this.#add(lane, waiter);
      this.#wakeLater(lane.rate, monotonicNow());
      for (const gate of lane.gates) gate.leased?.changed();
      forget = whenEnded(cancellation, (error) => {
        this.#remove(lane, waiter);
        waiter.settle(error);
        // Others of the same gates may have waited behind this one alone.
        for (const gate of lane.gates) {
          this.#startNext(gate);
          gate.leased?.changed();
        }
      });
    });
  }

  #add(lane: Lane, waiter: Waiter): void {
    const { owner, rounds } = waiter;
    lane.waiters.add(waiter);
    this.#waiting++;
    this.#waitingOf.set(owner, (this.#waitingOf.get(owner) ?? 0) + 1);
    for (const gate of lane.gates) {
      gate.lanes.add(lane);
      gate.rounds.add(owner, rounds.get(gate) ?? 0);
    }
  }

  #remove(lane: Lane, waiter: Waiter): void {
    if (!lane.waiters.remove(waiter)) return;
    const { owner } = waiter;
    this.#waiting--;
    const left = (this.#waitingOf.get(owner) ?? 1) - 1;
    if (left > 0) this.#waitingOf.set(owner, left);
    else this.#waitingOf.delete(owner);
    for (const { rounds } of lane.gates) rounds.remove(owner);
    if (lane.waiters.first !== undefined) return;
    for (const gate of lane.gates) gate.lanes.delete(lane);
    this.#wakeLater(lane.rate, monotonicNow());
  }

  /** Starts the calls that can start, in the order of their turns. */
  #startNext(gate: Gate): void {
    const now = monotonicNow();
    const touched = new Set<RateGate | undefined>();
    for (;;) {
      const next = firstOf(gate, now);
      if (next === undefined) break;
      const { lane, waiter } = next;
      this.#remove(lane, waiter);
      for (const one of lane.gates) one.rounds.start(waiter.rounds.get(one) ?? 0);
      take(lane, now);
      touched.add(lane.rate);
      waiter.settle();
    }
    for (const { rate } of gate.lanes) touched.add(rate);
    for (const rate of touched) this.#wakeLater(rate, now);
  }

  #wakeLater(rate: RateGate | undefined, now: number): void {
    rate?.wakeWhenOpen(now, () => this.#startNext(rate));
  }
}

function firstOf(gate: Gate, now: number): { readonly lane: Lane; readonly waiter: Waiter } | undefined {
  let first: { readonly lane: Lane; readonly waiter: Waiter } | undefined;
  for (const lane of gate.lanes) {
    const waiter = isOpen(lane, now) ? lane.waiters.first : undefined;
    if (waiter !== undefined && (first === undefined || waiter.isBeforeAt(gate, first.waiter)))
      first = { lane, waiter };
  }
  return first;
}

function isOpen({ gates }: Lane, now: number): boolean {
  return gates.every((gate) => gate.hasRoom(now));
}

function take({ gates }: Lane, now: number): void {
  for (const gate of gates) gate.take(now);
}

/** Starts watching, and can be told to stop listening. */
function whenEnded(cancellation: Cancellation, tell: (error: CallError) => void): () => void {
  cancellation.watch(() => {});
  return cancellation.whenEnded(tell);
}

function refused(operationId: string, message: string): CallError {
  const error = new CallError("RESOURCE_EXHAUSTED", `${message} Try again later.`, {
    details: { retryAfterMs: 1_000 },
    stack: false,
  });
  return turnDown(error, operationId);
}

/** Whether a gate lets nothing through because what replicas share cannot be reached. */
function isRefused(gate: Gate): boolean {
  return gate.leased?.isRefused === true && !gate.hasRoom(monotonicNow());
}

function lost(): CallError {
  const message =
    "The call did not run: a limit that it runs under is counted over all replicas, and their shared state cannot be reached. Try again later.";
  return new CallError("UNAVAILABLE", message, { details: { retryAfterMs: 1_000 }, stack: false });
}

/** A call that waits for its turn. */
export class Waiter {
  /** Whose it is. */
  readonly owner: string;
  /** Its rounds by the gates it waits for: the lower goes first. Those of one gate say nothing about another. */
  readonly rounds: ReadonlyMap<object, number>;
  /** The last of them. */
  readonly round: number;
  /** Of those of one round, the lower came first. */
  readonly order: number;
  readonly settle: (error?: CallError) => void;
  /** Where it stands in its list; nothing where it is in none. */
  at: number | undefined;

  constructor(place: Pick<Waiter, "owner" | "rounds" | "order">, settle: (error?: CallError) => void) {
    this.owner = place.owner;
    this.rounds = place.rounds;
    this.round = Math.max(...place.rounds.values());
    this.order = place.order;
    this.settle = settle;
  }

  /** Whether it goes before another one of its lane. */
  isBefore({ round, order }: Waiter): boolean {
    return this.round < round || (this.round === round && this.order < order);
  }

  /** The same at a gate, before one of any lane. */
  isBeforeAt(gate: object, { rounds, order }: Waiter): boolean {
    const [own, other] = [this.rounds.get(gate) ?? 0, rounds.get(gate) ?? 0];
    return own < other || (own === other && this.order < order);
  }
}

/** Calls by whose turn comes first; any of them can come and leave at a small cost, however many there are. */
export class WaitList {
  /** A heap: none stands before the one at half its index. */
  readonly #heap: Waiter[] = [];

  get first(): Waiter | undefined {
    return this.#heap[0];
  }

  get size(): number {
    return this.#heap.length;
  }

  add(waiter: Waiter): void {
    this.#put(waiter, this.#heap.length);
    this.#rise(waiter);
  }

  /** Tells whether it was there. */
  remove(waiter: Waiter): boolean {
    const { at } = waiter;
    if (at === undefined) return false;
    waiter.at = undefined;
    const last = this.#heap.pop() as Waiter;
    if (last === waiter) return true;
    this.#put(last, at);
    this.#rise(last);
    this.#sink(last);
    return true;
  }

  #put(waiter: Waiter, at: number): void {
    this.#heap[at] = waiter;
    waiter.at = at;
  }

  #rise(waiter: Waiter): void {
    for (let at = waiter.at as number; at > 0; at = waiter.at as number) {
      const above = this.#heap[(at - 1) >> 1] as Waiter;
      if (!waiter.isBefore(above)) return;
      this.#put(above, at);
      this.#put(waiter, (at - 1) >> 1);
    }
  }

  #sink(waiter: Waiter): void {
    for (;;) {
      const at = waiter.at as number;
      const [left, right] = [this.#heap[2 * at + 1], this.#heap[2 * at + 2]];
      const below = left !== undefined && right?.isBefore(left) === true ? right : left;
      if (below === undefined || !below.isBefore(waiter)) return;
      const next = below.at as number;
      this.#put(below, at);
      this.#put(waiter, next);
    }
  }
}
