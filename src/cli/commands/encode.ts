import type { Command } from "commander";
import { addExamples } from "../examples.ts";
import { collect } from "../flags.ts";
import type { Io } from "../io.ts";
import type { EncodeFlags } from "../results/run-encode.ts";
import { action } from "../run-command.ts";

const MORE = `What a format has no place for travels in _meta["dev.waybill/result"], so that every other format
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
    .summary("write data as a tool result in any format")
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
  addExamples(command, io, EXAMPLES, MORE);
  command.action(
    action(io, async (data: string | undefined, flags: EncodeFlags) => {
      const { runEncode } = await import("../results/run-encode.ts");
      return runEncode(io, data, flags);
    }),
  );
}
