import { type FSWatcher, watch } from "node:fs";
import { basename, dirname } from "node:path";

/** Milliseconds of quiet after which a file counts as written. */
const QUIET_MS = 150;

/**
 * Hears of changes to a file, replaced ones included, once it is quiet again; returns how to stop. Keeps no process alive, and hears
 * nothing where the file system cannot tell.
 */
export function watchFile(path: string, listener: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let watcher: FSWatcher | undefined;
  const name = basename(path);
  try {
    // The folder, since an editor may put another file in the place of this one.
    watcher = watch(dirname(path), { persistent: false }, (_, changed) => {
      if (changed !== null && changed !== name) return;
      clearTimeout(timer);
      timer = setTimeout(listener, QUIET_MS);
      timer.unref();
    });
    watcher.on("error", () => watcher?.close());
  } catch {
    // Too many are watched, or the folder is gone.
  }
  return () => {
    clearTimeout(timer);
    watcher?.close();
  };
}
