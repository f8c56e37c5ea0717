import { existsSync } from "node:fs";
import { dirname, resolve, sep } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type FSWatcher, watch } from "chokidar";
import { changeSince } from "../../gateway/change-since.ts";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import { createPathMatcher, findFiles, type PathMatcher } from "../../gateway/glob.ts";
import { importedFiles } from "./imported-files.ts";

/** Changes that come within this time, in milliseconds, are taken together: editors write in several steps. */
const SETTLE_MS = 100;

/** How long a big folder is waited for, in milliseconds, before work goes on without it being watched yet. */
const WATCHED_WITHIN_MS = 2_000;

/** Watches what a config is made of. */
export interface ConfigWatch {
  /** Watches what this config is made of from now on; what has changed since its reading began counts as a change. */
  follow(loaded: LoadedConfig, readAt: number): Promise<void>;
  close(): Promise<void>;
}

/**
 * Calls `onChange` some time after a file of the config, a module of operations or what a TypeScript module imports has changed, one at a
 * time. Nothing else that lies beside them counts: modules may write files of their own. Documents are watched by their sources.
 */
export function watchConfig(onChange: () => Promise<void>, onFault: (cause: unknown) => void): ConfigWatch {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let watcher: FSWatcher | undefined;
  let isClosed = false;
  let told: readonly string[] = [];
  const tell = (): void => {
    clearTimeout(timer);
    if (isClosed) return;
    timer = setTimeout(() => {
      running = running.then(onChange).catch(onFault);
    }, SETTLE_MS);
  };
  /** A watcher hears of what comes after it: what came between the reading and that is looked for. */
  const lookBack = async (parts: WatchedParts, readAt: number): Promise<void> => {
    const changes = await changesSince(parts, readAt);
    // A file may bear a time that is still to come: it is told of once.
    if (changes.some((change) => !told.includes(change))) tell();
    told = changes;
  };
  return {
    async follow(loaded, readAt) {
      await watcher?.close();
      const parts = await partsOf(loaded);
      if (isClosed) return;
      const opened = openWatcher(parts, { tell, onFault });
      watcher = opened;
      const watched = whenReady(opened).then(() => lookBack(parts, readAt));
      watched.catch(onFault);
      await Promise.race([watched.catch(() => {}), delay(WATCHED_WITHIN_MS, undefined, { ref: false })]);
    },
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await watcher?.close();
    },
  };
}

interface WatchListeners {
  tell(): void;
  onFault(cause: unknown): void;
}

function openWatcher({ files, modules }: WatchedParts, { tell, onFault }: WatchListeners): FSWatcher {
  const starts = [...new Set([...files, ...modules.roots])];
  const isOurs = (path: string): boolean => files.has(path) || modules.matches(path);
  const isAbove = (path: string): boolean =>
    starts.some((start) => start === path || start.startsWith(`${path}${sep}`));
  const isOnTheWay = (path: string): boolean => isAbove(path) || modules.mayHold(path);
  const watcher = watch([...new Set(starts.map(nearestThere))], {
    ignoreInitial: true,
    atomic: true,
    awaitWriteFinish: { stabilityThreshold: 50 },
    ignored: (path) => !isOurs(resolve(path)) && !isOnTheWay(resolve(path)),
  });
  watcher.on("error", onFault);
  watcher.on("all", (_, path) => isOurs(resolve(path)) && tell());
  return watcher;
}

/** The path itself, or the folder above it in which it, or what leads to it, would appear. */
function nearestThere(path: string): string {
  const above = dirname(path);
  return above === path || existsSync(path) ? path : nearestThere(above);
}

function whenReady(watcher: FSWatcher): Promise<void> {
  return new Promise((resolve) => watcher.once("ready", resolve));
}

/** What has changed since a moment, each with the time of its change; a file that is gone too. */
async function changesSince({ files, found, find }: WatchedParts, moment: number): Promise<string[]> {
  const now = await find();
  const gone = found.filter((path) => !now.includes(path)).map((path) => `${path} is gone`);
  const changed = [...new Set([...files, ...now])].map(async (path) => {
    const time = await changeSince(path, moment);
    return time === undefined ? [] : [`${path} at ${time}`];
  });
  return [...gone, ...(await Promise.all(changed)).flat()];
}

/** What is watched. */
interface WatchedParts {
  readonly files: ReadonlySet<string>;
  /** Where modules lie, so that new ones are seen. */
  readonly modules: PathMatcher;
  /** The modules there are. */
  readonly found: readonly string[];
  /** Finds the modules there are by then. */
  find(): Promise<string[]>;
}

async function partsOf({ config, files, baseDir }: LoadedConfig): Promise<WatchedParts> {
  const { operations = [] } = config;
  const patterns = typeof operations === "string" ? [operations] : operations;
  const find = (): Promise<string[]> => findFiles(patterns, baseDir);
  const found = await find();
  const all = [...files, ...(await importedFiles(found))].map((path) => resolve(baseDir, path));
  return { files: new Set(all), modules: createPathMatcher(patterns, baseDir), found, find };
}
