import { createFollower, type FollowEvents } from "./follow-module.ts";
import type { LintRule, SyntaxNode } from "./rule-types.ts";
import { createScopes, type ScopeSource, type Scopes } from "./scopes.ts";
import {
  type CallExpression,
  type ExportDeclaration,
  type FunctionNode,
  type ImportDeclaration,
  type ImportEquals,
  type Node,
  type ObjectNode,
  type PropertyNode,
  unwrapped,
} from "./syntax.ts";

/** Options of the rule `no-raw-mcp-text`. */
export interface NoRawMcpTextOptions {
  /** Modules that export the deprecated builder, spelt as they are imported. @default ["waybill/formats"] */
  readonly modules?: readonly string[];
  /** Names of deprecated exports. @default ["buildToolResponse"] */
  readonly names?: readonly string[];
}

const DEFAULTS = { modules: ["waybill/formats"], names: ["buildToolResponse"] } as const;

const INSTEAD = "use buildStructuredResponse or composeToolPayload";

const NAMES_SCHEMA = { type: "array", items: { type: "string", minLength: 1 }, uniqueItems: true };

/** Flags the deprecated text builder however it is imported, and tool results with text written by hand. */
export const noRawMcpText: LintRule = {
  meta: {
    type: "suggestion",
    docs: { description: "Disallow the deprecated text builder and tool results with text written by hand." },
    messages: {
      deprecated: `\`{{name}}\` is deprecated: ${INSTEAD} instead.`,
      reExport: `This exports all of a module again, the deprecated {{names}} with it: export names, and ${INSTEAD}.`,
      rawResult: `This tool result is text written by hand: ${INSTEAD} instead.`,
    },
    schema: [
      {
        type: "object",
        properties: { modules: NAMES_SCHEMA, names: NAMES_SCHEMA },
        additionalProperties: false,
      },
    ],
  },
  create(context) {
    const options = (context.options[0] ?? {}) as NoRawMcpTextOptions;
    const names = options.names ?? DEFAULTS.names;
    const report = (node: SyntaxNode, messageId: string, data: Record<string, string> = {}) => {
      context.report({ node, messageId, data } as never);
    };
    const scopes = createScopes(context.sourceCode as ScopeSource);
    const imports = findImports(scopes, {
      modules: new Set(options.modules ?? DEFAULTS.modules),
      names: new Set(names),
      events: {
        onMember: (node, name) => report(node, "deprecated", { name }),
        onReExport: (node) => report(node, "reExport", { names: names.map((n) => `\`${n}\``).join(", ") }),
      },
    });
    const results = findRawResults(scopes, (node) => report(node, "rawResult"));
    return {
      ...imports,
      ...results,
      CallExpression: (node) => {
        imports.CallExpression(node);
        results.CallExpression(node);
      },
    };
  },
};

/** Calls whose function arguments answer tool calls. */
const REGISTRARS = new Set(["registerTool", "tool", "addTool", "setRequestHandler"]);

/** Properties and methods that answer tool calls. */
const HANDLER_KEYS = new Set(["handler", "execute", "run"]);

/** Finds tool results with text blocks written by hand, where a handler returns them. */
function findRawResults(scopes: Scopes, onRawResult: (node: Node) => void) {
  const handlers = new Set<FunctionNode>();
  const { returns, listeners } = collectReturns();
  const addHandler = (value: Node | null) => {
    const found = value === null ? undefined : scopes.functionOf(value);
    if (found !== undefined) handlers.add(found);
  };
  const onProperty = (node: SyntaxNode) => {
    const property = node as PropertyNode;
    if (HANDLER_KEYS.has(scopes.keyOf(property) ?? "")) addHandler(property.value);
  };
  return {
    ...listeners,
    Property: onProperty,
    MethodDefinition: onProperty,
    PropertyDefinition: onProperty,
    CallExpression: (node: SyntaxNode) => {
      const call = node as CallExpression;
      if (REGISTRARS.has(lastName(scopes, call.callee) ?? "")) call.arguments.forEach(addHandler);
    },
    "Program:exit": () => {
      for (const handler of handlers) {
        for (const result of rawResults(scopes, handler, returns.get(handler) ?? [])) onRawResult(result);
      }
    },
  };
}

/** Collects what each function of a file returns, leaving out the functions inside it. */
function collectReturns() {
  const returns = new Map<FunctionNode, Node[]>();
  const open: FunctionNode[] = [];
  const enter = (node: SyntaxNode) => {
    const entered = node as FunctionNode;
    open.push(entered);
    returns.set(entered, entered.body.type === ("BlockStatement" as string) ? [] : [entered.body]);
  };
  const leave = () => {
    open.pop();
  };
  const listeners = {
    FunctionDeclaration: enter,
    FunctionExpression: enter,
    ArrowFunctionExpression: enter,
    "FunctionDeclaration:exit": leave,
    "FunctionExpression:exit": leave,
    "ArrowFunctionExpression:exit": leave,
    ReturnStatement: (node: SyntaxNode) => {
      const { argument } = node as Node & { type: "ReturnStatement" };
      const owner = open.at(-1);
      if (argument !== null && owner !== undefined) returns.get(owner)?.push(argument);
    },
  };
  return { returns, listeners };
}

function lastName(scopes: Scopes, callee: Node): string | undefined {
  const bare = unwrapped(callee);
  if (bare.type === "Identifier") return bare.name;
  return bare.type === "MemberExpression" ? scopes.keyOf(bare) : undefined;
}

/** The object literals a function returns that are tool results with a text block. */
function rawResults(scopes: Scopes, owner: FunctionNode, returned: readonly Node[]): Set<Node> {
  const found = new Set<Node>();
  const seen = new Set<Node>();
  const queue = [...returned];
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const node = unwrapped(next);
    if (seen.has(node)) continue;
    seen.add(node);
    if (node.type === "ObjectExpression" && isTextResult(scopes, owner, node)) found.add(node);
    queue.push(...possibleValues(scopes, owner, node));
  }
  return found;
}

/** The expressions one of which an expression evaluates to, one step further in. */
function possibleValues(scopes: Scopes, owner: FunctionNode, node: Node): readonly Node[] {
  switch (node.type) {
    case "ConditionalExpression":
      return [node.consequent, node.alternate];
    case "LogicalExpression":
      return [node.left, node.right];
    case "SequenceExpression":
      return node.expressions.slice(-1);
    case "AwaitExpression":
      return [node.argument];
    case "Identifier": {
      const constant = scopes.constantOf(node);
      return constant?.owner === owner ? [constant.init] : [];
    }
    case "CallExpression": {
      const callee = unwrapped(node.callee);
      if (callee.type !== "MemberExpression" || scopes.keyOf(callee) !== "resolve") return [];
      const isPromise = callee.object.type === "Identifier" && callee.object.name === "Promise";
      return isPromise ? node.arguments.slice(0, 1) : [];
    }
  }
  return [];
}

/** True for `{ content: [{ type: "text" … }] }`; with a `role` it is a chat message instead. */
function isTextResult(scopes: Scopes, owner: FunctionNode, { properties }: ObjectNode): boolean {
  let hasText = false;
  for (const property of properties) {
    if (property.type !== "Property" || property.value === null) continue;
    const key = scopes.keyOf(property);
    if (key === "role") return false;
    if (key === "content") hasText = hasTextBlock(scopes, constantIn(scopes, owner, property.value));
  }
  return hasText;
}

function hasTextBlock(scopes: Scopes, content: Node): boolean {
  if (content.type !== "ArrayExpression") return false;
  return content.elements.some((element) => {
    const block = element && unwrapped(element);
    if (block?.type !== "ObjectExpression") return false;
    return block.properties.some(
      (property) =>
        property.type === "Property" &&
        scopes.keyOf(property) === "type" &&
        scopes.textOf(property.value) === "text",
    );
  });
}

function constantIn(scopes: Scopes, owner: FunctionNode, node: Node): Node {
  const bare = unwrapped(node);
  if (bare.type !== "Identifier") return bare;
  const constant = scopes.constantOf(bare);
  return constant?.owner === owner ? unwrapped(constant.init) : bare;
}

interface ImportWatch {
  readonly modules: ReadonlySet<string>;
  readonly names: ReadonlySet<string>;
  readonly events: FollowEvents;
}

interface Search extends ImportWatch {
  readonly scopes: Scopes;
  readonly follower: ReturnType<typeof createFollower>;
}

/** Finds every way a file gets at watched names: imports, re-exports, `import()` and `require`. */
function findImports(scopes: Scopes, watch: ImportWatch) {
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
