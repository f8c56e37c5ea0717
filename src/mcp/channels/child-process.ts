import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, statSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { FailureCause } from "../../core/errors/failure.ts";
import { programOf } from "../client/connection-options.ts";

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
  readonly failure: FailureCause = { reason: "start" };

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

/** What of this process's environment a child is given without being asked for: where programs, files and words are found. */
const SAFE_NAMES = ["PATH", "HOME", "LANG", "TERM", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ"] as const;

const SAFE_WINDOWS_NAMES = [
  "PATH",
  "PATHEXT",
  "APPDATA",
  "LOCALAPPDATA",
  "COMSPEC",
  "HOMEDRIVE",
  "HOMEPATH",
  "NUMBER_OF_PROCESSORS",
  "OS",
  "PROCESSOR_ARCHITECTURE",
  "PROGRAMDATA",
  "PROGRAMFILES",
  "PROGRAMFILES(X86)",
  "SYSTEMDRIVE",
  "SYSTEMROOT",
  "TEMP",
  "TMP",
  "USERNAME",
  "USERPROFILE",
  "WINDIR",
] as const;

/** Variables by name. */
type Environment = Readonly<Record<string, string | undefined>>;

interface ChildEnvOptions {
  /** Given to the child as it is; wins over what is inherited. @default nothing */
  readonly env?: Environment | undefined;
  /** Names that are inherited beside the safe ones, or all of them. @default none */
  readonly inheritEnv?: readonly string[] | "all" | undefined;
  /** @default process.env */
  readonly parent?: Environment | undefined;
  /** @default process.platform */
  readonly platform?: NodeJS.Platform | undefined;
}

/** Makes the environment of a child: a short safe list of this process's variables, what is asked for, and what is given. */
export function childEnv(options: ChildEnvOptions = {}): Record<string, string> {
  const { env = {}, inheritEnv = [], parent = process.env, platform = process.platform } = options;
  // Windows knows no case in names, and would take the first of two spellings.
  const keyOf = (name: string): string => (platform === "win32" ? name.toUpperCase() : name);
  const safe: readonly string[] = platform === "win32" ? SAFE_WINDOWS_NAMES : SAFE_NAMES;
  const wanted = inheritEnv === "all" ? undefined : new Set([...safe, ...inheritEnv].map(keyOf));
  const found = new Map<string, readonly [name: string, value: string]>();
  for (const [name, value] of Object.entries(parent)) {
    // A value like that is a function some shells would run.
    if (value === undefined || value.startsWith("()")) continue;
    if (!wanted || wanted.has(keyOf(name)) || name.startsWith("LC_")) found.set(keyOf(name), [name, value]);
  }
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined) found.set(keyOf(name), [name, value]);
  }
  return Object.fromEntries(found.values());
}

/** How long the killed are waited for; only one that the kernel holds on to takes longer, and it runs no more. */
const KILLED_MS = 5_000;

/** Between looks at what is left: at first, and at most. */
const FIRST_LOOK_MS = 2;
const LAST_LOOK_MS = 64;

/** Those that end with this process, whatever ends it. */
const alive = new Set<ProcessGroup>();

function killAll(): void {
  for (const group of alive) group.signal("SIGKILL");
}

function watch(group: ProcessGroup): void {
  if (alive.size === 0) process.on("exit", killAll);
  alive.add(group);
}

function unwatch(group: ProcessGroup): void {
  if (alive.delete(group) && alive.size === 0) process.off("exit", killAll);
}

/** Looks after the group of a child that was started as its leader (`detached` on POSIX); it never outlives this process. */
export function createProcessGroup(child: ChildProcess, platform: NodeJS.Platform): ProcessGroup {
  const { pid } = child;
  if (pid === undefined) throw new TypeError("The process was not started.");
  const group =
    platform === "win32" ? new ProcessGroup(windowsProbe(child, pid)) : new ProcessGroup(posixProbe(pid));
  watch(group);
  return group;
}

interface Probe {
  send(signal: "SIGTERM" | "SIGKILL"): void;
  /** The thorough look costs more, and is not fooled by the dead whom nobody has buried. */
  isGone(thorough: boolean): boolean;
}

/** A process that was started to lead a group, and all that came of it. */
export class ProcessGroup {
  readonly #probe: Probe;
  #gone = false;

  constructor(probe: Probe) {
    this.#probe = probe;
  }

  /** Whether nothing of it is left; once so, always so. */
  isGone(): boolean {
    return this.#look(false);
  }

  /** Never to a group that is gone: its number may be another's by now. */
  signal(signal: "SIGTERM" | "SIGKILL"): void {
    if (!this.isGone()) this.#probe.send(signal);
  }

  /** Resolves with true when nothing is left, with false when the time is over. */
  async whenGone(ms: number): Promise<boolean> {
    const end = performance.now() + ms;
    for (
      let wait = FIRST_LOOK_MS;
      !this.#look(wait >= LAST_LOOK_MS);
      wait = Math.min(wait * 2, LAST_LOOK_MS)
    ) {
      const left = end - performance.now();
      if (left <= 0) return false;
      await delay(Math.min(wait, left));
    }
    return true;
  }

  /** Kills all of it, and resolves when nothing is left. */
  async kill(): Promise<void> {
    if (this.isGone()) return;
    this.signal("SIGKILL");
    await this.whenGone(KILLED_MS);
    unwatch(this);
  }

  #look(thorough: boolean): boolean {
    if (!this.#gone && this.#probe.isGone(thorough)) {
      this.#gone = true;
      unwatch(this);
    }
    return this.#gone;
  }
}

function posixProbe(pid: number): Probe {
  return {
    send: (signal) => void trySignal(pid, signal),
    isGone: (thorough) => trySignal(pid, 0) || (thorough && areOnlyZombies(pid)),
  };
}

/** Signals a group and tells whether there is none; one that may not be signalled is there. */
function trySignal(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-pid, signal);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
}

/** Tells, where there is a `/proc`, whether all of a group are dead and wait for a parent that never asks. */
function areOnlyZombies(pid: number): boolean {
  try {
    const others = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    return !others.some((name) => isRunningIn(pid, name));
  } catch {
    return false;
  }
}

function isRunningIn(group: number, name: string): boolean {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${name}/stat`, "latin1");
  } catch {
    return false;
  }
  // The name of the program, in parentheses, may hold anything; behind it are the state, the parent and the group.
  const [state, , leader] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(leader) === group && state !== "Z" && state !== "X";
}

function windowsProbe(child: ChildProcess, pid: number): Probe {
  return {
    send(signal) {
      if (signal === "SIGKILL") {
        // It takes the whole tree with it; one that cannot be started leaves it to `kill`.
        spawn("taskkill", ["/pid", String(pid), "/T", "/F"], { stdio: "ignore", windowsHide: true }).on(
          "error",
          () => child.kill("SIGKILL"),
        );
      } else child.kill(signal);
    },
    isGone: () => child.exitCode !== null || child.signalCode !== null,
  };
}
