import type { Command } from "commander";
import { addJsonFlag, collect } from "../flags.ts";
import type { Io } from "../io.ts";
import type { DecodeFlags, EncodeFlags, TranscodeFlags } from "../results/run-results.ts";
import { addExamples } from "../root-help.ts";
import { action } from "../run-command.ts";

const DECODE_MORE = `What is read: a tool result, a JSON-RPC response around one, an envelope of any format without a
result around it, an envelope block ("__ENVELOPE_V1__:…"), content blocks, or one of these in each line; up to 64 MiB.

Exit code: 0 when it could be read, whatever it says; 1 with --strict when something is odd, and with --data
when there is none; 2 when it is no tool result.`;

/** Adds `waybill decode`. */
export function addDecodeCommand(program: Command, io: Io): void {
  const command = program
    .command("decode")
    .description("Say what a tool result is: its format, how it ended, its data, and what is odd about it.")
    .argument("[file]", "a file; without one, or with -, what comes in by stdin")
    .option("--data", "the data alone, as JSON")
    .option("--losses", "also what each other format has no place for")
    .option("--recover-json", "take JSON in the only text block for the data")
    .option("--lenient", "put up with envelope blocks that are written carelessly")
    .option("--strict", "exit with 1 when something is odd");
  addJsonFlag(command, "everything as JSON, one line for each result");
  addExamples(command, io, [
    ["waybill decode result.json", "what is this?"],
    ["waybill call parcel.track id=P-1001 --format tool-envelope | waybill decode", "from a pipe"],
    ["waybill decode --data result.json | jq .", "its data"],
    ["waybill decode --losses result.json", "what other formats would lose"],
  ]).addHelpText("after", `\n${DECODE_MORE}`);
  command.action(
    action(io, async (file: string | undefined, flags: DecodeFlags) => {
      const { runDecode } = await import("../results/run-results.ts");
      return runDecode(io, file, flags);
    }),
  );
}

const ENCODE_MORE = `What a format has no place for travels in _meta["dev.waybill/result"], so that every other format
can still say it; --no-residual leaves it out, and says what is gone. With --error, data is read only where it is named.`;

const EXAMPLES: readonly (readonly [string, string])[] = [
  [`waybill encode '{"hits":2}' --to status-envelope --summary "2 hits"`, "data on the command line"],
  ["waybill encode data.json --to tool-envelope --tool search", "from a file"],
  [`waybill encode --error NOT_FOUND --message "No such parcel." --to tiered-envelope`, "a failure"],
];

/** Adds `waybill encode`. */
export function addEncodeCommand(program: Command, io: Io): void {
  const command = program
    .command("encode")
    .description("Write data as a tool result in any format.")
    .argument(
      "[data]",
      "JSON, or a file of it (@file for odd names); without it, or with -, what comes in by stdin",
    )
    .option(
      "--to <format>",
      "tool-envelope, tiered-envelope, status-envelope, mcp or response-envelope",
      "mcp",
    )
    .option("--text <words>", "a text block for people; may be repeated", collect)
    .option("--summary <words>", "what happened, in one line")
    .option("--status <status>", "ok, info, warn or error")
    .option("--detail <words>", "a line of details; may be repeated", collect)
    .option("--next-step <words>", "what to do next; may be repeated", collect)
    .option("--error <code>", "the tool failed, with this code")
    .option("--message <words>", "with --error: why, for people")
    .option("--category <name>", "with --error: validation, execution, timeout, model, network, …")
    .option("--suggestion <words>", "with --error: what may help")
    .option("--tool <name>", "who answers")
    .option("--tool-version <version>", "and in which version")
    .option("--request-id <id>", "the id of the request")
    .option("--timestamp <time>", "when, in ISO 8601")
    .option("--duration-ms <n>", "how long it took")
    .option("--tier <tier>", "community, pro or enterprise")
    .option("--no-residual", "leave out what the format has no place for");
  addExamples(command, io, EXAMPLES).addHelpText("after", `\n${ENCODE_MORE}`);
  command.action(
    action(io, async (data: string | undefined, flags: EncodeFlags) => {
      const { runEncode } = await import("../results/run-results.ts");
      return runEncode(io, data, flags);
    }),
  );
}

const TRANSCODE_MORE = `What is read is what "waybill decode" reads, several results in lines included. What the format has no place
for is told on stderr; it travels in _meta["dev.waybill/result"] and comes back, unless --no-residual leaves it out.`;

/** Adds `waybill transcode`. */
export function addTranscodeCommand(program: Command, io: Io): void {
  const command = program
    .command("transcode")
    .description("Turn a tool result into another format.")
    .argument("[file]", "a file; without one, or with -, what comes in by stdin")
    .requiredOption(
      "--to <format>",
      "tool-envelope, tiered-envelope, status-envelope, mcp or response-envelope",
    )
    .option("--from <format>", "the format it is in, for a result that more than one fits")
    .option("--lenient", "put up with envelope blocks that are written carelessly")
    .option("--no-residual", "leave out what the format has no place for");
  addExamples(command, io, [
    ["waybill transcode result.json --to status-envelope", "from a file"],
    ["waybill transcode --to tool-envelope < result.json | waybill transcode --to mcp", "there and back"],
  ]).addHelpText("after", `\n${TRANSCODE_MORE}`);
  command.action(
    action(io, async (file: string | undefined, flags: TranscodeFlags) => {
      const { runTranscode } = await import("../results/run-results.ts");
      return runTranscode(io, file, flags);
    }),
  );
}
