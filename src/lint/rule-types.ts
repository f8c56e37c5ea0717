/** Any node of a syntax tree, as far as the linters' own types promise it. */
export interface SyntaxNode {
  readonly type: string;
}

/** What a linter hands to a rule for one file, as far as the rule uses it. */
export interface LintContext {
  readonly options: readonly unknown[];
  /** Asked for scopes, which not every language of ESLint has. */
  readonly sourceCode: object;
  report(finding: never): void;
}

/** A rule that ESLint and oxlint can load. */
export interface LintRule {
  readonly meta: {
    readonly type: "problem" | "suggestion" | "layout";
    readonly docs: { readonly description: string };
    readonly messages: Record<string, string>;
    readonly schema: object[];
  };
  create(context: LintContext): Record<string, (node: SyntaxNode) => void>;
}

/** A plugin that ESLint and oxlint can load. */
export interface LintPlugin {
  readonly meta: { readonly name: string };
  readonly rules: Record<string, LintRule>;
}
