import { randomUUID } from "node:crypto";
import { chmod, mkdir, realpath, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CommandError } from "../io.ts";
import type { InitPlan, PlannedFile } from "./init-plan.ts";

/** Writes what was planned: each file whole or not at all, the config last, so that it never refers to what is not there. */
export async function writePlan(cwd: string, plan: InitPlan): Promise<void> {
  for (const file of plan.files.slice(0, -1)) await writePlanned(cwd, file);
  for (const { from, to } of plan.moved) await attempt(from, () => rename(join(cwd, from), join(cwd, to)));
  for (const file of plan.files.slice(-1)) await writePlanned(cwd, file);
}

async function writePlanned(cwd: string, { path, text, change, secrets }: PlannedFile): Promise<void> {
  // A link stays a link.
  const target = await realpath(join(cwd, path)).catch(() => join(cwd, path));
  await attempt(path, async () => {
    await mkdir(dirname(target), { recursive: true });
    const mode = secrets === undefined ? 0o666 : 0o600;
    // What came to stand there since the plan was made is not overwritten.
    if (change !== "added") return await writeFile(target, text, { flag: "wx", mode });
    if (secrets === undefined) return await writeFile(target, text);
    const draft = `${target}.${randomUUID()}.tmp`;
    try {
      await writeFile(draft, text, { flag: "wx", mode });
      await chmod(draft, mode);
      await rename(draft, target);
    } finally {
      await rm(draft, { force: true });
    }
  });
}

async function attempt(path: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    throw new CommandError(`${path} cannot be written (${code ?? message}).`, undefined, { cause });
  }
}
