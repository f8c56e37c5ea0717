import { isPlainObject } from "../../core/json/json-value.ts";
import { CutSearch } from "./cut-search.ts";
import { PREVIEW_CHARACTERS } from "./cut-text.ts";
import { type DataSchema, DataValidator } from "./data-validator.ts";
import { isWithinTokens } from "./estimate-tokens.ts";
import { measureJson } from "./measure-json.ts";
import { readLimit } from "./read-limit.ts";
import { type DataCut, FLAG } from "./shorten-data.ts";

/** Bounds on the work of `cutData`. */
export const CUT_DATA_LIMITS = {
  /** Nesting beyond which data is left whole. */
  depth: 500,
  /** Length as JSON beyond which data is left whole: objects that share parts may stand for any amount of text. */
  characters: 67_108_864,
  /** Times a schema is asked about a candidate. */
  schemaChecks: 64,
} as const;

/** How much of some data may stay, and what it has to remain. */
export interface CutDataOptions {
  /** What the cut data must still match; without it only arrays and strings are shortened. */
  readonly schema?: DataSchema | undefined;
  /** Length of the cut data as compact JSON, in UTF-16 units. @default 2_000 */
  readonly maxCharacters?: number | undefined;
  /** Estimated tokens of that JSON. @default no limit */
  readonly maxTokens?: number | undefined;
}

/** Data within its limits, or whole where no valid cut of it is. */
export interface CutData<T = unknown> {
  readonly data: T;
  readonly truncated: boolean;
  readonly cuts: readonly DataCut[];
}

/**
 * Shortens structured data so that it still matches its schema: arrays from the end, then strings, then by leaving out
 * optional properties. Sets `truncated` where the schema declares it. Data that fits, or of which no valid cut fits,
 * comes back as it is; what JSON cannot hold is refused with a `TypeError` that names its pointer.
 */
export function cutData<T>(value: T, options: CutDataOptions = {}): CutData<T> {
  const characters = readLimit("maxCharacters", options.maxCharacters, PREVIEW_CHARACTERS);
  const tokens = readLimit("maxTokens", options.maxTokens, Number.POSITIVE_INFINITY);
  const whole: CutData<T> = { data: value, truncated: false, cuts: [] };
  const measure = measureJson(value);
  if (measure.depth > CUT_DATA_LIMITS.depth || measure.characters > CUT_DATA_LIMITS.characters) return whole;
  if (measure.characters <= characters && isWithinTokens(tokensOf(value, tokens), tokens)) return whole;
  const validator =
    options.schema === undefined
      ? undefined
      : new DataValidator(options.schema, CUT_DATA_LIMITS.schemaChecks);
  const found = new CutSearch(value, { characters, tokens }, validator).find();
  if (found === undefined) return whole;
  const cuts = found.cuts.map(({ pointer, kind, kept, total }): DataCut => ({ pointer, kind, kept, total }));
  return { data: found.data as T, truncated: true, cuts };
}

/** Says in the data that the reply shows less than there is, where the schema has a place for it. */
export function flagTruncated<T>(data: T, schema: DataSchema | undefined): T {
  if (schema === undefined || !isPlainObject(data)) return data;
  const validator = new DataValidator(schema, 1);
  const flagged = { ...data, [FLAG]: true };
  return validator.declaresFlag && validator.accepts(flagged) ? flagged : data;
}

/** The JSON whose tokens count; not written where nobody asks. */
function tokensOf(value: unknown, limit: number): string {
  return limit === Number.POSITIVE_INFINITY ? "" : JSON.stringify(value);
}
