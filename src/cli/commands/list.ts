import type { Command } from "commander";
import { addExamples } from "../examples.ts";
import { addJsonFlag, addSourceFlags } from "../flags.ts";
import type { Io } from "../io.ts";
import type { ListFlags } from "../list/run-list.ts";
import { action } from "../run-command.ts";

/** Adds `waybill list`. */
export function addListCommand(program: Command, io: Io): void {
  const command = program
    .command("list")
    .summary("list operations or sources")
    .description("List the operations that can be called, or the sources they come from.")
    .argument("[filter]", 'words to look for, or a pattern of ids such as "parcel.*"')
    .option("--sources", "list the sources: how they are doing, what and how much they hold")
    .option("--strict", "exit with 3 when a source is down");
  addJsonFlag(command, "everything that is known, schemas included, as JSON");
  addSourceFlags(command);
  addExamples(command, io, [
    ["waybill list", "every operation"],
    ["waybill list 'parcel.*'", "by a pattern of ids"],
    ["waybill list price", "by a word in the id or the description"],
    ["waybill list --sources", "what is mounted, from where"],
    ["waybill list --json | jq '.operations[].id'", "for programs"],
  ]);
  command.action(
    action(io, async (filter: string | undefined, flags: ListFlags) => {
      const { runList } = await import("../list/run-list.ts");
      return runList(io, filter, flags);
    }),
  );
}
