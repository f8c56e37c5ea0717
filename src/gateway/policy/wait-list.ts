import type { CallError } from "../../core/errors/errors.ts";

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
