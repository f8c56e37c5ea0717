// @ts-check
// Counts what keeps the source readable: `node scripts/house.js [--list]`. `test/house.test.ts` holds the numbers.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const LONG_FILE = 700;
const MOST_PARAMETERS = 3;

const HELP = `Counts the source files of src, tests apart, and prints what the house rules are about.

  node scripts/house.js [--list]

  --list   names the files, folders and exports behind the counts
  --help   this text
`;

/**
 * What is counted, each with what it was counted from, worst first.
 * @typedef {object} House
 * @property {number} files
 * @property {number} lines
 * @property {readonly string[]} singleImporters files that one other file imports
 * @property {readonly string[]} longFiles files of more than 700 lines whose first line gives no reason
 * @property {readonly (readonly [folder: string, files: number])[]} folders source files that lie in each folder, most first
 * @property {readonly string[]} sharedExports names that several files export
 * @property {readonly string[]} sharedFileNames file names in several folders
 * @property {readonly string[]} manyParameters functions with more than three positional parameters
 * @property {readonly string[]} insideTests files under test that import something of src past its public entry points
 */

/** @param {string} folder @returns {string[]} files in TypeScript */
function filesIn(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === "node_modules" ? [] : filesIn(path);
    return /\.tsx?$/.test(entry.name) ? [path] : [];
  });
}

/** @param {string} folder @returns {string[]} the same without tests and declarations */
function sourcesIn(folder) {
  return filesIn(folder).filter((path) => !/\.(test|test-d|d)\.tsx?$/.test(path));
}

/** @param {string} text @returns {string[]} names that are declared and exported; what is passed on from another file is not one more */
function exportsOf(text) {
  const declared =
    /^export (?:declare )?(?:abstract )?(?:async )?(?:const|let|function\*?|class|interface|type) ([A-Za-z_$][\w$]*)/gm;
  return [...text.matchAll(declared)].map(([, name]) => /** @type {string} */ (name));
}

/**
 * Lists functions with a body that take more than three positional parameters. An object of options is none, where it comes last and its
 * type is named so.
 * @param {string} path @param {string} text @returns {string[]}
 */
function manyParametersIn(path, text) {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  /** @type {string[]} */
  const found = [];
  /** @param {ts.Node} node */
  const visit = (node) => {
    if (ts.isFunctionLike(node) && "body" in node && node.body !== undefined) {
      const last = node.parameters.at(-1)?.type;
      const hasOptions =
        last !== undefined && ts.isTypeReferenceNode(last) && /Options$/.test(last.typeName.getText());
      if (node.parameters.length - (hasOptions ? 1 : 0) > MOST_PARAMETERS) {
        const { line } = source.getLineAndCharacterOfPosition(node.getStart());
        const names = node.parameters.map(({ name }) => name.getText().replace(/\s+/g, " "));
        found.push(`:${line + 1} ${node.name?.getText() ?? ts.SyntaxKind[node.kind]}(${names.join(", ")})`);
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** @template T @param {Map<string, Set<T>>} map @param {string} key @param {T} value */
function add(map, key, value) {
  map.set(key, (map.get(key) ?? new Set()).add(value));
}

/** @param {ReadonlyMap<string, ReadonlySet<string>>} map @returns {string[]} keys with several values, each with them */
function several(map) {
  return [...map]
    .filter(([, values]) => values.size > 1)
    .map(([key, values]) => `${key}: ${[...values].sort().join(", ")}`)
    .sort();
}

/** What a test may import of src: what the package exports, the command, and data. */
const PUBLIC =
  /\/src\/(?:index|(?:formats|call|call\/nats|mcp|openapi|gateway|lint)\/index|cli)\.ts$|\.json$/;

/** Lists the files below a folder of tests that import something inside. @param {string} folder @returns {string[]} */
function insideTestsIn(folder) {
  const isInside = (/** @type {string} */ target) =>
    /(?:^|\/)\.\.\/src\//.test(target) && !PUBLIC.test(target);
  return filesIn(folder)
    .filter((path) => {
      const imports = readFileSync(path, "utf8").matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g);
      return [...imports].some(([, target]) => isInside(/** @type {string} */ (target)));
    })
    .map((path) => relative(dirname(folder), path).split(sep).join("/"))
    .sort();
}

/** Counts the source files below a folder. @param {string} [folder] @returns {House} */
export function countHouse(folder = join(ROOT, "src")) {
  const paths = sourcesIn(folder);
  const show = (/** @type {string} */ path) => relative(dirname(folder), path).split(sep).join("/");
  const [importers, names, places] = [new Map(), new Map(), new Map()];
  /** @type {Map<string, number>} */
  const sizes = new Map();
  const longFiles = [];
  /** @type {string[]} */
  const manyParameters = [];
  let lines = 0;
  for (const path of paths) {
    const text = readFileSync(path, "utf8");
    const length = text.split("\n").length - 1;
    lines += length;
    if (length > LONG_FILE && !text.startsWith("// Long: ")) longFiles.push(`${show(path)}: ${length}`);
    manyParameters.push(...manyParametersIn(path, text).map((found) => show(path) + found));
    for (const [, target] of text.matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g))
      add(importers, resolve(dirname(path), /** @type {string} */ (target)), path);
    const isIndex = /\/index\.tsx?$/.test(show(path));
    if (!isIndex) {
      for (const name of exportsOf(text)) add(names, name, show(path));
      add(places, path.split(sep).at(-1) ?? "", show(dirname(path)));
    }
    sizes.set(show(dirname(path)), (sizes.get(show(dirname(path))) ?? 0) + 1);
  }
  const isSingle = (/** @type {string} */ path) => importers.get(path)?.size === 1;
  return {
    files: paths.length,
    lines,
    singleImporters: paths
      .filter(isSingle)
      .map((path) => `${show(path)}: ${show([...importers.get(path)][0])}`),
    longFiles,
    folders: [...sizes].sort(([, a], [, b]) => b - a),
    sharedExports: several(names),
    sharedFileNames: several(places),
    manyParameters,
    insideTests: insideTestsIn(join(ROOT, "test")),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const flags = process.argv.slice(2);
  if (flags.includes("--help")) process.stdout.write(HELP);
  else print(countHouse(), flags.includes("--list"));
}

/** @param {House} house @param {boolean} isListed */
function print(house, isListed) {
  const [largest = ["", 0]] = house.folders;
  /** @type {readonly (readonly [what: string, count: number, list: readonly string[]])[]} */
  const rows = [
    ["source files", house.files, []],
    ["lines", house.lines, []],
    ["files with one importer", house.singleImporters.length, house.singleImporters],
    ["files over 700 lines", house.longFiles.length, house.longFiles],
    [
      `files in the largest folder (${largest[0]})`,
      largest[1],
      house.folders.map(([name, files]) => `${name}: ${files}`),
    ],
    ["folders of more than 20 files", house.folders.filter(([, files]) => files > 20).length, []],
    ["names exported from several files", house.sharedExports.length, house.sharedExports],
    ["file names in several folders", house.sharedFileNames.length, house.sharedFileNames],
    ["functions with more than three parameters", house.manyParameters.length, house.manyParameters],
    ["tests that import insides", house.insideTests.length, house.insideTests],
  ];
  for (const [what, count, list] of rows) {
    console.log(`${String(count).padStart(7)}  ${what}`);
    if (isListed) for (const item of list) console.log(`           ${item}`);
  }
}
