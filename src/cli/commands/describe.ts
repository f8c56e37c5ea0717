import type { Command } from "commander";
import { addExamples } from "../examples.ts";
import { addJsonFlag, addSourceFlags } from "../flags.ts";
import type { Io } from "../io.ts";
import type { DescribeFlags } from "../list/run-describe.ts";
import { action } from "../run-command.ts";

/** Adds `waybill describe`. */
export function addDescribeCommand(program: Command, io: Io): void {
  const command = program
    .command("describe")
    .summary("tell everything about one operation, with an example")
    .description(
      "Tell everything about one operation: what it takes and gives, who may call it, and an example.",
    )
    .argument("<operation>", "its id, such as parcel.track")
    .option("--schema", "the JSON Schemas of input and output, alone");
  addJsonFlag(command, "everything that is known as JSON");
  addSourceFlags(command);
  addExamples(command, io, [
    ["waybill describe parcel.book", "fields, errors and an example to paste"],
    ["waybill describe parcel.book --schema", "the JSON Schemas"],
  ]);
  command.action(
    action(io, async (operation: string, flags: DescribeFlags) => {
      const { runDescribe } = await import("../list/run-describe.ts");
      return runDescribe(io, operation, flags);
    }),
  );
}
