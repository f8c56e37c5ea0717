// @ts-check
// Writes docs/api, the reference of everything the package exports: `npm run api`. `test/api-reference.test.ts` holds it current.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const FOLDER = join(ROOT, "docs/api");
const WIDTH = 160;
/** A constant is shown with its value up to this many lines, and with its keys past them. */
const LONGEST_VALUE = 120;

const HELP = `Writes docs/api from the doc comments of src: one page for each subpath of the package.

  node scripts/api-reference.js [--check]

  --check  writes nothing; exits with 1 when docs/api is not what would be written
  --help   this text
`;

/**
 * A subpath of the package.
 * @typedef {object} Subpath
 * @property {string} name what users import
 * @property {string} entry its source file
 * @property {string} page its file in docs/api
 * @property {string} guide the page of docs that shows how it is used
 */
/** @type {readonly Subpath[]} */
const SUBPATHS = [
  { name: "waybill", entry: "src/index.ts", page: "waybill.md", guide: "core.md" },
  { name: "waybill/formats", entry: "src/formats/index.ts", page: "formats.md", guide: "formats.md" },
  { name: "waybill/call", entry: "src/call/index.ts", page: "call.md", guide: "call.md" },
  { name: "waybill/call/nats", entry: "src/call/nats/index.ts", page: "call-nats.md", guide: "call.md" },
  { name: "waybill/mcp", entry: "src/mcp/index.ts", page: "mcp.md", guide: "mcp.md" },
  { name: "waybill/openapi", entry: "src/openapi/index.ts", page: "openapi.md", guide: "openapi.md" },
  { name: "waybill/gateway", entry: "src/gateway/index.ts", page: "gateway.md", guide: "gateway.md" },
  { name: "waybill/lint", entry: "src/lint/index.ts", page: "lint.md", guide: "lint.md" },
];

/** @typedef {ts.FunctionDeclaration | ts.ClassDeclaration | ts.VariableStatement | ts.InterfaceDeclaration | ts.TypeAliasDeclaration} Declaration */
/**
 * One exported name.
 * @typedef {object} Entry
 * @property {string} name
 * @property {"Functions" | "Classes" | "Values" | "Types"} group
 * @property {string} file where it is declared
 * @property {readonly Declaration[]} declarations overloads of a function are several
 */

/** @type {Map<string, ts.SourceFile>} */
const parsed = new Map();

/** @param {string} path */
function parse(path) {
  const known = parsed.get(path);
  if (known !== undefined) return known;
  const file = ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true);
  parsed.set(path, file);
  return file;
}

/** @param {ts.Statement} statement @returns {statement is Declaration} */
function isDeclaration(statement) {
  return (
    ts.isFunctionDeclaration(statement) ||
    ts.isClassDeclaration(statement) ||
    ts.isVariableStatement(statement) ||
    ts.isInterfaceDeclaration(statement) ||
    ts.isTypeAliasDeclaration(statement)
  );
}

/** @param {Declaration} statement @returns {string | undefined} */
function nameOf(statement) {
  if (!ts.isVariableStatement(statement)) return statement.name?.text;
  const [declared] = statement.declarationList.declarations;
  return declared !== undefined && ts.isIdentifier(declared.name) ? declared.name.text : undefined;
}

/** @param {readonly Declaration[]} declarations @returns {Entry["group"]} */
function groupOf([first]) {
  if (first !== undefined && ts.isFunctionDeclaration(first)) return "Functions";
  if (first !== undefined && ts.isClassDeclaration(first)) return "Classes";
  return first !== undefined && ts.isVariableStatement(first) ? "Values" : "Types";
}

/** Finds where a name that a file exports or imports is declared. @param {string} path @param {string} name @returns {Omit<Entry, "name">} */
function find(path, name) {
  const file = parse(path);
  const own = file.statements.filter(isDeclaration).filter((statement) => nameOf(statement) === name);
  if (own.length > 0) return { group: groupOf(own), file: path, declarations: own };
  for (const statement of file.statements) {
    for (const [outside, inside, from] of passedOn(statement)) {
      if (outside === name && from !== undefined) return find(resolve(dirname(path), from), inside);
    }
  }
  throw new Error(`${relative(ROOT, path)} exports ${name}, and its declaration is nowhere in src.`);
}

/** The names that a statement brings from another file or passes on. @param {ts.Statement} statement @returns {readonly (readonly [outside: string, inside: string, from: string | undefined])[]} */
function passedOn(statement) {
  const isExport = ts.isExportDeclaration(statement);
  if (!isExport && !ts.isImportDeclaration(statement)) return [];
  const names = isExport ? statement.exportClause : statement.importClause?.namedBindings;
  if (names === undefined || !(ts.isNamedExports(names) || ts.isNamedImports(names))) return [];
  const from =
    statement.moduleSpecifier && ts.isStringLiteral(statement.moduleSpecifier)
      ? statement.moduleSpecifier.text
      : undefined;
  return names.elements.map(({ name, propertyName }) => [name.text, (propertyName ?? name).text, from]);
}

/** @param {Subpath} subpath @returns {readonly Entry[]} */
function exportsOf({ entry }) {
  const path = join(ROOT, entry);
  /** @type {Entry[]} */
  const entries = [];
  for (const statement of parse(path).statements) {
    if (ts.isExportAssignment(statement) && ts.isIdentifier(statement.expression)) {
      entries.push({ name: "default", ...find(path, statement.expression.text) });
    }
    if (ts.isExportDeclaration(statement)) {
      for (const [outside, inside, from] of passedOn(statement)) {
        const found = from === undefined ? find(path, inside) : find(resolve(dirname(path), from), inside);
        entries.push({ name: outside, ...found });
      }
    }
    if (isDeclaration(statement) && isExported(statement)) {
      const name = nameOf(statement);
      if (name !== undefined && !entries.some((known) => known.name === name)) {
        entries.push({ name, ...find(path, name) });
      }
    }
  }
  return entries.sort(
    (a, b) =>
      Number(a.name === "default") - Number(b.name === "default") ||
      compare(a.name.toLowerCase(), b.name.toLowerCase()) ||
      compare(a.name, b.name),
  );
}

/** @param {Declaration} statement */
function isExported(statement) {
  return statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false;
}

/** Compares by code units, so that no locale changes a page. @param {string} a @param {string} b */
function compare(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The doc comment of a declaration as paragraphs. @param {readonly Declaration[]} declarations @returns {readonly string[]} */
function commentOf(declarations) {
  for (const declaration of declarations) {
    const docs = ts.getJSDocCommentsAndTags(declaration).filter(ts.isJSDoc);
    const text = ts.getTextOfJSDocComment(docs.at(-1)?.comment);
    const reason = ts.getJSDocDeprecatedTag(declaration);
    const deprecated =
      reason === undefined ? [] : [`Deprecated: ${ts.getTextOfJSDocComment(reason.comment) ?? ""}`];
    if (text !== undefined) return [...text.split(/\n\s*\n/), ...deprecated].flatMap(paragraphs);
  }
  return [];
}

/** One paragraph or list of a comment in lines that are not too long. @param {string} text @returns {readonly string[]} */
function paragraphs(text) {
  const isList = /^\s*- /m.test(text);
  const pieces = isList ? text.split(/\n(?=\s*- )/) : [text];
  const lines = pieces.flatMap((piece) =>
    wrap(piece.trim().split(/\s+/), piece.trimStart().startsWith("- ") ? "  " : ""),
  );
  return [lines.join("\n")];
}

/** @param {readonly string[]} words @param {string} indent before every line but the first @returns {readonly string[]} */
function wrap(words, indent) {
  const lines = [""];
  for (const word of words.map(escapeAngles)) {
    const line = lines.at(-1) ?? "";
    if (line.trim() !== "" && line.length + word.length >= WIDTH) lines.push(`${indent}${word}`);
    else lines[lines.length - 1] = line.trim() === "" ? `${line}${word}` : `${line} ${word}`;
  }
  return lines;
}

/** Markdown takes `<T>` for HTML outside of code. @param {string} word */
function escapeAngles(word) {
  return word.includes("`") ? word : word.replaceAll("<", "&lt;");
}

/** @param {Declaration} declaration @returns {string} what TypeScript has to know of it: no bodies, nothing private */
function signatureOf(declaration) {
  const file = declaration.getSourceFile();
  const text = (/** @type {ts.Node} */ node, /** @type {number} */ end = node.getEnd()) =>
    file.text.slice(node.getStart(file), end).trimEnd();
  if (ts.isFunctionDeclaration(declaration)) {
    return `${withoutExport(text(declaration, declaration.body?.getStart(file)))
      .replace(/^async /, "")
      .replace(/;$/, "")};`;
  }
  if (ts.isClassDeclaration(declaration)) return classSignature(declaration, file);
  if (ts.isVariableStatement(declaration)) {
    const [declared] = declaration.declarationList.declarations;
    const whole = text(declaration);
    if (whole.split("\n").length <= LONGEST_VALUE) return withoutExport(whole);
    const start = withoutExport(text(declaration, declared?.initializer?.getStart(file)));
    return `${start} {\n${keysOf(declared?.initializer)
      .map((key) => `  ${key}: …,\n`)
      .join("")}};`;
  }
  return withoutExport(text(declaration));
}

/** The keys of an object that stands as a value, whatever is asserted of it. @param {ts.Expression | undefined} value @returns {readonly string[]} */
function keysOf(value) {
  if (value === undefined) return [];
  if (ts.isAsExpression(value) || ts.isSatisfiesExpression(value)) return keysOf(value.expression);
  return ts.isObjectLiteralExpression(value)
    ? value.properties.map(({ name }) => name?.getText() ?? "…")
    : [];
}

/** @param {string} text */
function withoutExport(text) {
  return text.replace(/^export (?:declare )?/, "");
}

/** @param {ts.ClassDeclaration} declaration @param {ts.SourceFile} file @returns {string} */
function classSignature(declaration, file) {
  const opening = file.text.slice(declaration.getStart(file), declaration.members.pos).trimEnd();
  const members = declaration.members.filter(isPublic).flatMap((member) => {
    const docs = ts
      .getJSDocCommentsAndTags(member)
      .filter(ts.isJSDoc)
      .map((doc) => `  ${doc.getText(file)}`);
    return [...docs, `  ${memberSignature(member, file)}`];
  });
  return [withoutExport(opening), ...members, "}"].join("\n");
}

/** @param {ts.ClassElement} member */
function isPublic(member) {
  if (ts.isSemicolonClassElement(member) || ts.isClassStaticBlockDeclaration(member)) return false;
  if (member.name !== undefined && ts.isPrivateIdentifier(member.name)) return false;
  const hidden = [ts.SyntaxKind.PrivateKeyword, ts.SyntaxKind.ProtectedKeyword];
  const kinds = ts.canHaveModifiers(member) ? (ts.getModifiers(member) ?? []).map(({ kind }) => kind) : [];
  return !kinds.some((kind) => hidden.includes(kind));
}

/** @param {ts.ClassElement} member @param {ts.SourceFile} file */
function memberSignature(member, file) {
  const rest = ts.isPropertyDeclaration(member)
    ? member.initializer?.getFullStart()
    : bodyOf(member)?.getStart(file);
  const text = file.text.slice(member.getStart(file), rest ?? member.getEnd());
  return `${text
    .trimEnd()
    .replace(/\s*[;=]$/, "")
    .replace(/^((?:static )?)async /, "$1")};`;
}

/** @param {ts.ClassElement} member @returns {ts.Block | undefined} */
function bodyOf(member) {
  return ts.isMethodDeclaration(member) || ts.isConstructorDeclaration(member) || ts.isAccessor(member)
    ? member.body
    : undefined;
}

/** @param {Entry} entry @param {string | undefined} elsewhere the page and anchor that already describe it @returns {string} */
function describe({ name, file, declarations }, elsewhere) {
  if (elsewhere !== undefined)
    return `### ${name}\n\nThe same as [${elsewhere.replace(/\.md#.*/, "")}](${elsewhere}).\n`;
  const comment = commentOf(declarations);
  if (comment.length === 0)
    throw new Error(`${name} in ${relative(ROOT, file)} is exported and has no doc comment.`);
  const overloads = declarations.filter((one) => !ts.isFunctionDeclaration(one) || one.body === undefined);
  const shown = overloads.length > 0 ? overloads : declarations;
  return `### ${name}\n\n${comment.join("\n\n")}\n\n\`\`\`ts\n${shown.map(signatureOf).join("\n")}\n\`\`\`\n`;
}

/** @param {readonly Entry[]} entries @param {Entry["group"]} group @param {ReadonlyMap<string, string>} anchors @returns {string} */
function linksTo(entries, group, anchors) {
  const links = entries
    .filter((entry) => entry.group === group)
    .map(({ name }) => `[${name}](#${anchors.get(name)})`);
  return wrap(
    [`**${group}**:`, ...links.map((link, at) => `${link}${at < links.length - 1 ? "," : ""}`)],
    "",
  ).join("\n");
}

const GROUPS = /** @type {const} */ (["Functions", "Classes", "Values", "Types"]);

/** @param {Subpath} subpath @param {Map<string, string>} described pages by what they describe @returns {string} */
function pageOf(subpath, described) {
  const entries = exportsOf(subpath);
  const groups = GROUPS.filter((group) => entries.some((entry) => entry.group === group));
  const anchors = anchorsOf(groups, entries);
  const lines = [
    `# ${subpath.name}`,
    `What \`import … from "${subpath.name}"\` offers. [How it is used](../${subpath.guide}). Written by \`npm run api\` from the doc comments.`,
    ...groups.map((group) => linksTo(entries, group, anchors)),
  ];
  for (const group of groups) {
    lines.push(`## ${group}`);
    for (const entry of entries.filter((one) => one.group === group)) {
      const key = `${entry.file} ${nameOf(/** @type {Declaration} */ (entry.declarations[0]))}`;
      lines.push(describe(entry, described.get(key)).trimEnd());
      if (!described.has(key)) described.set(key, `${subpath.page}#${anchors.get(entry.name)}`);
    }
  }
  return `${lines.join("\n\n")}\n`;
}

/** The anchors GitHub gives headings: in lower case, numbered when there are several. @param {readonly string[]} groups @param {readonly Entry[]} entries */
function anchorsOf(groups, entries) {
  /** @type {Map<string, number>} */
  const used = new Map();
  /** @type {Map<string, string>} */
  const anchors = new Map();
  for (const group of groups) {
    for (const name of [
      group,
      ...entries.filter((entry) => entry.group === group).map((entry) => entry.name),
    ]) {
      const slug = name.toLowerCase();
      const before = used.get(slug) ?? 0;
      used.set(slug, before + 1);
      if (name !== group) anchors.set(name, before === 0 ? slug : `${slug}-${before}`);
    }
  }
  return anchors;
}

/** The pages of docs/api by file name. @returns {ReadonlyMap<string, string>} */
export function apiReference() {
  /** @type {Map<string, string>} */
  const described = new Map();
  const rows = SUBPATHS.map((subpath) => {
    const entries = exportsOf(subpath);
    const values = entries.filter(({ group }) => group !== "Types").length;
    return `| [${subpath.name}](${subpath.page}) | ${values} | ${entries.length - values} | [${subpath.guide}](../${subpath.guide}) |`;
  });
  const index = [
    "# Reference",
    "Every export of every subpath, with its sentence and its signature. Written by `npm run api` from the doc comments.",
    ["| import | values | types | how it is used |", "|---|---|---|---|", ...rows].join("\n"),
  ];
  const pages = SUBPATHS.map((subpath) => /** @type {const} */ ([subpath.page, pageOf(subpath, described)]));
  return new Map([["README.md", `${index.join("\n\n")}\n`], ...pages]);
}

/** The files of docs/api that are not what `apiReference` makes. @returns {readonly string[]} */
export function staleReference() {
  const pages = apiReference();
  const there = new Map(readdirSync(FOLDER).map((name) => [name, readFileSync(join(FOLDER, name), "utf8")]));
  return [...new Set([...pages.keys(), ...there.keys()])].filter(
    (name) => pages.get(name) !== there.get(name),
  );
}

function write() {
  // Made first: an export that cannot be followed leaves the pages as they are.
  const pages = apiReference();
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  for (const [name, text] of pages) writeFileSync(join(FOLDER, name), text);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const flags = process.argv.slice(2);
  if (flags.includes("--help")) process.stdout.write(HELP);
  else if (!flags.includes("--check")) write();
  else if (staleReference().length > 0) {
    console.error(`docs/api is not current (${staleReference().join(", ")}): run npm run api.`);
    process.exitCode = 1;
  }
}
