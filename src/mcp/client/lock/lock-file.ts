import { randomUUID } from "node:crypto";
import { readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { parseJsonText } from "../../../core/json/json-text.ts";
import type { JsonValue } from "../../../core/json/json-value.ts";
import { escapeHidden } from "../../../core/text/clean-text.ts";
import { canonicalJson } from "./definition-hash.ts";
import { HoldLost, holdFile } from "./file-hold.ts";
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
  // Whoever reviews the file sees all that is in it.
  const text = `${escapeHidden(JSON.stringify(sorted, undefined, 2))}\n`;
  const target = await toRealPath(path);
  const draft = `${target}.${randomUUID()}.tmp`;
  try {
    await writeFile(draft, text, { flag: "wx" });
    await assertReady();
    await rename(draft, target);
    // Whoever took over meanwhile may have read the file before, and write it without this change.
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
