import { joinPointer, parsePointer } from "../../core/json/json-pointer.ts";
import { isObject } from "../../core/schema/json-schema.ts";
import type { DataValidator } from "./data-validator.ts";
import { chooseDrops } from "./droppable-properties.ts";
import { estimateTokens, isWithinTokens } from "./estimate-tokens.ts";
import { FLAG, type PlacedCut, type Shortened, type ShortenPlan, shortenData } from "./shorten-data.ts";

/** How large the outcome may be, as JSON. */
export interface SizeLimits {
  readonly characters: number;
  readonly tokens: number;
}

type Level = "items" | "characters";
type Attempt = (known: Known) => Shortened | undefined;

/** What a schema was found to insist on, by place. */
interface Known {
  /** The least that must stay of arrays and strings. */
  readonly floors: Map<string, number>;
  /** Properties that must stay. */
  readonly required: Set<string>;
}

const ANY = Number.POSITIVE_INFINITY;

/** What strings are shortened to, before arrays and properties have to give way too. */
const SENTENCE = 80;
const WORD = 16;

/** Rounds in which one attempt may learn from a schema what has to stay. */
const MAX_ROUNDS = 12;

/** Looks for a cut that fits and that a schema accepts: from what readers miss least to what they miss most. */
export class CutSearch {
  readonly #value: unknown;
  readonly #limits: SizeLimits;
  readonly #validator: DataValidator | undefined;
  readonly #isFlagged: boolean;

  constructor(value: unknown, limits: SizeLimits, validator: DataValidator | undefined) {
    this.#value = value;
    this.#limits = limits;
    this.#validator = validator?.isMeaningful ? validator : undefined;
    this.#isFlagged = this.#mayFlag();
  }

  find(): Shortened | undefined {
    for (const attempt of this.#attempts()) {
      const found = this.#learn(attempt);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #attempts(): Attempt[] {
    const both = (items: number, characters: number): Attempt => {
      return (known) => this.#both(items, characters, this.#plan(known));
    };
    const dropping = (items: number, characters: number): Attempt => {
      return (known) => this.#dropping(items, characters, known);
    };
    return [
      (known) => this.#widest("items", 1, this.#plan(known)),
      (known) => this.#widest("characters", SENTENCE, this.#plan(known)),
      both(1, SENTENCE),
      both(0, SENTENCE),
      both(1, WORD),
      both(0, WORD),
      ...(this.#validator === undefined ? [] : [dropping(1, SENTENCE), dropping(0, WORD)]),
      both(0, 1),
    ];
  }

  /** Repeats an attempt, each time keeping more of what the schema complained about. */
  #learn(attempt: Attempt): Shortened | undefined {
    const known: Known = { floors: new Map(), required: new Set() };
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const candidate = attempt(known);
      if (candidate === undefined || candidate.cuts.length === 0) return undefined;
      if (this.#validator === undefined || this.#validator.accepts(candidate.data)) return candidate;
      if (this.#validator.isExhausted) return undefined;
      const complaints = this.#validator.complaints(candidate.data);
      for (const cut of blamedFor(complaints, candidate.cuts, this.#value)) keepMore(known, cut);
    }
    return undefined;
  }

  /** Shortens arrays and strings, then gives the strings what room is left. */
  #both(items: number, characters: number, plan: ShortenPlan): Shortened | undefined {
    const level = this.#level("items", items, { ...plan, characters });
    if (level === undefined) return undefined;
    return this.#widest("characters", characters, { ...plan, items: level });
  }

  #dropping(items: number, characters: number, known: Known): Shortened | undefined {
    const plan: ShortenPlan = { ...this.#plan(known), items, characters };
    const base = shortenData(this.#value, plan, ANY);
    if (base === undefined) return undefined;
    const isKept = (place: string): boolean =>
      known.required.has(place) || (this.#isFlagged && place === `/${FLAG}`);
    const dropped = chooseDrops(base.data, this.#charactersFor(base.data), isKept);
    return dropped && this.#both(items, characters, { ...plan, dropped });
  }

  /** The limit on characters, lowered to what the limit on tokens probably leaves of it. */
  #charactersFor(data: unknown): number {
    const { characters, tokens } = this.#limits;
    if (tokens === ANY) return characters;
    const json = JSON.stringify(data);
    return Math.min(characters, Math.floor((json.length * tokens * 0.9) / Math.max(1, estimateTokens(json))));
  }

  #widest(level: Level, least: number, plan: ShortenPlan): Shortened | undefined {
    const found = this.#level(level, least, plan);
    return found === undefined ? undefined : this.#fitting({ ...plan, [level]: found });
  }

  /** The highest level that was seen to fit, by doubling and halving; undefined when not even the least does. */
  #level(level: Level, least: number, plan: ShortenPlan): number | undefined {
    const cutAt = (at: number): Shortened | undefined => this.#fitting({ ...plan, [level]: at });
    let good = least;
    let bad = least;
    for (let cut = cutAt(bad); cut !== undefined; cut = cutAt(bad)) {
      if (cut.cuts.every(({ kind }) => kind !== level)) return ANY;
      good = bad;
      bad = Math.max(1, bad * 2);
    }
    if (bad === least) return undefined;
    while (bad - good > 1) {
      const middle = Math.floor((good + bad) / 2);
      if (cutAt(middle) === undefined) bad = middle;
      else good = middle;
    }
    return good;
  }

  #fitting(plan: ShortenPlan): Shortened | undefined {
    const { characters, tokens } = this.#limits;
    const candidate = shortenData(this.#value, plan, characters);
    if (candidate === undefined || tokens === ANY) return candidate;
    return isWithinTokens(JSON.stringify(candidate.data), tokens) ? candidate : undefined;
  }

  #plan({ floors }: Known): ShortenPlan {
    return { items: ANY, characters: ANY, floors, dropped: new Set(), isFlagged: this.#isFlagged };
  }

  /** Data that passes without the flag and fails with it goes without. */
  #mayFlag(): boolean {
    const validator = this.#validator;
    if (!validator?.declaresFlag || !isObject(this.#value)) return false;
    return validator.accepts({ ...this.#value, [FLAG]: true }) || !validator.accepts(this.#value);
  }
}

/** The cuts a schema complains about; failing that those within what it complains about, and failing that all. */
function blamedFor(
  complaints: readonly string[],
  cuts: readonly PlacedCut[],
  value: unknown,
): readonly PlacedCut[] {
  const places = new Set(complaints.map((pointer) => placeOf(pointer, value)));
  const exact = cuts.filter(({ place }) => places.has(place));
  if (exact.length > 0) return exact;
  const within = cuts.filter(({ pointer }) => complaints.some((outer) => pointer.startsWith(`${outer}/`)));
  return within.length > 0 ? within : cuts;
}

function placeOf(pointer: string, value: unknown): string {
  let at = value;
  let place = "";
  for (const key of parsePointer(pointer)) {
    place = joinPointer(place, Array.isArray(at) ? "*" : key);
    const isThere = typeof at === "object" && at !== null && Object.hasOwn(at, key);
    at = isThere ? (at as Record<string, unknown>)[key] : undefined;
  }
  return place;
}

/** Half as many items again next time; a string that may not be cut there is not tried again, nor is a property. */
function keepMore({ floors, required }: Known, { place, kind, kept }: PlacedCut): void {
  if (kind === "property") {
    required.add(place);
    return;
  }
  const floor = kind === "items" ? kept + Math.max(1, Math.floor(kept / 2)) : ANY;
  floors.set(place, Math.max(floor, floors.get(place) ?? 0));
}
