import { type BigIntStats, statSync } from "node:fs";
import { stat } from "node:fs/promises";

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
export function areSame(some: FileStamps, others: FileStamps): boolean {
  return some.size === others.size && Array.from(some).every(([path, stamp]) => others.get(path) === stamp);
}

function write({ dev, ino, size, ctimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${size}:${ctimeNs}`;
}
