import type { Command } from "commander";
import { addExamples } from "../examples.ts";
import { addJsonFlag, addSourceFlags } from "../flags.ts";
import type { Io } from "../io.ts";
import { action } from "../run-command.ts";
import type { TypesFlags } from "../types/run-types.ts";

const MORE = `The file is a module that your tsconfig.json has to include; nothing needs to import it. From then on calls by id
are typed: registry.execute("parcel.track", { id: "P-1001" }), and so are clients made by createClient. The types
of single operations can be imported from it, such as ParcelTrackInput.

A value that fits a schema always fits its type. So an object that may have further properties says so; with --closed those
are left out, and a misspelt property is a mistake.

Exit code: 0 when written or up to date, 1 when --check finds another text, 3 when a source is down.`;

/** Adds `waybill types`. */
export function addTypesCommand(program: Command, io: Io): void {
  const command = program
    .command("types")
    .summary("write TypeScript types for everything that is mounted")
    .description("Write a TypeScript module that types every operation that is mounted.")
    .option("-o, --out <file>", "the file to write; - for stdout (default: waybill-types.ts)")
    .option("--check", "write nothing; exit with 1 when the file is out of date")
    .option("--closed", "leave out properties that a schema permits without naming them")
    .option("--partial", "go on without the sources that are down");
  addJsonFlag(command, "what was written or found, as JSON: file, operations, state");
  addSourceFlags(command);
  addExamples(
    command,
    io,
    [
      ["waybill types", "writes waybill-types.ts"],
      ["waybill types --out src/waybill-types.ts", "elsewhere"],
      ["waybill types --check", "in CI"],
      ["waybill types --openapi openapi.yaml --out -", "of one document, to stdout"],
    ],
    MORE,
  );
  command.action(
    action(io, async (flags: TypesFlags) => {
      const { runTypes } = await import("../types/run-types.ts");
      return runTypes(io, flags);
    }),
  );
}
