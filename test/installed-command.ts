import { type ChildProcessByStdio, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { inject } from "vitest";
import { type Finished, HARDENED, HARDENED_FLAGS, runNode, withoutConfigLine } from "./run-node.ts";

/** The command as the installed package has it. */
export const CLI = join(inject("installed"), "node_modules/waybill/dist/cli.js");

/** How a command is run. */
export interface CommandOptions {
  /** @default a folder with nothing in it but the installed package */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
}

/** A folder of one test's own, beside which the installed package is found; remove it with `remove`. */
export function openFolder(): { readonly path: string; readonly state: string; remove(): void } {
  const path = mkdtempSync(join(inject("installed"), "folder-"));
  const state = mkdtempSync(join(tmpdir(), "waybill-state-"));
  return {
    path,
    state,
    remove() {
      for (const folder of [path, state]) rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Runs `waybill` to its end; what it wrote is without the line that says which config it uses. */
export async function waybill(args: readonly string[], options: CommandOptions = {}): Promise<Finished> {
  const ran = await runNode([CLI, ...args], { cwd: inject("installed"), ...options });
  return { ...ran, stderr: withoutConfigLine(ran.stderr) };
}

/** A command that goes on, what it has said so far, and how it ended. */
export interface RunningCommand {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  stdout(): string;
  stderr(): string;
  /** Waits for a text on stderr; fails when the command ends before, or after 90 s. */
  says(pattern: RegExp): Promise<RegExpExecArray>;
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null }>;
  /** Ends it with a signal and waits. */
  stop(signal?: NodeJS.Signals): Promise<{ readonly code: number | null; readonly signal: string | null }>;
}

/** Starts `waybill`, which goes on until it is stopped. */
export function startWaybill(args: readonly string[], options: CommandOptions = {}): RunningCommand {
  const { NODE_OPTIONS: _ours, FORCE_COLOR: _colour, ...inherited } = process.env;
  const flags = HARDENED ? HARDENED_FLAGS : [];
  const child = spawn(process.execPath, [...flags, CLI, ...args], {
    cwd: options.cwd ?? inject("installed"),
    env: { ...inherited, ...options.env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  if (options.stdin !== undefined) child.stdin.end(options.stdin);
  const ended = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
    child.once("close", (code, signal) => resolve({ code, signal }));
  });
  let isOver = false;
  ended.then(() => {
    isOver = true;
  });
  return {
    child,
    ended,
    stdout: () => stdout,
    stderr: () => stderr,
    async says(pattern) {
      const end = performance.now() + 90_000;
      for (;;) {
        const found = pattern.exec(stderr);
        if (found !== null) return found;
        if (isOver || performance.now() > end) {
          throw new Error(`waybill ${args.join(" ")} never said ${pattern}; it said:\n${stderr}${stdout}`);
        }
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    },
    async stop(signal = "SIGTERM") {
      if (!isOver) child.kill(signal);
      return await ended;
    },
  };
}
