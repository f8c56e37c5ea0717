import { stampsOf } from "../file-stamps.ts";
import { watchStamps } from "../watch-stamps.ts";

/** Which file is watched, and for whom. */
export interface FileWatch {
  readonly path: string;
  /** Its stamp from before it was read. */
  readonly stamp: string;
  listener(): void;
}

/** Hears of changes to a file, replaced ones included, once it is quiet again; returns how to stop. Keeps no process alive. */
export function watchFile({ path, stamp, listener }: FileWatch): () => void {
  const watch = watchStamps({
    known: new Map([[path, stamp]]),
    look: () => stampsOf([path]),
    onChange: listener,
    // What cannot be looked at counts as gone.
    onFault: () => {},
  });
  return () => watch.close();
}
