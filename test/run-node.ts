import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** The folder that holds package.json, with a trailing slash. */
export const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Node flags of the second run: no code from strings, no `__proto__`. */
export const HARDENED_FLAGS = ["--disallow-code-generation-from-strings", "--disable-proto=throw"] as const;

/** Whether this is the second run. */
export const HARDENED = HARDENED_FLAGS.every((flag) => process.execArgv.includes(flag));

/** What a finished child process left behind. */
export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** What a command wrote to stderr, without the line that says which config it uses: every command that reads one begins with it. */
export function withoutConfigLine(stderr: string): string {
  return stderr.replace(/^waybill: using [^\r\n]+\r?\n/, "");
}

/** Settings of `runNode` and `runCommand`. */
export interface RunOptions {
  /** @default the repository root */
  readonly cwd?: string;
  /** Added to the environment of the child. @default nothing */
  readonly env?: Readonly<Record<string, string>>;
  /** Written to the child's standard input. @default "" */
  readonly stdin?: string;
}

/** Runs Node under the same hardening flags as this process, and waits for the end. */
export function runNode(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  return runCommand(process.execPath, [...(HARDENED ? HARDENED_FLAGS : []), ...args], options);
}

/** Runs a program without a shell, and waits for the end. */
export function runCommand(
  command: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<Finished> {
  const { NODE_OPTIONS: _ours, FORCE_COLOR: _colour, ...inherited } = process.env;
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: options.cwd ?? ROOT, env: { ...inherited, ...options.env } });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
    // A command may end, or close its input, before it has read all of it.
    child.stdin.on("error", () => {});
    child.stdin.end(options.stdin ?? "");
  });
}
