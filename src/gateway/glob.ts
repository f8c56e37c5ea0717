import type { Dirent } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { join, resolve, sep } from "node:path";

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

/** The most characters of one pattern. */
export const MOST_PATTERN_CHARACTERS = 1_024;

type Test = (character: string) => boolean;

/** A place in a pattern: a character to read and where that leads, or further places that are reached without reading. */
type Step =
  | { readonly accepts: Test; readonly next: number }
  | { readonly accepts?: never; readonly ways: number[] };

type Places = ReadonlySet<number>;

const ANY: Test = () => true;
const WITHIN: Test = (character) => character !== "/";

/**
 * A pattern made ready: `*` any characters, `?` one, `{a,b}` either. For paths `*` and `?` stay within a name and `**` does not.
 * A text is followed in all places of the pattern at once, so that no pattern takes more than its own length for each character.
 */
class GlobPattern {
  readonly #steps: Step[] = [];
  readonly #characters: readonly string[];
  readonly #forPaths: boolean;
  readonly #one: Test;
  readonly #start: Places;
  readonly #end: number;
  #at = 0;

  constructor(pattern: string, forPaths: boolean) {
    if (pattern.length > MOST_PATTERN_CHARACTERS) {
      throw new RangeError(`A pattern has more than ${MOST_PATTERN_CHARACTERS} characters.`);
    }
    this.#characters = [...pattern];
    this.#forPaths = forPaths;
    this.#one = forPaths ? WITHIN : ANY;
    const first = this.#fork();
    this.#end = this.#readSequence(first, false);
    this.#start = this.#reach([first]);
  }

  matches(text: string): boolean {
    return this.#walk(text).has(this.#end);
  }

  /** Tells whether a longer text that begins like this one can still match. */
  mayBegin(text: string): boolean {
    return this.#walk(text).size > 0;
  }

  #walk(text: string): Places {
    let places = this.#start;
    for (const character of text) {
      const next: number[] = [];
      for (const place of places) {
        const step = this.#steps[place] as Step;
        if (step.accepts?.(character)) next.push(step.next);
      }
      if (next.length === 0) return new Set();
      places = this.#reach(next);
    }
    return places;
  }

  #reach(from: readonly number[]): Places {
    const reached = new Set<number>();
    const open = [...from];
    for (let place = open.pop(); place !== undefined; place = open.pop()) {
      if (reached.has(place)) continue;
      reached.add(place);
      const step = this.#steps[place] as Step;
      if (step.accepts === undefined) open.push(...step.ways);
    }
    return reached;
  }

  /** Reads up to the end, or in braces up to what ends an alternative; returns the place after it. */
  #readSequence(from: number, inBraces: boolean): number {
    let place = from;
    while (this.#at < this.#characters.length) {
      const character = this.#characters[this.#at] as string;
      if (inBraces && (character === "," || character === "}")) return place;
      this.#at += 1;
      if (character === "*") place = this.#readStar(place);
      else if (character === "?") place = this.#read(place, this.#one);
      else if (character === "{" && this.#closes(this.#at)) place = this.#readBraces(place);
      else place = this.#read(place, (other) => other === character);
    }
    return place;
  }

  #readStar(from: number): number {
    const isDouble = this.#characters[this.#at] === "*";
    while (this.#characters[this.#at] === "*") this.#at += 1;
    if (!this.#forPaths || !isDouble) return this.#repeat(from, this.#one);
    const end = this.#repeat(from, ANY);
    if (this.#characters[this.#at] !== "/") return end;
    // "**/" stands for no folder at all as well.
    this.#at += 1;
    const after = this.#read(end, (character) => character === "/");
    this.#link(from, after);
    return after;
  }

  #readBraces(from: number): number {
    const end = this.#fork();
    for (let isOpen = true; isOpen; this.#at += 1) {
      const start = this.#fork();
      this.#link(from, start);
      this.#link(this.#readSequence(start, true), end);
      isOpen = this.#characters[this.#at] === ",";
    }
    return end;
  }

  /** Tells whether a brace that opened before `at` is closed further on; one that is not stands for itself. */
  #closes(at: number): boolean {
    let depth = 1;
    for (let i = at; i < this.#characters.length && depth > 0; i++) {
      if (this.#characters[i] === "{") depth += 1;
      if (this.#characters[i] === "}") depth -= 1;
    }
    return depth === 0;
  }

  #repeat(from: number, accepts: Test): number {
    const loop = this.#fork();
    this.#link(from, loop);
    this.#link(loop, this.#add({ accepts, next: loop }));
    const end = this.#fork();
    this.#link(loop, end);
    return end;
  }

  #read(from: number, accepts: Test): number {
    const end = this.#fork();
    this.#link(from, this.#add({ accepts, next: end }));
    return end;
  }

  #fork(): number {
    return this.#add({ ways: [] });
  }

  #link(from: number, to: number): void {
    const step = this.#steps[from] as Step;
    if (step.accepts === undefined) step.ways.push(to);
  }

  #add(step: Step): number {
    return this.#steps.push(step) - 1;
  }
}
