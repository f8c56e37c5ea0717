import { PassThrough } from "node:stream";
import { type Io, runWaybill } from "./memory-io.ts";
import { withoutConfigLine } from "./run-node.ts";

/** How a command ended, and what it wrote. */
export interface CommandRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the whole command in this process, with streams that are no terminal; what it wrote is without the line that says which config it uses. */
export async function runCommandLine(args: readonly string[], given: Partial<Io> = {}): Promise<CommandRun> {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const text = (stream: PassThrough) => Buffer.from((stream.read() as Buffer | null) ?? "").toString("utf8");
  const io = { stdin, stdout, stderr, env: { PATH: process.env["PATH"] }, cwd: process.cwd(), ...given };
  const code = await runWaybill(io as unknown as Io, args);
  return { code, stdout: text(stdout), stderr: withoutConfigLine(text(stderr)) };
}
