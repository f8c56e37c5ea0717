import { createFollower, type FollowEvents } from "./follow-module.ts";
import type { SyntaxNode } from "./rule-types.ts";
import type { Scopes } from "./scopes.ts";
import {
  type CallExpression,
  type ExportDeclaration,
  type ImportDeclaration,
  type ImportEquals,
  type Node,
  unwrapped,
} from "./syntax.ts";

/** Which modules and which of their names the rule watches, and whom it tells. */
export interface ImportWatch {
  readonly modules: ReadonlySet<string>;
  readonly names: ReadonlySet<string>;
  readonly events: FollowEvents;
}

interface Search extends ImportWatch {
  readonly scopes: Scopes;
  readonly follower: ReturnType<typeof createFollower>;
}

/** Finds every way a file gets at watched names: imports, re-exports, `import()` and `require`. */
export function findImports(scopes: Scopes, watch: ImportWatch) {
  const follower = createFollower(scopes, watch.names, watch.events);
  const search: Search = { ...watch, scopes, follower };
  return {
    ImportDeclaration: (node: SyntaxNode) => onImport(search, node as ImportDeclaration),
    ExportNamedDeclaration: (node: SyntaxNode) => onExport(search, node as ExportDeclaration),
    ExportAllDeclaration: (node: SyntaxNode) => onExport(search, node as ExportDeclaration),
    CallExpression: (node: SyntaxNode) => {
      const call = node as CallExpression;
      if (!isWatched(search, call.arguments[0]) || !isRequire(scopes, call.callee)) return;
      follower.followValue(call, false);
    },
    ImportExpression: (node: SyntaxNode) => {
      const dynamic = node as Node & { type: "ImportExpression" };
      if (isWatched(search, dynamic.source)) follower.followValue(dynamic, true);
    },
    TSImportEqualsDeclaration: (node: SyntaxNode) => {
      const { importKind, moduleReference, id } = node as ImportEquals;
      if (importKind === "type" || moduleReference.type !== "TSExternalModuleReference") return;
      if (isWatched(search, moduleReference.expression)) follower.followName(id);
    },
  };
}

function isWatched({ modules, scopes }: Search, source: Node | null | undefined): boolean {
  return modules.has(scopes.textOf(source) ?? "");
}

/** The name in a specifier, which may be written as a string. */
function nameIn({ scopes }: Search, node: Node): string {
  return (node.type === "Identifier" ? node.name : scopes.textOf(node)) ?? "";
}

function onImport(search: Search, declaration: ImportDeclaration): void {
  if (declaration.importKind === "type" || !isWatched(search, declaration.source)) return;
  for (const specifier of declaration.specifiers) {
    switch (specifier.type) {
      case "ImportSpecifier": {
        if (specifier.importKind === "type") break;
        const name = nameIn(search, specifier.imported);
        if (search.names.has(name)) search.events.onMember(specifier, name);
        else if (name === "default") search.follower.followName(specifier.local);
        break;
      }
      case "ImportDefaultSpecifier": // The whole module too, where that is CommonJS.
      case "ImportNamespaceSpecifier":
        search.follower.followName(specifier.local);
    }
  }
}

function onExport(search: Search, declaration: ExportDeclaration): void {
  if (declaration.exportKind === "type" || !isWatched(search, declaration.source)) return;
  if (declaration.type === "ExportAllDeclaration") search.events.onReExport(declaration);
  for (const specifier of declaration.specifiers ?? []) {
    if (specifier.type !== "ExportSpecifier" || specifier.exportKind === "type") continue;
    const name = nameIn(search, specifier.local);
    if (search.names.has(name)) search.events.onMember(specifier, name);
  }
}

/** True for the global `require`, for `module.require`, and for what `createRequire` returned. */
function isRequire(scopes: Scopes, callee: Node): boolean {
  const bare = unwrapped(callee);
  if (isCreateRequire(scopes, bare)) return true;
  if (bare.type === "MemberExpression") {
    const { object } = bare;
    const isModule = object.type === "Identifier" && object.name === "module";
    return isModule && scopes.keyOf(bare) === "require" && scopes.variableOf(object) === undefined;
  }
  if (bare.type !== "Identifier") return false;
  if (scopes.variableOf(bare) === undefined) return bare.name === "require";
  const constant = scopes.constantOf(bare);
  return constant !== undefined && isCreateRequire(scopes, unwrapped(constant.init));
}

function isCreateRequire(scopes: Scopes, node: Node): boolean {
  if (node.type !== "CallExpression") return false;
  const callee = unwrapped(node.callee);
  if (callee.type === "Identifier") return callee.name === "createRequire";
  return callee.type === "MemberExpression" && scopes.keyOf(callee) === "createRequire";
}
