import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { link, readFile, rename, rm, writeFile } from "node:fs/promises";

/**
 * Holds something for as long as this process runs, by a file that names it; what another process holds is an `Error` in the words
 * given. What a process that is gone has left is taken over. Resolves with how to let go.
 */
export async function holdForProcess(
  path: string,
  isHeldBy: (pid: number) => string,
): Promise<() => Promise<void>> {
  const own = `${process.pid} ${lookAt(process.pid)?.start ?? ""}`;
  for (let attempt = 1; ; attempt++) {
    if (await createWhole(path, own, attempt > 3)) return () => rm(path, { force: true });
    const found = await readFile(path, "utf8").catch(() => "");
    const pid = Number(found.split(" ", 1)[0]);
    if (isRunning(pid, found)) throw new Error(isHeldBy(pid));
    await removeLeft(path, found);
  }
}

/** Makes a file with its text in it: one that is still empty would look like what a process that is gone has left. */
async function createWhole(path: string, text: string, isLast: boolean): Promise<boolean> {
  const draft = `${path}.${randomUUID()}`;
  try {
    await writeFile(draft, text, { flag: "wx", mode: 0o600 });
    await link(draft, path);
    return true;
  } catch (thrown) {
    if ((thrown as { code?: string }).code !== "EEXIST" || isLast) throw thrown;
    return false;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Removes what a process that is gone has left. Another one may have done so too and taken the folder: what it wrote is put back. */
async function removeLeft(path: string, left: string): Promise<void> {
  const aside = `${path}.${randomUUID()}`;
  try {
    await rename(path, aside);
    if ((await readFile(aside, "utf8")) !== left) await link(aside, path);
  } catch (thrown) {
    if (!["ENOENT", "EEXIST"].includes((thrown as { code?: string }).code ?? "")) throw thrown;
  } finally {
    await rm(aside, { force: true });
  }
}

function isRunning(pid: number, lock: string): boolean {
  if (!(pid > 0)) return false;
  try {
    process.kill(pid, 0);
  } catch (thrown) {
    if ((thrown as { code?: string }).code !== "EPERM") return false;
  }
  const seen = lookAt(pid);
  if (seen === undefined) return true;
  // The number may be another process's by now.
  return !seen.isDead && lock === `${pid} ${seen.start}`;
}

/** When a process started, in words of the system, and whether it has ended without being reaped; nothing where that is not told. */
function lookAt(pid: number): { readonly start: string; readonly isDead: boolean } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const [state = "", ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { start: fields[18] ?? "", isDead: "ZXx".includes(state) };
  } catch {
    return undefined;
  }
}
