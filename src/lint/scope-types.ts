import type { SyntaxNode } from "./rule-types.ts";

/** A use of a variable. */
export interface ScopeReference {
  readonly identifier: SyntaxNode;
  isRead(): boolean;
}

/** A place that declares a variable: what kind, by which node, inside which statement. */
export interface ScopeDefinition {
  readonly type: string;
  readonly node: SyntaxNode;
  readonly parent?: SyntaxNode | null | undefined;
}

/** A variable with everything that declares and uses it. */
export interface ScopeVariable {
  readonly defs: readonly ScopeDefinition[];
  readonly references: readonly ScopeReference[];
  readonly scope: LintScope;
}

/** A scope as ESLint, typescript-eslint and oxlint describe it. */
export interface LintScope {
  readonly block: SyntaxNode;
  readonly set: { get(name: string): ScopeVariable | undefined };
  readonly upper: LintScope | null;
  readonly variableScope: LintScope;
}

/** The part of a linter's source code object that knows scopes. */
export interface ScopeSource {
  getScope(node: SyntaxNode): LintScope;
}
