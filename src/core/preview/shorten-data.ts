import { joinPointer } from "../json/json-pointer.ts";
import { setOwn } from "../json/json-value.ts";
import { graphemeBoundaries } from "../text/truncate-text.ts";
import { jsonLength, type PartMeasure } from "./measure-json.ts";

/** One thing that was shortened or left out. */
export interface DataCut {
  /** JSON pointer into the data. */
  readonly pointer: string;
  /** What `kept` and `total` count; a property is kept or not. */
  readonly kind: "items" | "characters" | "property";
  readonly kept: number;
  readonly total: number;
}

/** A cut with its place: the pointer with `*` for every index, the same for all items of an array. */
export interface PlacedCut extends DataCut {
  readonly place: string;
}

/** How far data is to be shortened. */
export interface ShortenPlan {
  /** Items of any array. */
  readonly items: number;
  /** UTF-16 units of any string, its marker included. */
  readonly characters: number;
  /** By place: the least that must stay of an array or a string. */
  readonly floors: ReadonlyMap<string, number>;
  /** Pointers of properties to leave out. */
  readonly dropped: ReadonlySet<string>;
  /** Sets `truncated` of the outermost object. */
  readonly isFlagged: boolean;
}

/** Data after shortening. */
export interface Shortened {
  readonly data: unknown;
  readonly cuts: readonly PlacedCut[];
}

/** The property that says of itself that data was cut. */
export const FLAG = "truncated";

/** Ends every string that was cut. */
export const CUT_MARKER = "…";

/** What shortening goes by. */
export interface ShortenLimits {
  /** Length of the outcome as JSON. */
  readonly maxCharacters: number;
  /** The measures of all arrays and objects in the data. */
  readonly parts: ReadonlyMap<object, PartMeasure>;
  /** How many more values may be looked at; nothing fits once they are used up. */
  readonly work: { left: number };
}

/** Copies data as a plan says; undefined as soon as its JSON is longer than the limit. */
export function shortenData(value: unknown, plan: ShortenPlan, limits: ShortenLimits): Shortened | undefined {
  const shortening = new Shortening(value, plan, { limits, isTrial: false });
  const data = shortening.visit(value, "", "");
  return shortening.isOver ? undefined : { data, cuts: shortening.cuts };
}

/** Tells which kinds of cuts a plan makes, without making them; undefined where the outcome is longer than the limit. */
export function tryShorten(
  value: unknown,
  plan: ShortenPlan,
  limits: ShortenLimits,
): Readonly<Record<"items" | "characters", boolean>> | undefined {
  const trial = new Shortening(value, plan, { limits, isTrial: true });
  trial.visit(value, "", "");
  return trial.isOver ? undefined : { items: trial.cutsItems, characters: trial.cutsCharacters };
}

/**
 * Goes through data as a plan says and counts down the characters that stay. What the plan does not touch is taken over as it is, so
 * that the work depends on what is cut and not on what is kept. A trial makes neither copies nor pointers.
 */
class Shortening {
  readonly cuts: PlacedCut[] = [];
  cutsItems = false;
  cutsCharacters = false;
  readonly #root: unknown;
  readonly #plan: ShortenPlan;
  readonly #limits: ShortenLimits;
  readonly #isTrial: boolean;
  readonly #needsPointers: boolean;
  readonly #needsPlaces: boolean;
  #left: number;

  constructor(
    root: unknown,
    plan: ShortenPlan,
    { limits, isTrial }: { readonly limits: ShortenLimits; readonly isTrial: boolean },
  ) {
    this.#root = root;
    this.#plan = plan;
    this.#limits = limits;
    this.#isTrial = isTrial;
    this.#needsPointers = !isTrial || plan.dropped.size > 0;
    this.#needsPlaces = !isTrial || plan.floors.size > 0;
    this.#left = limits.maxCharacters;
  }

  get isOver(): boolean {
    return this.#left < 0;
  }

  /** Gives the copy of a value, or anything in a trial. */
  visit(value: unknown, pointer: string, place: string): unknown {
    this.#look();
    if (typeof value === "string") return this.#text(value, pointer, place);
    if (typeof value === "object" && value !== null) {
      if (this.#takesOver(value)) return value;
      if (Array.isArray(value)) return this.#items(value, pointer, place);
      return this.#members(value as Record<string, unknown>, pointer, place);
    }
    this.#left -= String(value).length;
    return value;
  }

  #look(): void {
    if (--this.#limits.work.left < 0) this.#left = -1;
  }

  /** Counts a part that the plan leaves as it is; false for one that has to be looked at. */
  #takesOver(value: object): boolean {
    const { items, characters, dropped } = this.#plan;
    if (dropped.size > 0 || this.#isFlagged(value)) return false;
    const part = this.#limits.parts.get(value);
    if (part === undefined || !part.isComplete || part.items > items || part.text > characters) return false;
    this.#left -= part.characters;
    return true;
  }

  #isFlagged(value: object): boolean {
    return this.#plan.isFlagged && value === this.#root;
  }

  #text(text: string, pointer: string, place: string): string {
    const most = Math.max(this.#plan.characters, this.#floor(place));
    const kept = text.length > most ? graphemeBoundaries(text, most).atOrBefore(most - 1) : text.length;
    // The least a text of this length takes; a long one need not be written to be found too long.
    if (kept > this.#left) {
      this.#left = -1;
      return "";
    }
    const result = kept < text.length ? text.slice(0, kept) + CUT_MARKER : text;
    this.#left -= jsonLength(result);
    if (kept < text.length) {
      this.cutsCharacters = true;
      this.#note({ pointer, place, kind: "characters", kept, total: text.length });
    }
    return result;
  }

  #items(items: readonly unknown[], pointer: string, place: string): unknown[] {
    const kept = Math.min(items.length, Math.max(this.#plan.items, this.#floor(place)));
    const result: unknown[] = [];
    this.#left -= 2 + Math.max(0, kept - 1);
    const itemPlace = this.#needsPlaces ? joinPointer(place, "*") : "";
    for (let i = 0; i < kept && !this.isOver; i++) {
      const item = this.visit(items[i], this.#needsPointers ? joinPointer(pointer, i) : "", itemPlace);
      if (!this.#isTrial) result.push(item);
    }
    if (kept < items.length) {
      this.cutsItems = true;
      this.#note({ pointer, place, kind: "items", kept, total: items.length });
    }
    return result;
  }

  #members(source: Record<string, unknown>, pointer: string, place: string): Record<string, unknown> {
    const result: Record<string, unknown> = {};
    const isFlagged = this.#isFlagged(source);
    let written = 0;
    this.#left -= 2;
    for (const key of isFlagged && !Object.hasOwn(source, FLAG)
      ? [...Object.keys(source), FLAG]
      : Object.keys(source)) {
      if (this.isOver) break;
      const isFlag = isFlagged && key === FLAG;
      const member = isFlag ? true : source[key];
      if (member === undefined) continue;
      const at = this.#needsPointers ? joinPointer(pointer, key) : "";
      const memberPlace = this.#needsPlaces ? joinPointer(place, key) : "";
      if (this.#plan.dropped.has(at)) {
        this.#look();
        this.#note({ pointer: at, place: memberPlace, kind: "property", kept: 0, total: 1 });
        continue;
      }
      this.#left -= jsonLength(key) + (written++ > 0 ? 2 : 1);
      // One character less than `false`, which would make data fit of which nothing is cut.
      if (isFlag && source[key] === false) this.#left -= 1;
      const copy = this.visit(member, at, memberPlace);
      if (!this.#isTrial) setOwn(result, key, copy);
    }
    return result;
  }

  #note(cut: PlacedCut): void {
    if (!this.#isTrial) this.cuts.push(cut);
  }

  #floor(place: string): number {
    return this.#needsPlaces ? (this.#plan.floors.get(place) ?? 0) : 0;
  }
}

interface Property {
  readonly pointer: string;
  /** Length of the property in JSON with its name, and without the comma that may go too. */
  readonly characters: number;
}

/**
 * Chooses properties to leave out so that JSON gets short enough: the smallest that suffices alone, else the largest
 * ones together; undefined where all of them would not do. `isKept` is asked about places, with `*` for indices.
 */
export function chooseDrops(
  data: unknown,
  maxCharacters: number,
  isKept: (place: string) => boolean,
): ReadonlySet<string> | undefined {
  const properties: Property[] = [];
  /** Gathers the properties that may go, and gives the length of all as JSON. */
  const collect = (value: unknown, pointer: string, place: string): number => {
    if (typeof value === "string") return jsonLength(value);
    if (typeof value !== "object" || value === null) return String(value).length;
    const isArray = Array.isArray(value);
    let characters = 2;
    for (const [key, member] of Object.entries(value)) {
      const at = joinPointer(pointer, key);
      const memberPlace = joinPointer(place, isArray ? "*" : key);
      const own = collect(member, at, memberPlace) + 1 + (isArray ? 0 : jsonLength(key) + 1);
      if (!isArray && !isKept(memberPlace)) properties.push({ pointer: at, characters: own - 1 });
      characters += own;
    }
    return characters - (characters > 2 ? 1 : 0);
  };
  const characters = collect(data, "", "");
  const excess = characters - maxCharacters;
  if (excess <= 0) return new Set();
  properties.sort((a, b) => b.characters - a.characters);
  const alone = properties.findLast((property) => property.characters >= excess);
  return alone === undefined ? chooseSeveral(properties, excess) : new Set([alone.pointer]);
}

function chooseSeveral(properties: readonly Property[], excess: number): ReadonlySet<string> | undefined {
  const chosen = new Set<string>();
  const touched = new Set<string>();
  let left = excess;
  for (const { pointer, characters } of properties) {
    if (left <= 0) break;
    if (isWithin(pointer, chosen)) continue;
    const parent = pointer.slice(0, pointer.lastIndexOf("/"));
    // An object has one comma less than properties.
    left -= characters + (touched.has(parent) ? 1 : 0);
    chosen.add(pointer);
    touched.add(parent);
  }
  return left <= 0 ? chosen : undefined;
}

/** A property within one that goes already frees nothing more. */
function isWithin(pointer: string, chosen: ReadonlySet<string>): boolean {
  for (let end = pointer.lastIndexOf("/"); end > 0; end = pointer.lastIndexOf("/", end - 1)) {
    if (chosen.has(pointer.slice(0, end))) return true;
  }
  return false;
}
