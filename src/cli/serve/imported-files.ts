import { readFile, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/** Files beyond this number are not looked for. */
const MOST_FILES = 500;
/** Larger files are not read. */
const MOST_BYTES = 1024 * 1024;

const SPECIFIER = /\b(?:from|import|require)\s*\(?\s*["'](\.{1,2}\/[^"'\n]{1,500})["']/g;
const ENDINGS = ["", ".ts", ".mts", ".js", ".mjs", ".json", "/index.ts", "/index.js"];

/** Finds the files that TypeScript modules import by relative paths, and what those import: they are loaded anew with them. */
export async function importedFiles(modules: readonly string[]): Promise<readonly string[]> {
  const found = new Set<string>();
  const open = modules.filter(isTypeScript);
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    for (const specifier of await specifiersIn(file)) {
      const path = await resolveFile(resolve(dirname(file), specifier));
      if (path === undefined || found.has(path) || modules.includes(path)) continue;
      if (found.size >= MOST_FILES) return [...found];
      found.add(path);
      if (/\.[cm]?[jt]sx?$/.test(path)) open.push(path);
    }
  }
  return [...found];
}

function isTypeScript(file: string): boolean {
  return /\.[cm]?tsx?$/.test(file);
}

async function specifiersIn(file: string): Promise<readonly string[]> {
  try {
    if ((await stat(file)).size > MOST_BYTES) return [];
    const text = await readFile(file, "utf8");
    return Array.from(text.matchAll(SPECIFIER), ([, specifier]) => specifier as string);
  } catch {
    // It is gone; the module that imports it says so when it is loaded.
    return [];
  }
}

async function resolveFile(path: string): Promise<string | undefined> {
  // TypeScript imports itself under the endings that its output has.
  const written = path.replace(/\.([cm]?)js$/, ".$1ts");
  for (const candidate of [...ENDINGS.map((ending) => `${path}${ending}`), written]) {
    const facts = await stat(candidate).catch(() => undefined);
    if (facts?.isFile()) return candidate;
  }
  return undefined;
}
