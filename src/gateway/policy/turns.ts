import { CallError } from "../../core/errors/errors.ts";
import type { Cancellation } from "../../core/execution/cancellation.ts";
import { monotonicNow } from "../../core/execution/deadline.ts";
import { turnDown } from "../../core/execution/turned-down.ts";
import { type Gate, PlaceGate, type Rate, RateGate } from "./gates.ts";
import { Waiter, WaitList } from "./wait-list.ts";

/** How many calls may wait for their turn, all together. */
export interface TurnLimits {
  readonly queue: number;
}

/** Rates and places by the rule they belong to: those of a rule are counted over all the operations it holds for. */
export interface GateRules {
  readonly rates: ReadonlyMap<string, Rate>;
  readonly places: ReadonlyMap<string, number>;
}

/** Calls that go through the same gates: in the order they came. */
export interface Lane {
  readonly rate: RateGate | undefined;
  readonly places: PlaceGate | undefined;
  readonly gates: readonly Gate[];
  readonly waiters: WaitList;
}

/**
 * Whose turn it is. A call starts when all its gates have room at the same time, so that nobody holds a place while waiting for a
 * rate, and no more start in a period than its rate allows. Of those that could start, the one that came first does.
 */
export class Turns {
  readonly #limits: TurnLimits;
  readonly #rates = new Map<string, RateGate>();
  readonly #places = new Map<string, PlaceGate>();
  readonly #lanes = new Map<string, Lane>();
  #waiting = 0;
  #lastOrder = 0;

  constructor(limits: TurnLimits) {
    this.#limits = limits;
  }

  /** Calls that wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Takes other rules; those who wait go on waiting, under the new ones. */
  change({ rates, places }: GateRules): void {
    for (const [owner, rate] of rates) {
      const gate = this.#rates.get(owner);
      if (gate === undefined) this.#rates.set(owner, new RateGate(rate));
      else if (gate.rate?.calls !== rate.calls || gate.rate.perMs !== rate.perMs) gate.change(rate);
    }
    for (const [owner, count] of places) {
      const gate = this.#places.get(owner);
      if (gate === undefined) this.#places.set(owner, new PlaceGate(count));
      else gate.places = count;
    }
    const gone = [...this.#rates].filter(([owner]) => !rates.has(owner));
    for (const [, gate] of gone) gate.change(undefined);
    for (const [owner, gate] of this.#places) if (!places.has(owner)) gate.places = Number.POSITIVE_INFINITY;
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
  async enter(lane: Lane, operationId: string, cancellation: Cancellation): Promise<number> {
    const now = monotonicNow();
    const ended = cancellation.check(now);
    if (ended !== undefined) throw ended;
    // A timer may be late, and whoever came before goes before.
    for (const gate of lane.gates) if (gate.lanes.size > 0) this.#startNext(gate);
    if (lane.waiters.first === undefined && isOpen(lane, now)) {
      take(lane, now);
      return 0;
    }
    if (this.#waiting >= this.#limits.queue) throw refused(operationId);
    await this.#wait(lane, cancellation);
    return monotonicNow() - now;
  }

  /** Gives a turn back. */
  leave({ places }: Lane): void {
    if (places === undefined) return;
    places.running--;
    this.#startNext(places);
  }

  /** Turns away everybody who waits; no timer is left. */
  close(error: CallError): void {
    const gates: readonly Gate[] = [...this.#rates.values(), ...this.#places.values()];
    for (const lane of new Set(gates.flatMap((gate) => [...gate.lanes]))) {
      for (let waiter = lane.waiters.first; waiter !== undefined; waiter = lane.waiters.first) {
        this.#remove(lane, waiter);
        waiter.settle(error);
      }
    }
    for (const gate of this.#rates.values()) gate.close();
  }

  #wait(lane: Lane, cancellation: Cancellation): Promise<void> {
    return new Promise((resolve, reject) => {
      let forget = (): void => {};
      const waiter = new Waiter(++this.#lastOrder, (error) => {
        forget();
        if (error === undefined) resolve();
        else reject(error);
      });
      lane.waiters.add(waiter);
      this.#waiting++;
      for (const gate of lane.gates) gate.lanes.add(lane);
      this.#wakeLater(lane.rate, monotonicNow());
      forget = whenEnded(cancellation, (error) => {
        this.#remove(lane, waiter);
        waiter.settle(error);
        // Others of the same gates may have waited behind this one alone.
        for (const gate of lane.gates) this.#startNext(gate);
      });
    });
  }

  #remove(lane: Lane, waiter: Waiter): void {
    if (!lane.waiters.remove(waiter)) return;
    this.#waiting--;
    if (lane.waiters.first !== undefined) return;
    for (const gate of lane.gates) gate.lanes.delete(lane);
    this.#wakeLater(lane.rate, monotonicNow());
  }

  /** Starts whoever can, the first first. */
  #startNext(gate: Gate): void {
    const now = monotonicNow();
    const touched = new Set<RateGate | undefined>();
    for (;;) {
      const next = firstOf(gate, now);
      if (next === undefined) break;
      const { lane, waiter } = next;
      this.#remove(lane, waiter);
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
    if (waiter !== undefined && !(first !== undefined && first.waiter.order < waiter.order))
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

function refused(operationId: string): CallError {
  const message = `As many calls wait for their turn as may; "${operationId}" was not made. Try again later.`;
  const error = new CallError("RESOURCE_EXHAUSTED", message, {
    details: { retryAfterMs: 1_000 },
    stack: false,
  });
  return turnDown(error, operationId);
}
