import type { Command } from "commander";
import { addExamples } from "../examples.ts";
import type { Io } from "../io.ts";
import type { TranscodeFlags } from "../results/run-transcode.ts";
import { action } from "../run-command.ts";

const MORE = `What is read is what "waybill decode" reads, several results in lines included. What the format has no place
for is told on stderr; it travels in _meta["dev.waybill/result"] and comes back, unless --no-residual leaves it out.`;

/** Adds `waybill transcode`. */
export function addTranscodeCommand(program: Command, io: Io): void {
  const command = program
    .command("transcode")
    .summary("turn a tool result into another format")
    .description("Turn a tool result into another format.")
    .argument("[file]", "a file; without one, or with -, what comes in by stdin")
    .requiredOption(
      "--to <format>",
      "tool-envelope, tiered-envelope, status-envelope, mcp or response-envelope",
    )
    .option("--from <format>", "the format it is in, for a result that more than one fits")
    .option("--lenient", "put up with envelope blocks that are written carelessly")
    .option("--no-residual", "leave out what the format has no place for");
  addExamples(
    command,
    io,
    [
      ["waybill transcode result.json --to status-envelope", "from a file"],
      ["waybill transcode --to tool-envelope < result.json | waybill transcode --to mcp", "there and back"],
    ],
    MORE,
  );
  command.action(
    action(io, async (file: string | undefined, flags: TranscodeFlags) => {
      const { runTranscode } = await import("../results/run-transcode.ts");
      return runTranscode(io, file, flags);
    }),
  );
}
