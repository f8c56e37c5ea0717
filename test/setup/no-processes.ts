import childProcess from "node:child_process";
import { existsSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { delimiter, isAbsolute, join } from "node:path";
import { afterAll, afterEach, expect } from "vitest";

const STARTERS = ["spawn", "spawnSync", "exec", "execSync", "execFile", "execFileSync", "fork"] as const;
const STARTED = Symbol.for("waybill.test.no-processes");

/** A command that is not there starts nothing, and how that is told is for unit tests too. */
function isThere(command: string): boolean {
  if (isAbsolute(command)) return existsSync(command);
  if (command.includes("/")) return true;
  return (process.env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, command)));
}

/** Unit tests start no process: what they show holds in any clone, on any machine, and quickly. Returns what was tried. */
function guard(): string[] {
  const functions = childProcess as unknown as Record<string | symbol, unknown>;
  const known = functions[STARTED] as string[] | undefined;
  if (known !== undefined) return known;
  const started: string[] = [];
  functions[STARTED] = started;
  for (const name of STARTERS) {
    const start = functions[name] as (...args: unknown[]) => unknown;
    functions[name] = (command: unknown, ...rest: unknown[]) => {
      const isShell = rest.some((one) => typeof one === "object" && one !== null && "shell" in one);
      const isProgram = name.startsWith("spawn") || name.startsWith("execFile");
      if (isProgram && !isShell && !isThere(String(command))) return start(command, ...rest);
      const file = expect.getState().testPath ?? "a unit test";
      const said = `${file} starts a process (${name} of ${String(command)}). Unit tests must not: move the test to a file named *.process.test.ts.`;
      started.push(said);
      throw new Error(said);
    };
  }
  syncBuiltinESMExports();
  return started;
}

const started = guard();

// The code under test may take the refusal for a command that cannot be started, and go on.
afterEach(() => {
  const [said] = started.splice(0);
  if (said !== undefined) throw new Error(said);
});

// Vitest has told of what a hook of the whole file tried.
afterAll(() => {
  started.length = 0;
});
