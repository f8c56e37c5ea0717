import type { Dirent } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { join, resolve, sep } from "node:path";
import { GlobPattern } from "./glob-pattern.ts";

/** Bounds of a search for files; more is an error. */
const GLOB_LIMITS = {
  /** Files that are found. */
  files: 10_000,
  /** Names of files and folders that are looked at. */
  entries: 500_000,
} as const;

const MOST_KEPT = 1_000;
const kept = new Map<string, GlobPattern>();

/** Tells whether a whole text, such as a name or an id, is as a pattern says: `*` any characters, `?` one, `{a,b}` either. */
export function matchesPattern(pattern: string, text: string): boolean {
  let ready = kept.get(pattern);
  if (ready === undefined) {
    ready = new GlobPattern(pattern, false);
    if (kept.size >= MOST_KEPT) kept.clear();
    kept.set(pattern, ready);
  }
  return ready.matches(text);
}

/** A pattern of paths: the folder it starts from, and what of a path below it must match. */
interface PathPattern {
  readonly root: string;
  /** Without any of `*?{`: one file, whose name may begin with a dot. */
  readonly isPlain: boolean;
  readonly rest: GlobPattern;
}

interface Search {
  readonly found: Set<string>;
  readonly excludes: readonly PathPattern[];
  entries: number;
}

/**
 * Finds files by patterns (`*`, `?`, `{a,b}` within a name, `**` across folders; a leading `!` excludes), as absolute paths in order.
 * Folders called `node_modules`, and what begins with a dot, are found only where a pattern names them before its first `*`, `?` or `{`.
 */
export async function findFiles(patterns: readonly string[], baseDir: string): Promise<string[]> {
  const isExclude = (pattern: string): boolean => pattern.startsWith("!");
  const excludes = patterns.filter(isExclude).map((pattern) => toPathPattern(pattern.slice(1), baseDir));
  const search: Search = { found: new Set(), excludes, entries: 0 };
  for (const pattern of patterns) {
    if (!isExclude(pattern)) await searchPattern(toPathPattern(pattern, baseDir), search);
  }
  return [...search.found].sort();
}

/** Tells which paths patterns are about, without looking for files. */
export interface PathMatcher {
  /** Whether an absolute path is that of a file `findFiles` would find. */
  matches(path: string): boolean;
}

/** Makes a matcher of the patterns that `findFiles` takes. */
export function createPathMatcher(patterns: readonly string[], baseDir: string): PathMatcher {
  const isExclude = (pattern: string): boolean => pattern.startsWith("!");
  const excludes = patterns.filter(isExclude).map((pattern) => toPathPattern(pattern.slice(1), baseDir));
  const includes = patterns
    .filter((pattern) => !isExclude(pattern))
    .map((pattern) => toPathPattern(pattern, baseDir));
  const isIncluded = (path: string): boolean =>
    includes.some(({ root, rest, isPlain }) => {
      const below = belowOf(path, root);
      if (below === undefined) return false;
      const isSkipped = below.split("/").some((name) => name.startsWith(".") || name === "node_modules");
      return (isPlain || !isSkipped) && rest.matches(below);
    });
  return { matches: (path) => !isExcluded(path, excludes) && isIncluded(path) };
}

/** The part of a path below a folder, with slashes; nothing for one that lies elsewhere. */
function belowOf(path: string, root: string): string | undefined {
  const start = root.endsWith(sep) ? root : `${root}${sep}`;
  return path.startsWith(start) ? path.slice(start.length).replaceAll(sep, "/") : undefined;
}

function toPathPattern(pattern: string, baseDir: string): PathPattern {
  const segments = (sep === "\\" ? pattern.replaceAll("\\", "/") : pattern).split("/");
  const first = segments.findIndex((segment) => /[*?{]/.test(segment));
  const named = first === -1 ? segments.length - 1 : first;
  // An absolute path begins with an empty segment.
  const folder = segments.slice(0, named).join("/");
  const root = resolve(baseDir, folder === "" && named > 0 ? "/" : folder);
  const rest = segments.slice(named).filter((segment) => segment !== "" && segment !== ".");
  return { root, isPlain: first === -1, rest: new GlobPattern(rest.join("/"), true) };
}

/** A folder to look through: where it is, where it really is, and its path below the root, ending with a slash unless empty. */
interface Folder {
  readonly path: string;
  readonly real: string;
  readonly below: string;
}

/** One pattern being searched. */
interface Walk {
  readonly pattern: PathPattern;
  readonly search: Search;
  readonly open: Folder[];
  /** Folders that are linked to come last: what is reached both ways is found under its own path, and once. */
  readonly linked: Folder[];
}

async function searchPattern(pattern: PathPattern, search: Search): Promise<void> {
  const real = await realpath(pattern.root).catch(() => undefined);
  if (real === undefined) return;
  const seen = new Set<string>();
  const open: Folder[] = [{ path: pattern.root, real, below: "" }];
  const linked: Folder[] = [];
  const walk = { pattern, search, open, linked };
  for (let folder = open.pop(); folder !== undefined; folder = open.pop() ?? linked.shift()) {
    if (seen.has(folder.real)) continue;
    seen.add(folder.real);
    const entries = await readdir(folder.path, { withFileTypes: true }).catch(() => []);
    search.entries += entries.length;
    if (search.entries > GLOB_LIMITS.entries) {
      throw new RangeError(
        `A search for files came upon more than ${GLOB_LIMITS.entries} names below ${pattern.root}.`,
      );
    }
    for (const entry of entries) await visit(entry, folder, walk);
  }
}

async function visit(entry: Dirent, folder: Folder, walk: Walk): Promise<void> {
  const { pattern, search, open, linked } = walk;
  const isSkipped = entry.name.startsWith(".") || entry.name === "node_modules";
  const path = join(folder.path, entry.name);
  const below = `${folder.below}${entry.name}`;
  if ((isSkipped && !pattern.isPlain) || !(pattern.rest.matches(below) || pattern.rest.mayBegin(`${below}/`)))
    return;
  if (isExcluded(path, search.excludes)) return;
  const kind = await kindOf(entry, path);
  if (kind === "file" && pattern.rest.matches(below)) addFile(path, search);
  if (kind !== "folder" || !pattern.rest.mayBegin(`${below}/`)) return;
  if (!entry.isSymbolicLink()) open.push({ path, real: join(folder.real, entry.name), below: `${below}/` });
  else {
    const real = await realpath(path).catch(() => undefined);
    if (real !== undefined) linked.push({ path, real, below: `${below}/` });
  }
}

function addFile(path: string, search: Search): void {
  search.found.add(path);
  if (search.found.size > GLOB_LIMITS.files) {
    throw new RangeError(`The patterns match more than ${GLOB_LIMITS.files} files.`);
  }
}

async function kindOf(entry: Dirent, path: string): Promise<"file" | "folder" | undefined> {
  const facts = entry.isSymbolicLink() ? await stat(path).catch(() => undefined) : entry;
  if (facts?.isFile()) return "file";
  return facts?.isDirectory() ? "folder" : undefined;
}

function isExcluded(path: string, excludes: readonly PathPattern[]): boolean {
  return excludes.some(({ root, rest }) => {
    const below = belowOf(path, root);
    return below !== undefined && rest.matches(below);
  });
}
