/** Room for one generation: slots of two words, half of them in use at most. */
interface Generation {
  readonly words: Uint32Array;
  size: number;
}

/**
 * Remembers the last ids it was given, at least `capacity` of them and at most twice as many.
 *
 * What is kept of an id is a fingerprint of 64 bits under a secret key: the ids themselves would be most of what a busy service
 * holds in memory. One in some 10^14 new ids is taken for an old one.
 */
export class RecentIds {
  readonly #capacity: number;
  readonly #mask: number;
  readonly #keys = crypto.getRandomValues(new Uint32Array(2));
  #recent: Generation;
  #older: Generation;
  /** The fingerprint made last. */
  #first = 0;
  #second = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
    const slots = 2 ** Math.ceil(Math.log2(2 * capacity));
    this.#mask = slots - 1;
    // Made when first needed: most who make one never come to that.
    this.#recent = { words: new Uint32Array(0), size: 0 };
    this.#older = this.#recent;
  }

  has(id: string): boolean {
    this.#takeFingerprint(id);
    return this.#isIn(this.#recent) || this.#isIn(this.#older);
  }

  /** Tells whether it is new; what is here already takes no more room, or one id said often would drive all others out. */
  add(id: string): boolean {
    this.#takeFingerprint(id);
    if (this.#isIn(this.#recent)) return false;
    const isNew = !this.#isIn(this.#older);
    if (this.#recent.words.length === 0 || this.#recent.size >= this.#capacity) this.#turn();
    const { words } = this.#recent;
    const slot = this.#slotIn(words);
    words[slot] = this.#first;
    words[slot + 1] = this.#second;
    this.#recent.size++;
    return isNew;
  }

  /** The oldest generation gives its room to a new one. */
  #turn(): void {
    const freed = this.#older;
    this.#older = this.#recent;
    const isMade = freed !== this.#recent && freed.words.length > 0;
    this.#recent = { words: isMade ? freed.words.fill(0) : new Uint32Array(2 * (this.#mask + 1)), size: 0 };
  }

  #isIn({ words }: Generation): boolean {
    return words.length > 0 && words[this.#slotIn(words)] !== 0;
  }

  /** Where the fingerprint is, or would be put. */
  #slotIn(words: Uint32Array): number {
    let slot = this.#second & this.#mask;
    while (words[2 * slot] !== 0) {
      if (words[2 * slot] === this.#first && words[2 * slot + 1] === this.#second) break;
      slot = (slot + 1) & this.#mask;
    }
    return 2 * slot;
  }

  #takeFingerprint(id: string): void {
    let first = this.#keys[0] as number;
    let second = this.#keys[1] as number;
    for (let at = 0; at < id.length; at++) {
      const code = id.charCodeAt(at);
      first = Math.imul(first ^ code, 0x01000193) ^ (first >>> 13);
      second = Math.imul(second ^ code, 0x85ebca6b) ^ (second >>> 16);
    }
    // Zero marks an empty slot.
    this.#first = first >>> 0 || 1;
    this.#second = (second ^ (second >>> 15)) >>> 0;
  }
}
