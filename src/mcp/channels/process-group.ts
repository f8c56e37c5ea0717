import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

/** How long the killed are waited for; only one that the kernel holds on to takes longer, and it runs no more. */
const KILLED_MS = 5_000;

/** Between looks at what is left: at first, and at most. */
const FIRST_LOOK_MS = 2;
const LAST_LOOK_MS = 64;

/** A process that was started to lead a group, and all that came of it. */
export interface ProcessGroup {
  /** Whether nothing of it is left; once so, always so. */
  isGone(): boolean;
  signal(signal: "SIGTERM" | "SIGKILL"): void;
  /** Resolves with true when nothing is left, with false when the time is over. */
  whenGone(ms: number): Promise<boolean>;
  /** Kills all of it, and resolves when nothing is left. */
  kill(): Promise<void>;
}

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
    platform === "win32" ? new WatchedGroup(windowsProbe(child, pid)) : new WatchedGroup(posixProbe(pid));
  watch(group);
  return group;
}

interface Probe {
  send(signal: "SIGTERM" | "SIGKILL"): void;
  /** The thorough look costs more, and is not fooled by the dead whom nobody has buried. */
  isGone(thorough: boolean): boolean;
}

class WatchedGroup implements ProcessGroup {
  readonly #probe: Probe;
  #gone = false;

  constructor(probe: Probe) {
    this.#probe = probe;
  }

  isGone(): boolean {
    return this.#look(false);
  }

  /** Never to a group that is gone: its number may be another's by now. */
  signal(signal: "SIGTERM" | "SIGKILL"): void {
    if (!this.isGone()) this.#probe.send(signal);
  }

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
