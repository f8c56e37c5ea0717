import { Readable, Writable } from "node:stream";
import { Command } from "commander";
import { addDecodeCommand } from "../src/cli/commands/decode.ts";
import { addEncodeCommand } from "../src/cli/commands/encode.ts";
import { addTranscodeCommand } from "../src/cli/commands/transcode.ts";
import type { Io } from "../src/cli/io.ts";
import { runProgram } from "../src/cli/run-command.ts";

/** What a command left behind. */
export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function sink(): { readonly stream: NodeJS.WriteStream; readonly text: () => string } {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  return { stream: stream as unknown as NodeJS.WriteStream, text: () => Buffer.concat(chunks).toString() };
}

/** Runs one of the three commands with something on stdin; nothing for a terminal. */
export async function runResults(args: readonly string[], stdin?: string, cwd = process.cwd()): Promise<Ran> {
  const [out, err] = [sink(), sink()];
  const input = Readable.from(stdin === undefined ? [] : [Buffer.from(stdin)]);
  if (stdin === undefined) Object.assign(input, { isTTY: true });
  const io = { stdin: input, stdout: out.stream, stderr: err.stream, env: {}, cwd } as unknown as Io;
  const program = new Command("waybill")
    .exitOverride()
    .configureOutput({ writeOut: () => {}, writeErr: () => {} });
  for (const add of [addDecodeCommand, addEncodeCommand, addTranscodeCommand]) add(program, io);
  for (const command of program.commands)
    command.exitOverride().configureOutput({ writeOut: () => {}, writeErr: () => {} });
  const code = await runProgram(program, io, args);
  return { code, out: out.text(), err: err.text() };
}
