import { randomUUID } from "node:crypto";
import { readlinkSync } from "node:fs";
import { open, readFile, rm, stat, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { isPlainObject, parseJsonTextOrNone } from "../../core/json/json-value.ts";

/** How long a lock holds, in milliseconds, when its owner does not give it back. */
const LOCK_HOLDS_MS = 120_000;
/** Milliseconds between two attempts, half of it by chance. */
const LOOK_MS = 50;

/** Who holds a lock, and until when (Unix epoch milliseconds). */
interface LockFacts {
  readonly owner: string;
  readonly until: number;
  /** The machine, and there the namespace that process ids belong to. */
  readonly host: string;
  readonly pid: number;
}

/** How long a lock is held at most. */
export interface FileLockOptions {
  /** @default 120_000 */
  readonly holdsMs?: number | undefined;
}

/**
 * Runs something while no other process that names the same file does. A lock is a file with its owner and its end: one whose owner is
 * gone, or whose time is up, is taken over. Rejects when the lock cannot be had within twice the time that one holds.
 */
export async function withFileLock<T>(
  path: string,
  run: () => Promise<T>,
  { holdsMs = LOCK_HOLDS_MS }: FileLockOptions = {},
): Promise<T> {
  const owner = randomUUID();
  const endsAt = Date.now() + 2 * holdsMs;
  while (!(await create(path, owner, holdsMs))) {
    const found = await read(path, holdsMs);
    if (found !== undefined && isOver(found)) await takeOver(path, found, holdsMs);
    else if (Date.now() > endsAt) throw new LockFault(path);
    else await delay(LOOK_MS / 2 + Math.random() * (LOOK_MS / 2));
  }
  try {
    return await run();
  } finally {
    const found = await read(path, holdsMs);
    // A lock that is about to be taken over is left to the process that does so.
    if (found?.owner === owner && !isOver(found)) await rm(path, { force: true });
  }
}

/** A lock that could not be had in time. */
class LockFault extends Error {
  override readonly name = "LockFault";

  constructor(path: string) {
    super(`Another process holds the lock "${path}".`);
  }
}

async function create(path: string, owner: string, holdsMs: number): Promise<boolean> {
  const facts: LockFacts = { owner, until: Date.now() + holdsMs, host: thisHost(), pid: process.pid };
  try {
    const file = await open(path, "wx", 0o600);
    try {
      await file.writeFile(JSON.stringify(facts));
    } finally {
      await file.close();
    }
    return true;
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw thrown;
  }
}

/** What cannot be read yet, or any more, holds as long as any other from when it was written. */
async function read(path: string, holdsMs: number): Promise<LockFacts | undefined> {
  try {
    const { mtimeMs, ino } = await stat(path);
    const facts = parseJsonTextOrNone(await readFile(path, "utf8"));
    if (isFacts(facts)) return { ...facts, until: Math.min(facts.until, mtimeMs + holdsMs) };
    return { owner: `unknown-${ino}`, until: mtimeMs + holdsMs, host: "", pid: 0 };
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw thrown;
  }
}

function isFacts(value: unknown): value is LockFacts {
  if (!isPlainObject(value)) return false;
  const { owner, until, host, pid } = value;
  const isNamed = typeof owner === "string" && /^[\da-f-]{36}$/.test(owner) && typeof host === "string";
  return isNamed && typeof until === "number" && Number.isInteger(pid);
}

function isOver({ until, host, pid }: LockFacts): boolean {
  if (Date.now() >= until) return true;
  if (host !== thisHost()) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === "ESRCH";
  }
}

/** Removes a lock whose owner is gone. One process alone may: the one that creates the file named after that owner. */
async function takeOver(path: string, stale: LockFacts, holdsMs: number): Promise<void> {
  const claim = `${path}.${stale.owner}`;
  try {
    await writeFile(claim, "", { flag: "wx", mode: 0o600 });
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== "EEXIST") throw thrown;
    const claimed = await stat(claim).catch(() => undefined);
    if (claimed !== undefined && claimed.mtimeMs + holdsMs < Date.now()) await rm(claim, { force: true });
    else await delay(LOOK_MS);
    return;
  }
  try {
    if ((await read(path, holdsMs))?.owner === stale.owner) await rm(path, { force: true });
  } finally {
    await rm(claim, { force: true });
  }
}

let host: string | undefined;

/** Containers may share a name and a disk, but not the ids of processes. */
function thisHost(): string {
  if (host !== undefined) return host;
  let space = "";
  try {
    space = readlinkSync("/proc/self/ns/pid");
  } catch {
    // No Linux.
  }
  host = `${hostname()} ${space}`;
  return host;
}
