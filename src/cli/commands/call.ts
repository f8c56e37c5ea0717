import type { Command } from "commander";
import { FORMAT_NAMES } from "../../core/result/tool-result.ts";
import type { CallFlags } from "../call/run-call.ts";
import { addExamples } from "../examples.ts";
import { addJsonFlag, addSourceFlags, addTimeoutFlag, checkChoice, parseWholeNumber } from "../flags.ts";
import type { Io } from "../io.ts";
import { action } from "../run-command.ts";

const INPUTS = `Inputs:
  key=value        a member; read by the schema: numbers, true and false, JSON for lists and objects
  key:=json        a member that is JSON, whatever the schema says
  key=@file        a member from a file: text, JSON, or base64 where the schema asks for bytes (key@file too; key=@@x is the text "@x")
  a.b=value        a member of a member; a key given again makes a list
  '{"a": 1}'       the whole input; @file.json from a file, - from stdin; key=value is added to it
  Without inputs, a file redirected to stdin is read; a pipe is read only where the operation cannot do without input. Say - to be sure.

Exit codes: 0 ok, 1 the operation said no, 2 usage, 3 the call failed, 130 interrupted.`;

const EXAMPLES: readonly (readonly [string, string])[] = [
  ["waybill call parcel.list limit=3", "key=value"],
  [`waybill call parcel.book '{"to": "Lisbon", "kg": 2}'`, "JSON"],
  ["waybill call parcel.book @parcel.json kg=3", "a file, and a member besides"],
  ["echo '{}' | waybill call parcel.list -", "stdin"],
  ["waybill call parcel.watch --take 1", "a subscription"],
  ["waybill call mcp.echo message=hi --mcp 'npx -y some-mcp-server'", "a tool of any MCP server"],
];

/** Adds `waybill call`. */
export function addCallCommand(program: Command, io: Io): void {
  const command = program
    .command("call")
    .summary("call an operation, or follow a subscription")
    .description("Call an operation and print its data; a subscription prints one line for each value.")
    .argument("<operation>", "its id, such as parcel.track")
    .argument("[inputs...]", "see below")
    .option("--envelope", "the whole envelope: where the data came from and how it fared")
    .option("--format <name>", `a tool result instead: ${FORMAT_NAMES.join(", ")}`, (text) =>
      checkChoice(text, "--format", FORMAT_NAMES),
    )
    .option("--raw", "data that is text as text, not as JSON")
    .option("-o, --output <file>", "write the result to a file: bytes, text or JSON, whichever it is")
    .option("--all", "follow pages: one line for each")
    .option("--take <n>", "end after so many values or pages", (text) =>
      parseWholeNumber(text, "--take", 1, 1_000_000_000),
    )
    .option(
      "--idempotency-key <key>",
      "with --url: the gateway runs a change once for the same key, however often it is sent",
    )
    .option("--progress", "show what the operation reports while it runs, on stderr");
  addJsonFlag(command, "compact JSON, on a terminal too");
  addTimeoutFlag(command, "the longest the call may take");
  addSourceFlags(command);
  addExamples(command, io, EXAMPLES, INPUTS);
  command.action(
    action(io, async (operation: string, inputs: string[], flags: CallFlags) => {
      const { runCall } = await import("../call/run-call.ts");
      return runCall(io, operation, inputs, flags);
    }),
  );
}
