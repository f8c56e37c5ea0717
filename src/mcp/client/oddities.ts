/** How many kinds of oddities are told of; more of them are only counted. */
const MAX_KINDS = 32;

/** Counts what a server does that nobody understands, and tells of each kind once. */
export class Oddities {
  readonly #warn: (message: string) => void;
  readonly #kinds = new Set<string>();
  #count = 0;

  constructor(warn: (message: string) => void) {
    this.#warn = warn;
  }

  get count(): number {
    return this.#count;
  }

  add(message: string): void {
    this.#count += 1;
    const kind = kindOf(message);
    if (this.#kinds.size >= MAX_KINDS || this.#kinds.has(kind)) return;
    this.#kinds.add(kind);
    this.#warn(message);
  }
}

/** What is ours of a message: the words before the colon after which the server is quoted, whatever the numbers. */
function kindOf(message: string): string {
  const [front = ""] = message.slice(0, 300).split(/[:.]/, 1);
  return front.replace(/\d+/g, "0");
}
