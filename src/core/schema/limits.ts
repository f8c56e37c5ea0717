/** Bounds on what a schema may ask for; every schema is held to them, local ones too. */
export interface SchemaLimits {
  /** Length of the schema written as JSON, in UTF-16 units. @default 4_194_304 */
  readonly schemaLength: number;
  /** Nesting of the schema document. @default 256 */
  readonly schemaDepth: number;
  /** Subschemas in one document, those of referenced documents included. @default 50_000 */
  readonly subschemas: number;
  /** Subschemas that apply to one and the same value without looking further into it. @default 10_000 */
  readonly expansion: number;
  /** Length of one `pattern`. @default 4_096 */
  readonly patternLength: number;
  /** Letters of all patterns of one document, each as often as counted repetitions have it written out. @default 20_000 */
  readonly patternSize: number;
  /** Nesting of a value that a schema looks into. @default 512 */
  readonly valueDepth: number;
  /**
   * Steps of work on one value, and `STEPS_PER_PART` more for each part of it: subschemas applied, references followed,
   * values compared, names and patterns tried. @default 2_000_000
   */
  readonly steps: number;
}

/** The limits in force unless others are given. */
export const SCHEMA_LIMITS: SchemaLimits = {
  schemaLength: 4_194_304,
  schemaDepth: 256,
  subschemas: 50_000,
  expansion: 10_000,
  patternLength: 4_096,
  patternSize: 20_000,
  valueDepth: 512,
  steps: 2_000_000,
};

/**
 * Steps of work that each part of a value adds to `steps`. A part is an item, a name, a value, or four characters of text, so
 * that time is bounded by a multiple of the value's size, while a schema with many alternatives still has room for them.
 */
export const STEPS_PER_PART = 8;

/** Violations reported for one value. */
export const MAX_ISSUES = 20;

/** Pointers kept in one normalisation report; the rest are counted. */
export const MAX_REPORTED_CHANGES = 1_000;

/**
 * Length of a text times the instructions of a pattern that needs the linear engine: the product bounds its time, to
 * about a second at worst. A usual pattern has 50 instructions, and may then be tried on 100,000 characters.
 */
export const MAX_PATTERN_WORK = 5_000_000;
