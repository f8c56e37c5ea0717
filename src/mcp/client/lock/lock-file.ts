import { randomUUID } from "node:crypto";
import { link, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { canonicalJson, type JsonValue, parseJsonText } from "../../../core/json/json-value.ts";
import { escapeHidden } from "../../../core/text/clean-text.ts";
import { readToolLock, type ToolLock } from "./tool-lock.ts";

/** The name of the file by convention. */
export const LOCK_FILE_NAME = "waybill.lock.json";

/** Bytes of a lock file that are read. */
const MAX_LOCK_BYTES = 268_435_456;

/** How often a change is made that others interrupt. */
const MAX_CHANGES = 10;

/** Reads a lock; nothing where there is no such file, an `Error` that says why where it cannot be read. */
export async function readLockFile(path: string): Promise<ToolLock | undefined> {
  let text: string;
  try {
    const { size } = await stat(path);
    if (size > MAX_LOCK_BYTES) throw new Error(`It is larger than ${MAX_LOCK_BYTES} bytes.`);
    text = await readFile(path, "utf8");
  } catch (cause) {
    if ((cause as { code?: unknown }).code === "ENOENT") return undefined;
    throw new Error(`The lock file "${path}" cannot be read.`, { cause });
  }
  try {
    return readToolLock(parseJsonText(text));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : "";
    throw new Error(`The lock file "${path}" cannot be used. ${reason}`, { cause });
  }
}

/** Writes a lock in one step, so that nobody ever reads half of it; equal locks give equal bytes. A link stays a link. */
export async function writeLockFile(path: string, lock: ToolLock): Promise<void> {
  await replaceFile(path, lock, async () => {});
}

/** Changes a lock as it is now in the file, one change at a time over all processes; gives what was written. */
export async function updateLockFile(
  path: string,
  change: (lock: ToolLock | undefined) => ToolLock,
): Promise<ToolLock> {
  for (let made = 1; ; made++) {
    try {
      await assertFolder(path);
      return await holdFile(await toRealPath(path), async (assertHeld) => {
        const lock = change(await readLockFile(path));
        await replaceFile(path, lock, assertHeld);
        return lock;
      });
    } catch (error) {
      const isLost = error instanceof Error && error.cause instanceof HoldLost;
      if (!isLost || made >= MAX_CHANGES) throw error;
    }
  }
}

async function assertFolder(path: string): Promise<void> {
  const folder = dirname(path);
  const isFolder = await stat(folder).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (isFolder) return;
  throw new Error(`The lock file "${path}" cannot be written: there is no folder "${folder}".`);
}

async function replaceFile(path: string, lock: ToolLock, assertReady: () => Promise<void>): Promise<void> {
  const sorted: unknown = JSON.parse(canonicalJson(lock as unknown as JsonValue));
  // A reviewer of the file sees all that is in it.
  const text = `${escapeHidden(JSON.stringify(sorted, undefined, 2))}\n`;
  const target = await toRealPath(path);
  const draft = `${target}.${randomUUID()}.tmp`;
  try {
    await writeFile(draft, text, { flag: "wx" });
    await assertReady();
    await rename(draft, target);
    // The process that took over meanwhile may have read the file before, and write it without this change.
    await assertReady();
  } catch (cause) {
    await rm(draft, { force: true });
    throw new Error(`The lock file "${path}" cannot be written.`, { cause });
  }
}

/** Follows links, so that the file they lead to is replaced and not they. */
async function toRealPath(path: string): Promise<string> {
  return await realpath(path).catch(() => path);
}

/** How one process waits for another that changes the same file, in milliseconds. */
export const HOLD_WAITS = {
  /** A hold that is older was left behind by a process that is gone. */
  stale: 10_000,
  /** Between looks. */
  look: 25,
  /** After which a file that is always held is an error. */
  most: 30_000,
} as const;

/** Another process took this one for gone; what was to be done under the hold has to be done again. */
export class HoldLost extends Error {
  override readonly name = "HoldLost";
}

/** Who is next, within this process, by file. */
const turns = new Map<string, Promise<unknown>>();

/**
 * Runs something while nobody else, here or in another process, may change a file. `assertHeld` throws `HoldLost` where another
 * process took this one for gone, and has to be asked right before the change is made.
 */
export async function holdFile<T>(
  path: string,
  run: (assertHeld: () => Promise<void>) => Promise<T>,
): Promise<T> {
  const file = resolve(path);
  const before = turns.get(file) ?? Promise.resolve();
  const turn = before.catch(() => {}).then(() => runHeld(file, run));
  turns.set(file, turn);
  try {
    return await turn;
  } finally {
    if (turns.get(file) === turn) turns.delete(file);
  }
}

async function runHeld<T>(file: string, run: (assertHeld: () => Promise<void>) => Promise<T>): Promise<T> {
  const hold = `${file}.hold`;
  const token = randomUUID();
  await take(hold, token);
  const isOurs = async () => (await readFile(hold, "utf8").catch(() => "")) === token;
  try {
    return await run(async () => {
      if (!(await isOurs())) throw new HoldLost(`"${hold}" was taken over by another process.`);
    });
  } finally {
    if (await isOurs()) await rm(hold, { force: true });
  }
}

async function take(hold: string, token: string): Promise<void> {
  const endsAt = performance.now() + HOLD_WAITS.most;
  for (;;) {
    try {
      await writeFile(hold, token, { flag: "wx" });
      return;
    } catch (cause) {
      if ((cause as { code?: unknown }).code !== "EEXIST") {
        throw new Error(`The file "${hold}" cannot be made.`, { cause });
      }
      if (performance.now() > endsAt) {
        throw new Error(`The file "${hold}" is held by another process; remove it if there is none.`, {
          cause,
        });
      }
    }
    if (!(await removeStale(hold))) await new Promise((again) => setTimeout(again, HOLD_WAITS.look));
  }
}

/**
 * Removes a hold that was left behind; tells whether it did. Between the look and the removal others may have removed it too, and
 * one of them may have taken a new one: it is moved aside first, looked at again, and put back where it is not the one that was meant.
 */
async function removeStale(hold: string): Promise<boolean> {
  try {
    const left = await look(hold);
    if (Date.now() - left.mtimeMs <= HOLD_WAITS.stale) return false;
    const aside = `${hold}.${randomUUID()}`;
    await rename(hold, aside);
    const moved = await look(aside);
    const isMeant = moved.token === left.token && moved.mtimeMs === left.mtimeMs;
    // Where it cannot be put back, its owner finds that it is lost, and starts again.
    if (!isMeant) await link(aside, hold).catch(() => {});
    await rm(aside, { force: true });
    return isMeant;
  } catch (cause) {
    if ((cause as { code?: unknown }).code === "ENOENT") return false;
    throw new Error(`The file "${hold}" was left behind, and cannot be removed.`, { cause });
  }
}

async function look(hold: string): Promise<{ readonly token: string; readonly mtimeMs: number }> {
  const found = await stat(hold);
  if (!found.isFile()) throw new Error("It is no file.");
  return { token: await readFile(hold, "utf8"), mtimeMs: found.mtimeMs };
}
