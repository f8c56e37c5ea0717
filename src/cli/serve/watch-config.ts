import { resolve } from "node:path";
import { watch } from "chokidar";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import { createPathMatcher, findFiles, type PathMatcher } from "../../gateway/glob.ts";
import { importedFiles } from "./imported-files.ts";

/** Changes that come within this time, in milliseconds, are taken together: editors write in several steps. */
const SETTLE_MS = 100;

/** Watches what a config is made of. */
export interface ConfigWatch {
  /** Watches what this config is made of from now on. */
  follow(loaded: LoadedConfig): Promise<void>;
  close(): Promise<void>;
}

/**
 * Calls `onChange` some time after a file of the config, a module of operations or what a TypeScript module imports has changed, one at a
 * time. Nothing else that lies beside them counts: modules may write files of their own. Documents are watched by their sources.
 */
export function watchConfig(onChange: () => Promise<void>, onFault: (cause: unknown) => void): ConfigWatch {
  let parts: WatchedParts = { files: new Set(), modules: createPathMatcher([], ".") };
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  const isOurs = (path: string): boolean => parts.files.has(path) || parts.modules.matches(path);
  const isOnTheWay = (path: string): boolean =>
    parts.modules.roots.includes(path) || parts.modules.mayHold(path);
  const watcher = watch([], {
    ignoreInitial: true,
    atomic: true,
    awaitWriteFinish: { stabilityThreshold: 50 },
    ignored: (path) => !isOurs(resolve(path)) && !isOnTheWay(resolve(path)),
  });
  watcher.on("error", onFault);
  watcher.on("all", (_, path) => {
    if (!isOurs(resolve(path))) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      running = running.then(onChange).catch(onFault);
    }, SETTLE_MS);
  });
  let watched: ReadonlySet<string> = new Set();
  return {
    async follow(loaded) {
      parts = await partsOf(loaded);
      const paths = new Set([...parts.files, ...parts.modules.roots]);
      const gone = [...watched].filter((path) => !paths.has(path));
      if (gone.length > 0) watcher.unwatch(gone);
      watcher.add([...paths].filter((path) => !watched.has(path)));
      watched = paths;
    },
    async close() {
      clearTimeout(timer);
      await watcher.close();
    },
  };
}

interface WatchedParts {
  readonly files: ReadonlySet<string>;
  /** Where modules lie, so that new ones are seen. */
  readonly modules: PathMatcher;
}

async function partsOf({ config, files, baseDir }: LoadedConfig): Promise<WatchedParts> {
  const { operations = [] } = config;
  const patterns = typeof operations === "string" ? [operations] : operations;
  const modules = patterns.length === 0 ? [] : await findFiles(patterns, baseDir);
  const imported = await importedFiles(modules);
  const all = [...files, ...imported].map((path) => resolve(baseDir, path));
  return { files: new Set(all), modules: createPathMatcher(patterns, baseDir) };
}
