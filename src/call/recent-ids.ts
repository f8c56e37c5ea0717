/** Remembers the last ids it was given, at least `capacity` of them and at most twice as many. */
export class RecentIds {
  readonly #capacity: number;
  #recent = new Set<string>();
  #older = new Set<string>();

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  has(id: string): boolean {
    return this.#recent.has(id) || this.#older.has(id);
  }

  add(id: string): void {
    if (this.#recent.size >= this.#capacity) {
      this.#older = this.#recent;
      this.#recent = new Set();
    }
    this.#recent.add(id);
  }
}
