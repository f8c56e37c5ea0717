import { posix } from "node:path";
import ts from "typescript";
import { type SourceFile, walk } from "./source-files.ts";

/** What the files of one layer may import. */
interface Layer {
  /** Layers below, by name; a layer may always import itself. */
  readonly below: readonly string[];
  /** Packages by name, subpaths included. */
  readonly packages: readonly string[] | "any";
  /** Whether Node modules and Node globals may be used. */
  readonly node: boolean;
}

const EDGE: Layer = { below: ["core"], packages: "any", node: true };
const HTTP_EDGE: Layer = { ...EDGE, below: ["core", "http"] };
/** What puts edges together, below the command. */
const RUNTIME: Layer = {
  below: ["core", "http", "index", "mcp", "openapi", "call", "formats"],
  packages: "any",
  node: true,
};
const GATEWAY: Layer = { ...RUNTIME, below: [...RUNTIME.below, "demo"] };
const APP: Layer = { ...GATEWAY, below: [...GATEWAY.below, "gateway", "inspector/server"] };

/** What stands between the gateway and the command. */
const INSPECTOR: Layer = {
  ...RUNTIME,
  below: ["core", "http", "mcp", "openapi", "formats", "gateway", "inspector/protocol"],
};

/** The import table: a layer is a folder of `src`, a file directly in it, or a part of the inspector. Anything else is refused. */
const IMPORT_TABLE: Readonly<Record<string, Layer>> = {
  core: {
    below: [],
    packages: ["typebox", "@standard-schema/spec", "re2js", "minisearch", "stemmer"],
    node: false,
  },
  index: { below: ["core"], packages: [], node: false },
  http: EDGE,
  mcp: HTTP_EDGE,
  openapi: HTTP_EDGE,
  call: EDGE,
  formats: EDGE,
  lint: EDGE,
  gateway: GATEWAY,
  /** What there is without a config; an example, which uses what everybody may. */
  demo: { below: [], packages: ["waybill"], node: true },
  /** What the page and its server say to each other. */
  "inspector/protocol": { below: ["core"], packages: [], node: false },
  "inspector/server": INSPECTOR,
  /** Runs in browsers. */
  "inspector/page": { below: ["inspector/protocol", "core"], packages: ["preact"], node: false },
  /** How the page is built; no part of it. */
  "inspector/page-build": { below: [], packages: ["vite"], node: true },
  cli: APP,
};

const NODE_GLOBALS = new Set([
  "process",
  "Buffer",
  "NodeJS",
  "__dirname",
  "__filename",
  "global",
  "module",
  "exports",
  "require",
  "setImmediate",
  "clearImmediate",
]);

/** Loads modules of users, whose names nobody knows beforehand. */
const LOADS_ANYTHING = "src/gateway/load-module.ts";

/** Lists what a source file imports or uses against the table, one sentence each. */
export function importViolations(file: SourceFile): string[] {
  const name = layerOf(file.path);
  const layer = Object.hasOwn(IMPORT_TABLE, name) ? IMPORT_TABLE[name] : undefined;
  if (layer === undefined) return [`${file.path} lies in "${name}", which the import table does not know`];
  const found: string[] = [];
  walk(file, (node) => {
    const wanted = importedBy(node);
    if (wanted !== undefined) found.push(...specifierViolations(file.path, name, layer, wanted));
    if (name === "inspector/protocol" && !isTypeOnly(node))
      found.push(`${file.path} imports more than types`);
    // The page loads its own views when they are opened.
    const isView = name === "inspector/page" && wanted?.startsWith("./") === true;
    if (!layer.node && isDynamicImport(node) && !isView)
      found.push(`${file.path} loads a module at run time`);
    const used = layer.node ? undefined : nodeGlobalUsedBy(node);
    if (used !== undefined) found.push(`${file.path} uses the Node global ${used}`);
  });
  return found;
}

const PAGE_BUILD = "src/inspector/page/vite.config.ts";

/** An example that the gateway serves. */
const DEMO = "examples/parcel-office/";

/** The layer a path under `src` belongs to: its folder, or its own name without the ending; the inspector is several. */
function layerOf(path: string): string {
  if (path.startsWith(DEMO)) return "demo";
  if (path === PAGE_BUILD) return "inspector/page-build";
  const [first = "", second = "", ...rest] = posix.relative("src", path).replace(/\.ts$/, "").split("/");
  return first === "inspector" && (rest.length > 0 || second === "protocol") ? `${first}/${second}` : first;
}

/** The specifier a node imports, or `null` when it is computed and cannot be checked. */
function importedBy(node: ts.Node): string | null | undefined {
  if (ts.isImportDeclaration(node)) return literal(node.moduleSpecifier);
  if (ts.isExportDeclaration(node)) return node.moduleSpecifier && literal(node.moduleSpecifier);
  if (ts.isExternalModuleReference(node)) return literal(node.expression);
  if (ts.isImportTypeNode(node))
    return ts.isLiteralTypeNode(node.argument) ? literal(node.argument.literal) : null;
  if (isDynamicImport(node) || isRequire(node)) return literal(node.arguments[0]);
  return undefined;
}

function isDynamicImport(node: ts.Node): node is ts.CallExpression {
  return ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword;
}

function isRequire(node: ts.Node): node is ts.CallExpression {
  return ts.isCallExpression(node) && ts.isIdentifier(node.expression) && node.expression.text === "require";
}

function literal(node: ts.Node | undefined): string | null {
  return node !== undefined && ts.isStringLiteralLike(node) ? node.text : null;
}

function specifierViolations(path: string, from: string, layer: Layer, wanted: string | null): string[] {
  if (wanted === null && path === LOADS_ANYTHING) return [];
  if (wanted === null) return [`${path} imports a computed name, which cannot be checked`];
  if (wanted.startsWith("node:")) return layer.node ? [] : [`${path} imports ${wanted}`];
  if (wanted.startsWith(".") && wanted.endsWith(".css")) return styleViolations(path, from, wanted);
  if (wanted.startsWith(".")) {
    const to = layerOf(posix.join(posix.dirname(path), wanted));
    const allowed = to === from || layer.below.includes(to);
    return allowed ? [] : [`${path} imports ${wanted}: ${from} may not import ${to}`];
  }
  const name = wanted.split("/", wanted.startsWith("@") ? 2 : 1).join("/");
  const allowed = layer.packages === "any" || layer.packages.includes(name);
  return allowed ? [] : [`${path} imports the package ${name}`];
}

/** Styles are the page's alone. */
function styleViolations(path: string, from: string, wanted: string): string[] {
  const isOwn = from === "inspector/page" && layerOf(posix.join(posix.dirname(path), wanted)) === from;
  return isOwn ? [] : [`${path} imports the style ${wanted}`];
}

/** Checks that a file which both ends of a protocol import leaves nothing behind at run time. */
function isTypeOnly(node: ts.Node): boolean {
  if (ts.isImportDeclaration(node)) return node.importClause?.isTypeOnly === true;
  return !ts.isExportDeclaration(node) || node.moduleSpecifier === undefined || node.isTypeOnly;
}

function nodeGlobalUsedBy(node: ts.Node): string | undefined {
  if (!ts.isIdentifier(node) || !NODE_GLOBALS.has(node.text)) return undefined;
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent) && parent.name === node) {
    return parent.expression.getText() === "globalThis" ? node.text : undefined;
  }
  const isName = "name" in parent && parent.name === node;
  return isName && !ts.isShorthandPropertyAssignment(parent) ? undefined : node.text;
}
