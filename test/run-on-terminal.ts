import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, it } from "vitest";
import { CLI } from "./installed-command.ts";
import { HARDENED, HARDENED_FLAGS, ROOT, runCommand, withoutConfigLine } from "./run-node.ts";

/** One thing to wait for, and what to do then. */
export interface TerminalStep {
  /** A regular expression over what came since the last step. */
  readonly seen?: string;
  /** A file that has to be there. */
  readonly file?: string;
  readonly type?: string;
  /** A file that is made. */
  readonly touch?: string;
  /** Sent to the command alone; Ctrl-C (`"\u0003"` typed) goes to its children too. */
  readonly signal?: NodeJS.Signals;
  /** The terminal gets this width. */
  readonly columns?: number;
}

/** How a command is run on a terminal. */
export interface TerminalOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** @default 80 */
  readonly columns?: number;
  /** Streams that are no terminal; stdin is empty then. @default none */
  readonly pipes?: readonly ("stdin" | "stdout" | "stderr")[];
  readonly steps?: readonly TerminalStep[];
  /** Seconds. @default 100 */
  readonly within?: number;
}

/** What a command left behind. */
export interface TerminalRun {
  readonly code: number | null;
  readonly signal: string | null;
  /** What came to the terminal, line feeds as the terminal gets them. */
  readonly screen: string;
  readonly stdout: string;
  readonly stderr: string;
  /** It did not end in time. */
  readonly late: boolean;
  /** Steps that were never reached. */
  readonly left: readonly TerminalStep[];
  /** Seconds from the start to the first byte on the terminal. */
  readonly firstByte: number | null;
  readonly seconds: number;
}

const IS_MISSING = spawnSync("python3", ["-c", "import fcntl, termios"]).status !== 0;

/** Describes tests that need a terminal, and run beside each other; without python3 they are skipped aloud, and fail where `CI` is "true". */
export function terminalSuite(title: string, body: () => void): void {
  if (!IS_MISSING) describe.concurrent(title, body);
  else if (process.env["CI"] === "true") {
    it(`${title}: python3 is installed`, () => {
      throw new Error("No python3 was found on the PATH; install the package python3.");
    });
  } else describe.skip(`${title} (skipped: no python3 on the PATH)`, body);
}

/** Runs any program on a terminal of its own, to its end. */
export async function runOnTerminal(
  command: readonly string[],
  options: TerminalOptions,
): Promise<TerminalRun> {
  const { env = {}, ...told } = options;
  const { PATH = "", HOME = "" } = process.env;
  const whole = { PATH, HOME, TERM: "xterm-256color", LANG: "C.UTF-8", ...env };
  const ran = await runCommand("python3", [join(ROOT, "test/pty.py")], {
    stdin: JSON.stringify({ ...told, command, env: whole }),
  });
  if (ran.code !== 0) throw new Error(`pty.py failed:\n${ran.stderr}`);
  return JSON.parse(ran.stdout);
}

/** Runs `waybill` on a terminal of its own, to its end; what it wrote is without the line that says which config it uses. */
export async function waybillOnTerminal(
  args: readonly string[],
  options: TerminalOptions,
): Promise<TerminalRun> {
  const flags = HARDENED ? HARDENED_FLAGS : [];
  const ran = await runOnTerminal([process.execPath, ...flags, CLI, ...args], options);
  return { ...ran, screen: withoutConfigLine(ran.screen), stderr: withoutConfigLine(ran.stderr) };
}
