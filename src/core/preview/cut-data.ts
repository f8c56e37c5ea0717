import { joinPointer, parsePointer } from "../json/json-pointer.ts";
import { isPlainObject } from "../json/json-value.ts";
import { isObject } from "../schema/json-schema.ts";
import { safeLine } from "../text/clean-text.ts";
import { type DataSchema, DataValidator } from "./data-validator.ts";
import { type MeasuredJson, measureParts } from "./measure-json.ts";
import {
  chooseDrops,
  type DataCut,
  FLAG,
  type PlacedCut,
  type Shortened,
  type ShortenLimits,
  type ShortenPlan,
  shortenData,
  tryShorten,
} from "./shorten-data.ts";

/** Bounds on the work of cutting data. */
export const CUT_DATA_LIMITS = {
  /** Nesting beyond which data is left whole. */
  depth: 500,
  /** Length as JSON beyond which data is left whole: objects that share parts may stand for any amount of text. */
  characters: 67_108_864,
  /** Times a schema is asked about a candidate. */
  schemaChecks: 64,
  /** Values that are looked at in the search for a cut, whatever the data. */
  values: 100_000,
  /** Times each value of the data may be looked at besides. */
  visits: 5,
} as const;

/** Data within its limits, or whole where no valid cut of it is. */
export interface CutData<T = unknown> {
  readonly data: T;
  readonly truncated: boolean;
  readonly cuts: readonly DataCut[];
}

/** How much of some data may stay, and what it has to remain. */
export interface CutToFitOptions {
  /** Length of the cut data as compact JSON, in UTF-16 units. */
  readonly maxCharacters: number;
  /** What the cut data must still match. @default anything */
  readonly schema?: DataSchema | undefined;
  /** Estimated tokens of that JSON. @default no limit */
  readonly tokens?: TokenLimit | undefined;
  /** Whether properties may be left out where no schema says which are required. @default false */
  readonly dropsProperties?: boolean | undefined;
}

/**
 * Shortens structured data so that it still matches its schema: arrays from the end, then strings, then by leaving out
 * optional properties. `truncated` becomes true where the data has it, or its schema declares it. Data that fits, or of which no
 * valid cut fits, comes back as it is; what JSON cannot hold is refused with a `TypeError` that names its pointer.
 */
export function cutToFit<T>(value: T, options: CutToFitOptions): CutData<T> {
  const { maxCharacters, schema, tokens, dropsProperties = false } = options;
  const whole: CutData<T> = { data: value, truncated: false, cuts: [] };
  const measured = measureParts(value);
  const { characters, depth } = measured;
  if (depth > CUT_DATA_LIMITS.depth || characters > CUT_DATA_LIMITS.characters) return whole;
  if (characters <= maxCharacters && (tokens?.isWithin(JSON.stringify(value)) ?? true)) return whole;
  const validator = DataValidator.of(schema, CUT_DATA_LIMITS.schemaChecks);
  const bounds = {
    characters: maxCharacters,
    tokens,
    dropsProperties: dropsProperties || validator !== undefined,
    values: CUT_DATA_LIMITS.values + CUT_DATA_LIMITS.visits * measured.values,
  };
  const found = new CutSearch(value, bounds, { parts: measured.parts, validator }).find();
  if (found === undefined) return whole;
  const cuts = found.cuts.map(({ pointer, kind, kept, total }): DataCut => ({ pointer, kind, kept, total }));
  return { data: found.data as T, truncated: true, cuts };
}

/** Says in the data that the reply shows less than there is, where the schema has a place for it. */
export function flagTruncated<T>(data: T, schema: DataSchema | undefined): T {
  if (!isPlainObject(data)) return data;
  const validator = DataValidator.of(schema, 1);
  if (!validator?.declaresFlag) return data;
  const flagged = { ...data, [FLAG]: true };
  return validator.accepts(flagged) ? flagged : data;
}

/** What a result says of its cuts to programs. */
export interface CutFacts {
  readonly cuts: readonly DataCut[];
  /** Cuts that are not listed. */
  readonly omittedCuts?: number;
}

/** Cuts that are listed for programs, and characters of the pointer of each; others are counted. */
const LISTED_CUTS = 100;
const POINTER_CHARACTERS = 500;

/** Lists cuts for programs, in a bounded number. */
export function toCutFacts(cuts: readonly DataCut[]): CutFacts {
  const listed: DataCut[] = [];
  for (const cut of cuts) {
    if (listed.length === LISTED_CUTS) break;
    if (cut.pointer.length <= POINTER_CHARACTERS) listed.push(cut);
  }
  const omittedCuts = cuts.length - listed.length;
  return { cuts: listed, ...(omittedCuts > 0 && { omittedCuts }) };
}

/** Cuts that are told to people. */
const TOLD_CUTS = 3;

/** Says in a few words what was cut, the largest arrays first: `/items shows 20 of 3,000 items`. */
export function describeCuts(cuts: readonly DataCut[]): string {
  const told: DataCut[] = [];
  for (const kind of ["items", "property", "characters"] as const) {
    if (told.length === TOLD_CUTS) break;
    const same = cuts.filter((cut) => cut.kind === kind).sort((a, b) => lossOf(b) - lossOf(a));
    told.push(...same.slice(0, TOLD_CUTS - told.length));
  }
  const more = cuts.length - told.length;
  const rest = more === 0 ? [] : [`${toNumber(more)} more ${more === 1 ? "cut" : "cuts"}`];
  return [...told.map(describeCut), ...rest].join(", ");
}

function lossOf({ kept, total }: DataCut): number {
  return total - kept;
}

function describeCut({ pointer, kind, kept, total }: DataCut): string {
  // Names in the data are the source's text.
  const what = pointer === "" ? "the data" : safeLine(pointer, 80);
  if (kind === "property") return `${what} is left out`;
  return `${what} shows ${toNumber(kept)} of ${toNumber(total)} ${kind}`;
}

function toNumber(count: number): string {
  return count.toLocaleString("en-US");
}

/** A bound on estimated tokens, by a function that knows how to estimate them. */
export interface TokenLimit {
  readonly most: number;
  estimate(text: string): number;
  /** Tells whether the estimate stays within `most`. */
  isWithin(text: string): boolean;
}

/** What a cut may be. */
export interface CutBounds {
  /** Length of the outcome as JSON. */
  readonly characters: number;
  /** Estimated tokens of that JSON. @default no limit */
  readonly tokens?: TokenLimit | undefined;
  /** Whether properties may be left out. */
  readonly dropsProperties: boolean;
  /** Values that may be looked at on the way. */
  readonly values: number;
}

type Level = "items" | "characters";
type Attempt = (known: Known) => Shortened | undefined;

/** What a schema was found to insist on, by place. */
class Known {
  /** The least that must stay of arrays and strings. */
  readonly floors: Map<string, number>;
  /** Properties that must stay. */
  readonly required: Set<string>;

  constructor(known?: Known) {
    this.floors = new Map(known?.floors);
    this.required = new Set(known?.required);
  }

  /** Half as many items again next time; a string that may not be cut there is not tried again, nor is a property. */
  keepMore({ place, kind, kept }: PlacedCut): void {
    if (kind === "property") {
      this.required.add(place);
      return;
    }
    const floor = kind === "items" ? kept + Math.max(1, Math.floor(kept / 2)) : ANY;
    this.floors.set(place, Math.max(floor, this.floors.get(place) ?? 0));
  }
}

const ANY = Number.POSITIVE_INFINITY;

/** What strings are shortened to, before arrays and properties have to give way too. */
const SENTENCE = 80;
const WORD = 16;

/** Rounds in which one attempt may learn from a schema what has to stay. */
const MAX_ROUNDS = 12;

/** Looks for a cut that fits and that a schema accepts: from what readers miss least to what they miss most. */
class CutSearch {
  readonly #value: unknown;
  readonly #bounds: CutBounds;
  readonly #validator: DataValidator | undefined;
  readonly #limits: ShortenLimits;
  /** What the schema named itself, which holds for every attempt. */
  readonly #named = new Known();
  readonly #isFlagged: boolean;

  constructor(
    value: unknown,
    bounds: CutBounds,
    { parts, validator }: Pick<MeasuredJson, "parts"> & { readonly validator: DataValidator | undefined },
  ) {
    this.#value = value;
    this.#bounds = bounds;
    this.#validator = validator;
    this.#limits = { maxCharacters: bounds.characters, parts, work: { left: bounds.values } };
    this.#isFlagged = isObject(value) && (hasFlag(value) || this.#mayAddFlag(value));
  }

  find(): Shortened | undefined {
    for (const attempt of this.#attempts()) {
      const found = this.#learn(attempt);
      if (found !== undefined || this.#limits.work.left < 0) return found;
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
      ...(this.#bounds.dropsProperties ? [dropping(1, SENTENCE), dropping(0, WORD)] : []),
      both(0, 1),
    ];
  }

  /** Repeats an attempt, each time keeping more of what the schema complained about. */
  #learn(attempt: Attempt): Shortened | undefined {
    const known = new Known(this.#named);
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const candidate = attempt(known);
      if (candidate === undefined || candidate.cuts.length === 0) return undefined;
      if (this.#validator === undefined || this.#validator.accepts(candidate.data)) return candidate;
      if (this.#validator.isExhausted) return undefined;
      const { cuts, isNamed } = blame(
        this.#validator.complaints(candidate.data),
        candidate.cuts,
        this.#value,
      );
      for (const cut of cuts) {
        known.keepMore(cut);
        // How many items are enough may depend on the rest.
        if (isNamed && cut.kind !== "items") this.#named.keepMore(cut);
      }
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
    const base = shortenData(this.#value, plan, { ...this.#limits, maxCharacters: ANY });
    if (base === undefined) return undefined;
    const isKept = (place: string): boolean =>
      known.required.has(place) || (this.#isFlagged && place === `/${FLAG}`);
    const dropped = chooseDrops(base.data, this.#charactersFor(base.data), isKept);
    return dropped && this.#both(items, characters, { ...plan, dropped });
  }

  /** The limit on characters, lowered to what the limit on tokens probably leaves of it. */
  #charactersFor(data: unknown): number {
    const { characters, tokens } = this.#bounds;
    if (tokens === undefined) return characters;
    const json = JSON.stringify(data);
    const likely = (json.length * tokens.most * 0.9) / Math.max(1, tokens.estimate(json));
    return Math.min(characters, Math.floor(likely));
  }

  #widest(level: Level, least: number, plan: ShortenPlan): Shortened | undefined {
    const found = this.#level(level, least, plan);
    return found === undefined ? undefined : this.#fitting({ ...plan, [level]: found });
  }

  /** The highest level that was seen to fit, by doubling and halving; undefined when not even the least does. */
  #level(level: Level, least: number, plan: ShortenPlan): number | undefined {
    const cutsAt = (at: number): boolean | undefined => this.#trial({ ...plan, [level]: at })?.[level];
    let good = least;
    let bad = least;
    for (let cuts = cutsAt(bad); cuts !== undefined; cuts = cutsAt(bad)) {
      if (!cuts) return ANY;
      good = bad;
      bad = Math.max(1, bad * 2);
    }
    if (bad === least) return undefined;
    while (bad - good > 1) {
      const middle = Math.floor((good + bad) / 2);
      if (cutsAt(middle) === undefined) bad = middle;
      else good = middle;
    }
    return good;
  }

  /** Which kinds of cuts a plan makes; undefined where its outcome does not fit. */
  #trial(plan: ShortenPlan): ReturnType<typeof tryShorten> {
    if (this.#bounds.tokens === undefined) return tryShorten(this.#value, plan, this.#limits);
    const cuts = this.#fitting(plan)?.cuts;
    const has = (level: Level): boolean => cuts?.some(({ kind }) => kind === level) ?? false;
    return cuts && { items: has("items"), characters: has("characters") };
  }

  #fitting(plan: ShortenPlan): Shortened | undefined {
    const { tokens } = this.#bounds;
    const candidate = shortenData(this.#value, plan, this.#limits);
    if (candidate === undefined || tokens === undefined) return candidate;
    return tokens.isWithin(JSON.stringify(candidate.data)) ? candidate : undefined;
  }

  #plan({ floors }: Known): ShortenPlan {
    return { items: ANY, characters: ANY, floors, dropped: new Set(), isFlagged: this.#isFlagged };
  }

  /** Data without the flag gets one where its schema declares it; data that passes without and fails with it goes without. */
  #mayAddFlag(value: Readonly<Record<string, unknown>>): boolean {
    const validator = this.#validator;
    const isTaken = Object.hasOwn(value, FLAG) && (value[FLAG] ?? undefined) !== undefined;
    if (isTaken || !validator?.declaresFlag) return false;
    return validator.accepts({ ...value, [FLAG]: true }) || !validator.accepts(value);
  }
}

/** Data that says of itself whether it was cut has to say the truth: it is cut with the flag, or not at all. */
function hasFlag(value: Readonly<Record<string, unknown>>): boolean {
  return Object.hasOwn(value, FLAG) && typeof value[FLAG] === "boolean";
}

/**
 * The cuts a schema complains about, which it named; failing that those within what it complains about, and failing that all, which
 * may be blamed for nothing.
 */
function blame(
  complaints: readonly string[],
  cuts: readonly PlacedCut[],
  value: unknown,
): { readonly cuts: readonly PlacedCut[]; readonly isNamed: boolean } {
  const places = new Set(complaints.map((pointer) => placeOf(pointer, value)));
  const exact = cuts.filter(({ place }) => places.has(place));
  if (exact.length > 0) return { cuts: exact, isNamed: true };
  const within = cuts.filter(({ pointer }) => complaints.some((outer) => pointer.startsWith(`${outer}/`)));
  return { cuts: within.length > 0 ? within : cuts, isNamed: false };
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
