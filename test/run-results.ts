import { Readable } from "node:stream";
import { runCommandLine } from "./run-command-line.ts";

/** What a command left behind. */
export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command with something on stdin; nothing for a terminal. */
export async function runResults(args: readonly string[], input?: string, cwd = process.cwd()): Promise<Ran> {
  const stdin = Readable.from(input === undefined ? [] : [Buffer.from(input)]) as NodeJS.ReadStream;
  if (input === undefined) stdin.isTTY = true;
  const { code, stdout, stderr } = await runCommandLine(args, { stdin, cwd, env: {} });
  return { code, out: stdout, err: stderr };
}
