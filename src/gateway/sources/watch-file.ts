import { type FSWatcher, watch } from "node:fs";
import { basename, dirname } from "node:path";
import { changeSince } from "../change-since.ts";

/** Milliseconds of quiet after which a file counts as written. */
const QUIET_MS = 150;

/** Which file is watched, and for whom. */
export interface FileWatch {
  readonly path: string;
  /** When its reading began, in milliseconds since 1970: what has changed since counts as a change. */
  readonly readAt: number;
  listener(): void;
}

/**
 * Hears of changes to a file, replaced ones included, once it is quiet again; returns how to stop. Keeps no process alive, and hears
 * nothing where the file system cannot tell.
 */
export function watchFile({ path, readAt, listener }: FileWatch): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let watcher: FSWatcher | undefined;
  let isStopped = false;
  const name = basename(path);
  const tell = (): void => {
    clearTimeout(timer);
    if (isStopped) return;
    timer = setTimeout(listener, QUIET_MS);
    timer.unref();
  };
  try {
    // The folder, since an editor may put another file in the place of this one.
    watcher = watch(dirname(path), { persistent: false }, (_, changed) => {
      if (changed === null || changed === name) tell();
    });
    watcher.on("error", () => watcher?.close());
  } catch {
    // Too many are watched, or the folder is gone.
  }
  void changeSince(path, readAt).then((time) => time !== undefined && tell());
  return () => {
    isStopped = true;
    clearTimeout(timer);
    watcher?.close();
  };
}
