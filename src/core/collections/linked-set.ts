/** What can be in a linked set: it keeps its own neighbours, and is in one set at a time. */
export abstract class Linked {
  /** For the set alone. */
  before: Linked | undefined;
  /** For the set alone. */
  after: Linked | undefined;
}

/**
 * A set whose members know their neighbours: adding and removing are a few assignments, where a `Set` hashes.
 *
 * What comes and goes with every call is held in one of these, or in a `Map` whose values are emptied when they leave. A `Set` and a `Map` move to
 * another table now and then, and each table knows the next: once one is old, all that was in those after it stays until the next
 * full collection, long after it was deleted.
 */
export class LinkedSet<T extends Linked> {
  readonly #ends = new (class extends Linked {})();
  #size = 0;

  constructor() {
    this.#ends.before = this.#ends;
    this.#ends.after = this.#ends;
  }

  get size(): number {
    return this.#size;
  }

  add(member: T): void {
    const last = this.#ends.before as Linked;
    member.before = last;
    member.after = this.#ends;
    last.after = member;
    this.#ends.before = member;
    this.#size++;
  }

  /** Tells whether it was there: in this set, or by mistake in another. */
  delete(member: T): boolean {
    const { before, after } = member;
    if (before === undefined || after === undefined) return false;
    before.after = after;
    after.before = before;
    member.before = undefined;
    member.after = undefined;
    this.#size--;
    return true;
  }

  /** The members there are now, in the order they came. */
  toArray(): T[] {
    const members: T[] = [];
    for (let at = this.#ends.after; at !== this.#ends; at = at?.after) members.push(at as T);
    return members;
  }
}
