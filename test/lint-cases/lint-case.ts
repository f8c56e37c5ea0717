/** What the rule can say, by message. */
export type LintMessage = "deprecated" | "reExport" | "rawResult";

/** A piece of code, and what each linter says about it. */
export interface LintCase {
  readonly name: string;
  readonly code: string;
  /** @default "js", an ES module */
  readonly language?: "js" | "cjs" | "ts";
  /** What ESLint and oxlint report, in any order; ESLint reads no TypeScript here. @default nothing */
  readonly finds?: readonly LintMessage[];
  /** Whether the Biome plugin reports anything. */
  readonly biome: boolean;
  /** Whether the rule runs with the options of `CASE_OPTIONS`. @default false */
  readonly withOptions?: boolean;
}
