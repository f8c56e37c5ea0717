import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { statSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { programOf } from "../client/connection-options.ts";
import { type ChildEnvOptions, childEnv } from "./child-env.ts";

/** A child all of whose streams are pipes. */
export type PipedChild = ChildProcessByStdio<Writable, Readable, Readable>;

/** What is started, where, and with which environment. */
export interface SpawnOptions extends Pick<ChildEnvOptions, "env" | "inheritEnv" | "platform"> {
  /** A program on the `PATH` or a path to one; no shell reads it. */
  readonly command: string;
  /** @default none */
  readonly args?: readonly string[] | undefined;
  /** @default that of this process */
  readonly cwd?: string | undefined;
}

/** Starts a program as the leader of a process group of its own; what it throws names the program and the reason. */
export function spawnChild(options: SpawnOptions): PipedChild {
  const { command, args = [], cwd } = options;
  try {
    return spawn(command, [...args], {
      cwd,
      env: childEnv(options),
      stdio: ["pipe", "pipe", "pipe"],
      detached: process.platform !== "win32",
      windowsHide: true,
    });
  } catch (error) {
    throw toStartError(error, options);
  }
}

/** Resolves when the program runs; rejects like `spawnChild` where it cannot be run. */
export async function whenSpawned(child: PipedChild, options: SpawnOptions): Promise<void> {
  try {
    await once(child, "spawn");
  } catch (error) {
    throw toStartError(error, options);
  }
}

/** The program cannot be run; the message is a sentence of ours that may be shown. */
export class StartError extends Error {
  override readonly name = "StartError";
  /** Whether there is no program of that name. */
  readonly isMissing: boolean;

  constructor(message: string, isMissing: boolean, options: ErrorOptions) {
    super(message, options);
    this.isMissing = isMissing;
  }
}

function toStartError(
  cause: unknown,
  { command, cwd, platform = process.platform }: SpawnOptions,
): StartError {
  const wrongFolder = folderProblem(cwd);
  const reason = wrongFolder ?? programProblem(cause, platform);
  const isMissing = wrongFolder === undefined && (cause as NodeJS.ErrnoException).code === "ENOENT";
  const message = `Cannot start ${JSON.stringify(programOf(command))}: ${reason}.`;
  return new StartError(message, isMissing && platform !== "win32", { cause });
}

function folderProblem(cwd: string | undefined): string | undefined {
  if (cwd === undefined) return undefined;
  try {
    return statSync(cwd).isDirectory() ? undefined : "its working directory is not a directory";
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT"
      ? "its working directory does not exist"
      : `its working directory cannot be used (${code})`;
  }
}

/** What npm installs on Windows is a `.cmd` file, which Node starts through a shell alone. */
const WINDOWS_HINT =
  'on Windows a command such as npx is a .cmd file, which cannot be started directly: use "cmd" with the arguments "/c", "npx", …';

function programProblem(cause: unknown, platform: NodeJS.Platform): string {
  const { code = "of an unknown kind" } = cause as NodeJS.ErrnoException;
  if (platform === "win32" && (code === "ENOENT" || code === "EINVAL")) {
    return `there is no such program (${code}); ${WINDOWS_HINT}`;
  }
  switch (code) {
    case "ENOENT":
      return "there is no such command (ENOENT)";
    case "EACCES":
      return "it may not be executed (EACCES)";
    default:
      return `it cannot be run (${code})`;
  }
}
