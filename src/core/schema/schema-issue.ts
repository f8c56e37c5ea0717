/** One way a value misses its schema. */
export interface SchemaIssue {
  /** JSON pointer into the value; `""` is the value itself. */
  readonly pointer: string;
  readonly expected: string;
  readonly found: string;
}

/** What normalising changed, each change named by its JSON pointer. */
export interface NormalizationReport {
  readonly stripped: readonly string[];
  readonly defaulted: readonly string[];
  readonly converted: readonly string[];
  /** How many further changes were made and not listed. */
  readonly omitted?: number;
}
