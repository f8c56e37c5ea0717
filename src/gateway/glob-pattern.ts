/** The most characters of one pattern. */
export const MOST_PATTERN_CHARACTERS = 1_024;

type Test = (character: string) => boolean;

/** A place in a pattern: a character to read and where that leads, or further places that are reached without reading. */
type Step =
  | { readonly accepts: Test; readonly next: number }
  | { readonly accepts?: never; readonly ways: number[] };

type Places = ReadonlySet<number>;

const ANY: Test = () => true;
const WITHIN: Test = (character) => character !== "/";

/**
 * A pattern made ready: `*` any characters, `?` one, `{a,b}` either. For paths `*` and `?` stay within a name and `**` does not.
 * A text is followed in all places of the pattern at once, so that no pattern takes more than its own length for each character.
 */
export class GlobPattern {
  readonly #steps: Step[] = [];
  readonly #characters: readonly string[];
  readonly #forPaths: boolean;
  readonly #one: Test;
  readonly #start: Places;
  readonly #end: number;
  #at = 0;

  constructor(pattern: string, forPaths: boolean) {
    if (pattern.length > MOST_PATTERN_CHARACTERS) {
      throw new RangeError(`A pattern has more than ${MOST_PATTERN_CHARACTERS} characters.`);
    }
    this.#characters = [...pattern];
    this.#forPaths = forPaths;
    this.#one = forPaths ? WITHIN : ANY;
    const first = this.#fork();
    this.#end = this.#readSequence(first, false);
    this.#start = this.#reach([first]);
  }

  matches(text: string): boolean {
    return this.#walk(text).has(this.#end);
  }

  /** Tells whether a longer text that begins like this one can still match. */
  mayBegin(text: string): boolean {
    return this.#walk(text).size > 0;
  }

  #walk(text: string): Places {
    let places = this.#start;
    for (const character of text) {
      const next: number[] = [];
      for (const place of places) {
        const step = this.#steps[place] as Step;
        if (step.accepts?.(character)) next.push(step.next);
      }
      if (next.length === 0) return new Set();
      places = this.#reach(next);
    }
    return places;
  }

  #reach(from: readonly number[]): Places {
    const reached = new Set<number>();
    const open = [...from];
    for (let place = open.pop(); place !== undefined; place = open.pop()) {
      if (reached.has(place)) continue;
      reached.add(place);
      const step = this.#steps[place] as Step;
      if (step.accepts === undefined) open.push(...step.ways);
    }
    return reached;
  }

  /** Reads up to the end, or in braces up to what ends an alternative; returns the place after it. */
  #readSequence(from: number, inBraces: boolean): number {
    let place = from;
    while (this.#at < this.#characters.length) {
      const character = this.#characters[this.#at] as string;
      if (inBraces && (character === "," || character === "}")) return place;
      this.#at += 1;
      if (character === "*") place = this.#readStar(place);
      else if (character === "?") place = this.#read(place, this.#one);
      else if (character === "{" && this.#closes(this.#at)) place = this.#readBraces(place);
      else place = this.#read(place, (other) => other === character);
    }
    return place;
  }

  #readStar(from: number): number {
    const isDouble = this.#characters[this.#at] === "*";
    while (this.#characters[this.#at] === "*") this.#at += 1;
    if (!this.#forPaths || !isDouble) return this.#repeat(from, this.#one);
    const end = this.#repeat(from, ANY);
    if (this.#characters[this.#at] !== "/") return end;
    // "**/" stands for no folder at all as well.
    this.#at += 1;
    const after = this.#read(end, (character) => character === "/");
    this.#link(from, after);
    return after;
  }

  #readBraces(from: number): number {
    const end = this.#fork();
    for (let isOpen = true; isOpen; this.#at += 1) {
      const start = this.#fork();
      this.#link(from, start);
      this.#link(this.#readSequence(start, true), end);
      isOpen = this.#characters[this.#at] === ",";
    }
    return end;
  }

  /** Tells whether a brace that opened before `at` is closed further on; one that is not stands for itself. */
  #closes(at: number): boolean {
    let depth = 1;
    for (let i = at; i < this.#characters.length && depth > 0; i++) {
      if (this.#characters[i] === "{") depth += 1;
      if (this.#characters[i] === "}") depth -= 1;
    }
    return depth === 0;
  }

  #repeat(from: number, accepts: Test): number {
    const loop = this.#fork();
    this.#link(from, loop);
    this.#link(loop, this.#add({ accepts, next: loop }));
    const end = this.#fork();
    this.#link(loop, end);
    return end;
  }

  #read(from: number, accepts: Test): number {
    const end = this.#fork();
    this.#link(from, this.#add({ accepts, next: end }));
    return end;
  }

  #fork(): number {
    return this.#add({ ways: [] });
  }

  #link(from: number, to: number): void {
    const step = this.#steps[from] as Step;
    if (step.accepts === undefined) step.ways.push(to);
  }

  #add(step: Step): number {
    return this.#steps.push(step) - 1;
  }
}
