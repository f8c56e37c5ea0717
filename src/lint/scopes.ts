import type { SyntaxNode } from "./rule-types.ts";
import {
  type FunctionNode,
  type Identifier,
  isFunction,
  type MemberExpression,
  type Node,
  type PropertyNode,
  unwrapped,
} from "./syntax.ts";

/** Questions about names that only the scopes of a file can answer. */
export interface Scopes {
  /** The variable an identifier stands for, if the file declares it. */
  variableOf(identifier: Identifier): ScopeVariable | undefined;
  /** What a `const` was set to, if it was not taken apart. */
  constantOf(identifier: Identifier): ConstantValue | undefined;
  /** The text of a string, of a template without expressions, or of a `const` that holds one. */
  textOf(node: Node | null | undefined): string | undefined;
  /** The name of a member or property, computed or not. */
  keyOf(node: MemberExpression | PropertyNode): string | undefined;
  /** The function an expression is, or names. */
  functionOf(node: Node): FunctionNode | undefined;
}

/** What a `const` was set to, and the function or program it lives in. */
export interface ConstantValue {
  readonly init: Node;
  readonly owner: Node;
}

/** Reads names through the scope manager of the linter at hand. */
export function createScopes(source: ScopeSource): Scopes {
  const variableOf = (identifier: Identifier) => {
    let scope: LintScope | null = source.getScope(identifier);
    for (; scope !== null; scope = scope.upper) {
      const found = scope.set.get(identifier.name);
      if (found !== undefined) return found.defs.length > 0 ? found : undefined;
    }
    return undefined;
  };
  const constantOf = (identifier: Identifier) => toConstant(variableOf(identifier));
  const textOf = (node: Node | null | undefined): string | undefined => {
    if (!node) return undefined;
    const bare = unwrapped(node);
    if (bare.type !== "Identifier") return literalText(bare);
    const constant = constantOf(bare);
    return constant && literalText(unwrapped(constant.init));
  };
  return {
    variableOf,
    constantOf,
    textOf,
    keyOf: (node) => {
      const name = node.type === "MemberExpression" ? node.property : node.key;
      return !node.computed && name.type === "Identifier" ? name.name : textOf(name);
    },
    functionOf: (node) => {
      const bare = unwrapped(node);
      if (bare.type !== "Identifier") return isFunction(bare) ? bare : undefined;
      return toFunction(variableOf(bare));
    },
  };
}

function literalText(node: Node): string | undefined {
  if (node.type === "Literal") {
    if (typeof node.value === "number") return String(node.value);
    return typeof node.value === "string" ? node.value : undefined;
  }
  if (node.type !== "TemplateLiteral" || node.quasis.length !== 1) return undefined;
  return node.quasis[0]?.value.cooked ?? undefined;
}

function onlyDefinition(variable: ScopeVariable | undefined): { node: Node; parent: Node } | undefined {
  const [definition, another] = variable?.defs ?? [];
  return another === undefined ? (definition as { node: Node; parent: Node } | undefined) : undefined;
}

function toConstant(variable: ScopeVariable | undefined): ConstantValue | undefined {
  const definition = onlyDefinition(variable);
  if (variable === undefined || definition?.node.type !== "VariableDeclarator") return undefined;
  const { id, init, parent } = definition.node;
  if (parent.type !== "VariableDeclaration" || parent.kind !== "const") return undefined;
  if (id.type !== "Identifier" || init === null) return undefined;
  return { init, owner: variable.scope.variableScope.block as Node };
}

function toFunction(variable: ScopeVariable | undefined): FunctionNode | undefined {
  const node = onlyDefinition(variable)?.node;
  // A parameter is also defined by its function; only the function's own name counts.
  if (node?.type === "FunctionDeclaration" && variable?.defs[0]?.type === "FunctionName") return node;
  if (node?.type !== "VariableDeclarator" || node.id.type !== "Identifier" || node.init === null)
    return undefined;
  const value = unwrapped(node.init);
  return isFunction(value) ? value : undefined;
}

interface ScopeReference {
  readonly identifier: SyntaxNode;
  isRead(): boolean;
}

/** A place that declares a variable: what kind, by which node, inside which statement. */
interface ScopeDefinition {
  readonly type: string;
  readonly node: SyntaxNode;
  readonly parent?: SyntaxNode | null | undefined;
}

/** A variable with everything that declares and uses it. */
interface ScopeVariable {
  readonly defs: readonly ScopeDefinition[];
  readonly references: readonly ScopeReference[];
  readonly scope: LintScope;
}

/** A scope as ESLint, typescript-eslint and oxlint describe it. */
interface LintScope {
  readonly block: SyntaxNode;
  readonly set: { get(name: string): ScopeVariable | undefined };
  readonly upper: LintScope | null;
  readonly variableScope: LintScope;
}

/** The part of a linter's source code object that knows scopes. */
export interface ScopeSource {
  getScope(node: SyntaxNode): LintScope;
}
