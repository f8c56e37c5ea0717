import type { Command } from "commander";
import { addExamples } from "../examples.ts";
import { addJsonFlag } from "../flags.ts";
import type { Io } from "../io.ts";
import type { DecodeFlags } from "../results/run-decode.ts";
import { action } from "../run-command.ts";

const MORE = `What is read: a tool result, a JSON-RPC response around one, an envelope of any format without a
result around it, an envelope block ("__ENVELOPE_V1__:…"), content blocks, or one of these in each line; up to 64 MiB.

Exit code: 0 when it could be read, whatever it says; 1 with --strict when something is odd, and with --data
when there is none; 2 when it is no tool result.`;

/** Adds `waybill decode`. */
export function addDecodeCommand(program: Command, io: Io): void {
  const command = program
    .command("decode")
    .summary("say what a tool result is: its format, its data, what is odd")
    .description("Say what a tool result is: its format, how it ended, its data, and what is odd about it.")
    .argument("[file]", "a file; without one, or with -, what comes in by stdin")
    .option("--data", "the data alone, as JSON")
    .option("--losses", "also what each other format has no place for")
    .option("--recover-json", "take JSON in the only text block for the data")
    .option("--lenient", "put up with envelope blocks that are written carelessly")
    .option("--strict", "exit with 1 when something is odd");
  addJsonFlag(command, "everything as JSON, one line for each result");
  addExamples(
    command,
    io,
    [
      ["waybill decode result.json", "what is this?"],
      ["waybill call parcel.track id=P-1001 --format tool-envelope | waybill decode", "from a pipe"],
      ["waybill decode --data result.json | jq .", "its data"],
      ["waybill decode --losses result.json", "what other formats would lose"],
    ],
    MORE,
  );
  command.action(
    action(io, async (file: string | undefined, flags: DecodeFlags) => {
      const { runDecode } = await import("../results/run-decode.ts");
      return runDecode(io, file, flags);
    }),
  );
}
