import { readFile, realpath } from "node:fs/promises";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

/** The parts of this package by the names they are imported under, loaded when asked for: modules share them with this process. */
const OWN_MODULES: Readonly<Record<string, () => Promise<unknown>>> = {
  waybill: () => import("../index.ts"),
  "waybill/gateway": () => import("./index.ts"),
  "waybill/formats": () => import("../formats/index.ts"),
  "waybill/call": () => import("../call/index.ts"),
  "waybill/call/nats": () => import("../call/nats/index.ts"),
  "waybill/mcp": () => import("../mcp/index.ts"),
  "waybill/openapi": () => import("../openapi/index.ts"),
};

/** Milliseconds a module may take to load. */
const LOAD_MS = 30_000;

/** Files that were loaded natively: asking for one again would give what it was then. */
const loaded = new Set<string>();
let loads = 0;

/**
 * Loads a module anew: JavaScript as Node does, TypeScript with what it imports by `jiti`. JavaScript that imports `waybill` where
 * none is installed gets this package; TypeScript always does, since another copy could not tell our envelopes from data.
 */
export async function loadModule(file: string): Promise<Readonly<Record<string, unknown>>> {
  // Node remembers where a link led the first time.
  const real = await realpath(file).catch(() => file);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const end = (): void => reject(new Error(`It was not loaded within ${LOAD_MS / 1_000} s.`));
    timer = setTimeout(end, LOAD_MS);
  });
  try {
    const loading = /\.[cm]?tsx?$/.test(file) ? loadWithJiti(real) : loadNatively(real);
    return (await Promise.race([loading, late])) as Readonly<Record<string, unknown>>;
  } finally {
    clearTimeout(timer);
  }
}

async function loadNatively(file: string): Promise<unknown> {
  const { href } = pathToFileURL(file);
  loads += 1;
  const specifier = loaded.has(href) ? `${href}?load=${loads}` : href;
  loaded.add(href);
  // CommonJS is kept by the name of its file, whatever it is asked for with.
  const { cache } = createRequire(import.meta.url);
  delete cache[file];
  try {
    return await import(/* @vite-ignore */ specifier);
  } catch (thrown) {
    if (thrown instanceof SyntaxError) await addPlace(thrown, file);
    if (!isWithoutWaybill(thrown)) throw thrown;
    return await loadWithJiti(file);
  }
}

/** Says where a module is no JavaScript, at the head of the stack as for scripts; Node keeps that to itself. */
async function addPlace(thrown: SyntaxError, file: string): Promise<void> {
  const { createJiti } = await import("jiti");
  const source = await readFile(file, "utf8").catch(() => "");
  const parsed = createJiti(file, { fsCache: false }).transform({ source, filename: file, async: true });
  // Nothing is found where a module that it imports is the one.
  const [, line, column] = /^exports\.__JITI_ERROR__ = .*"line":(\d+),"column":(\d+)/.exec(parsed) ?? [];
  if (line !== undefined) thrown.stack = `${file}:${line}:${column}\n${thrown.stack}`;
}

/** Nothing was run yet when an import of this package leads nowhere. */
function isWithoutWaybill(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  const { code } = thrown as NodeJS.ErrnoException;
  return (
    (code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND") &&
    /^Cannot find (?:package|module) 'waybill['/]/.test(thrown.message)
  );
}

async function loadWithJiti(file: string): Promise<unknown> {
  const { createJiti } = await import("jiti");
  const virtualModules = Object.create(null) as Record<string, unknown>;
  for (const [name, load] of Object.entries(OWN_MODULES)) {
    Object.defineProperty(virtualModules, name, { get: load, enumerable: true });
  }
  // No cache on disk: it may lie in a folder that others can write to.
  const options = { moduleCache: false, fsCache: false, interopDefault: false, virtualModules };
  return await createJiti(file, options).import(file);
}
