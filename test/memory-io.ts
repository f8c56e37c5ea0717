import { PassThrough } from "node:stream";
import type { Io } from "../src/cli/io.ts";
import { runWaybill } from "../src/cli/run-waybill.ts";

export { type Io, runWaybill };

/** Surroundings that keep what is written, for programs that run commands in their own process. */
export interface MemoryIo extends Io {
  /** What was written to stdout so far. */
  out(): string;
  /** What was written to stderr so far. */
  err(): string;
}

/** What is different from an empty pipe in an empty environment. */
export interface MemoryIoOptions {
  readonly env?: NodeJS.ProcessEnv | undefined;
  readonly cwd?: string | undefined;
  /** @default an empty pipe */
  readonly stdin?: string | undefined;
  /** Makes stdout and stderr terminals of so many columns. @default they are pipes */
  readonly columns?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Creates surroundings in memory. */
export function createMemoryIo(options: MemoryIoOptions = {}): MemoryIo {
  const { env = {}, cwd = process.cwd(), stdin = "", columns, signal } = options;
  const terminal = columns === undefined ? {} : { isTTY: true, columns };
  const read = new PassThrough();
  read.end(stdin);
  const [stdout, stderr] = [sink(terminal), sink(terminal)];
  return {
    stdin: read as unknown as NodeJS.ReadStream,
    stdout: stdout.stream,
    stderr: stderr.stream,
    env,
    cwd,
    signal,
    out: stdout.text,
    err: stderr.text,
  };
}

function sink(facts: object): { readonly stream: NodeJS.WriteStream; text(): string } {
  const chunks: string[] = [];
  const stream = Object.assign(new PassThrough(), facts);
  stream.on("data", (chunk: Buffer) => chunks.push(chunk.toString()));
  return { stream: stream as unknown as NodeJS.WriteStream, text: () => chunks.join("") };
}
