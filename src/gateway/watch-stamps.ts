import { type BigIntStats, statSync } from "node:fs";
import { stat } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

/** Milliseconds between looks. */
const LOOK_EVERY_MS = 400;

/** Looks take no more than one part in this many of the time, */
const SHARE = 20;
/** and are no more than this many milliseconds apart. */
const LOOK_WITHIN_MS = 10_000;

/** Milliseconds without a change after which files count as written: editors do it in several steps. */
const QUIET_MS = 100;

/** Milliseconds after which files that never rest are taken as they are. */
const LONGEST_UNREST_MS = 1_000;

/** What is looked at, and for whom. */
export interface StampWatchOptions {
  /** The stamps of what was read, taken before it was. */
  readonly known: FileStamps;
  /** Looks at the files that matter now. */
  look(): Promise<FileStamps>;
  /** Hears that something is not what it was; not told again before it has ended. */
  onChange(): Promise<void> | void;
  /** Hears why files could not be looked at, once for each run of failures: it is tried again. Must not throw. */
  onFault(cause: unknown): void;
}

/** Looks at files until it is closed. */
export interface StampWatch {
  /** Takes these for what was read, from now on. */
  expect(known: FileStamps): void;
  /** The same, besides what was read before. */
  expectAlso(known: FileStamps): void;
  close(): void;
}

/**
 * Tells of files that are not what they were when they were read. It looks again and again instead of waiting to be told: so a change
 * before the first look counts, as do links that lead elsewhere, folders that are swapped, and file systems that tell nobody.
 * Keeps no process alive.
 */
export function watchStamps(options: StampWatchOptions): StampWatch {
  const { onChange, onFault } = options;
  let { known } = options;
  /** How long the last looks took: the shortest counts, since others may have had the processor meanwhile. */
  const lookMs = [0, 0, 0];
  let isFaulty = false;
  const closing = new AbortController();
  const { signal } = closing;
  const wait = (ms: number): Promise<void> => delay(ms, undefined, { ref: false, signal });

  const look = async (): Promise<FileStamps> => {
    const startedAt = performance.now();
    const stamps = await options.look();
    lookMs.push(performance.now() - startedAt);
    lookMs.shift();
    return stamps;
  };
  const settle = async (first: FileStamps): Promise<FileStamps> => {
    const until = performance.now() + LONGEST_UNREST_MS;
    let last = first;
    for (;;) {
      await wait(QUIET_MS);
      const now = await look();
      if (areSame(now, last) || performance.now() > until) return now;
      last = now;
    }
  };
  const lookOnce = async (): Promise<void> => {
    const now = await look();
    isFaulty = false;
    if (areSame(now, known)) return;
    const settled = await settle(now);
    signal.throwIfAborted();
    known = settled;
    await onChange();
  };
  const run = async (): Promise<void> => {
    for (;;) {
      try {
        await lookOnce();
      } catch (thrown) {
        if (signal.aborted) return;
        if (!isFaulty) onFault(thrown);
        isFaulty = true;
      }
      await wait(Math.min(Math.max(LOOK_EVERY_MS, Math.min(...lookMs) * SHARE), LOOK_WITHIN_MS));
    }
  };
  // Only ever ends by being closed.
  run().catch(() => {});
  return {
    expect(stamps) {
      known = stamps;
    },
    expectAlso(stamps) {
      known = new Map([...known, ...stamps]);
    },
    close: () => closing.abort(),
  };
}

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

/** Files by their absolute paths, each with what told its content from others when that was looked at. */
export type FileStamps = ReadonlyMap<string, string>;

/** What tells the content of a file from any before and after, links followed; empty where there is none. */
export function stampOf(path: string): string {
  try {
    return write(statSync(path, { bigint: true }));
  } catch {
    return "";
  }
}

/** The stamps of many files. */
export async function stampsOf(paths: Iterable<string>): Promise<FileStamps> {
  const stamps = Array.from(new Set(paths), async (path) => {
    const facts = await stat(path, { bigint: true }).catch(() => undefined);
    return [path, facts === undefined ? "" : write(facts)] as const;
  });
  return new Map(await Promise.all(stamps));
}

/** Tells whether these are the same files with the same contents. */
function areSame(some: FileStamps, others: FileStamps): boolean {
  return some.size === others.size && Array.from(some).every(([path, stamp]) => others.get(path) === stamp);
}

function write({ dev, ino, size, ctimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${size}:${ctimeNs}`;
}
