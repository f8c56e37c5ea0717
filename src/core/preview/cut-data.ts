import { isPlainObject } from "../json/json-value.ts";
import { safeLine } from "../text/safe-text.ts";
import { CutSearch, type TokenLimit } from "./cut-search.ts";
import { type DataSchema, DataValidator } from "./data-validator.ts";
import { measureParts } from "./measure-json.ts";
import { type DataCut, FLAG } from "./shorten-data.ts";

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
  const found = new CutSearch(value, bounds, measured, validator).find();
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
