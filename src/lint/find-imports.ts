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

/** Finds every way a file gets at watched names: imports, re-exports, `import()` and `require`. */
export function findImports(scopes: Scopes, { modules, names, events }: ImportWatch) {
  const follower = createFollower(scopes, names, events);
  const isWatched = (source: Node | null | undefined) => modules.has(scopes.textOf(source) ?? "");
  const nameOf = (node: Node) => (node.type === "Identifier" ? node.name : scopes.textOf(node)) ?? "";

  const onImport = (declaration: ImportDeclaration) => {
    if (declaration.importKind === "type" || !isWatched(declaration.source)) return;
    for (const specifier of declaration.specifiers) {
      if (specifier.type !== "ImportSpecifier") {
        // A default import of a CommonJS module is the whole module too.
        if ("local" in specifier) follower.followName(specifier.local as never);
        continue;
      }
      const name = nameOf(specifier.imported);
      if (specifier.importKind === "type") continue;
      if (names.has(name)) events.onMember(specifier, name);
      else if (name === "default" || name === "module.exports") follower.followName(specifier.local);
    }
  };
  const onExport = (declaration: ExportDeclaration) => {
    if (declaration.exportKind === "type" || !isWatched(declaration.source)) return;
    if (declaration.type === "ExportAllDeclaration") events.onReExport(declaration);
    for (const specifier of declaration.specifiers ?? []) {
      if (specifier.type !== "ExportSpecifier" || specifier.exportKind === "type") continue;
      const name = nameOf(specifier.local);
      if (names.has(name)) events.onMember(specifier, name);
    }
  };
  const onCall = (call: CallExpression) => {
    if (isWatched(call.arguments[0]) && isRequire(scopes, call.callee)) follower.followValue(call, false);
  };
  const onImportEquals = ({ importKind, moduleReference, id }: ImportEquals) => {
    if (importKind === "type" || moduleReference.type !== "TSExternalModuleReference") return;
    if (isWatched(moduleReference.expression)) follower.followName(id);
  };
  return {
    ImportDeclaration: (node: SyntaxNode) => onImport(node as ImportDeclaration),
    ExportNamedDeclaration: (node: SyntaxNode) => onExport(node as ExportDeclaration),
    ExportAllDeclaration: (node: SyntaxNode) => onExport(node as ExportDeclaration),
    CallExpression: (node: SyntaxNode) => onCall(node as CallExpression),
    TSImportEqualsDeclaration: (node: SyntaxNode) => onImportEquals(node as ImportEquals),
    ImportExpression: (node: SyntaxNode) => {
      const dynamic = node as Node & { type: "ImportExpression" };
      if (isWatched(dynamic.source)) follower.followValue(dynamic, true);
    },
  };
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
