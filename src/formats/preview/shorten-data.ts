import { joinPointer } from "../../core/json/json-pointer.ts";
import { setOwn } from "../../core/json/json-value.ts";
import { graphemeBoundaries } from "./graphemes.ts";

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

const MARKER = "…";

/** Copies data as a plan says; undefined as soon as its JSON is longer than `maxCharacters`. */
export function shortenData(value: unknown, plan: ShortenPlan, maxCharacters: number): Shortened | undefined {
  const copying = new Copying(plan, maxCharacters);
  const data = copying.copy(value, "", "");
  return copying.isOver ? undefined : { data, cuts: copying.cuts };
}

class Copying {
  readonly cuts: PlacedCut[] = [];
  readonly #plan: ShortenPlan;
  #left: number;

  constructor(plan: ShortenPlan, maxCharacters: number) {
    this.#plan = plan;
    this.#left = maxCharacters;
  }

  get isOver(): boolean {
    return this.#left < 0;
  }

  copy(value: unknown, pointer: string, place: string): unknown {
    if (typeof value === "string") return this.#text(value, pointer, place);
    if (Array.isArray(value)) return this.#items(value, pointer, place);
    if (typeof value === "object" && value !== null) {
      return this.#members(value as Record<string, unknown>, pointer, place);
    }
    this.#left -= String(value).length;
    return value;
  }

  #text(text: string, pointer: string, place: string): string {
    const most = Math.max(this.#plan.characters, this.#floor(place));
    const kept = text.length > most ? graphemeBoundaries(text, most).atOrBefore(most - 1) : text.length;
    // The least a text of this length takes; a long one need not be written to be found too long.
    if (kept > this.#left) {
      this.#left = -1;
      return "";
    }
    const result = kept < text.length ? text.slice(0, kept) + MARKER : text;
    this.#left -= JSON.stringify(result).length;
    if (kept < text.length) this.cuts.push({ pointer, place, kind: "characters", kept, total: text.length });
    return result;
  }

  #items(items: readonly unknown[], pointer: string, place: string): unknown[] {
    const kept = Math.min(items.length, Math.max(this.#plan.items, this.#floor(place)));
    const result: unknown[] = [];
    this.#left -= 2 + Math.max(0, kept - 1);
    const itemPlace = joinPointer(place, "*");
    for (let i = 0; i < kept && !this.isOver; i++) {
      result.push(this.copy(items[i], joinPointer(pointer, i), itemPlace));
    }
    if (kept < items.length) this.cuts.push({ pointer, place, kind: "items", kept, total: items.length });
    return result;
  }

  #members(source: Record<string, unknown>, pointer: string, place: string): Record<string, unknown> {
    const result: Record<string, unknown> = {};
    const isFlagged = pointer === "" && this.#plan.isFlagged;
    let written = 0;
    this.#left -= 2;
    for (const key of isFlagged && !Object.hasOwn(source, FLAG)
      ? [...Object.keys(source), FLAG]
      : Object.keys(source)) {
      if (this.isOver) break;
      const member = isFlagged && key === FLAG ? true : source[key];
      if (member === undefined) continue;
      const at = joinPointer(pointer, key);
      const memberPlace = joinPointer(place, key);
      if (this.#plan.dropped.has(at)) {
        this.cuts.push({ pointer: at, place: memberPlace, kind: "property", kept: 0, total: 1 });
        continue;
      }
      this.#left -= JSON.stringify(key).length + (written++ > 0 ? 2 : 1);
      setOwn(result, key, this.copy(member, at, memberPlace));
    }
    return result;
  }

  #floor(place: string): number {
    return this.#plan.floors.get(place) ?? 0;
  }
}
