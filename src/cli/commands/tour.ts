import type { Command } from "commander";
import { addExamples } from "../examples.ts";
import { addJsonFlag } from "../flags.ts";
import type { Io } from "../io.ts";
import { action } from "../run-command.ts";
import { wantsColors } from "../terminal/style.ts";

/** Adds `waybill tour`. */
export function addTourCommand(program: Command, io: Io): void {
  const command = program
    .command("tour")
    .summary("call a handful of local operations and show what comes back")
    .description("Call a handful of local operations and show what comes back: every outcome there is.");
  addJsonFlag(command, "JSON lines: one for each stop of the tour");
  addExamples(command, io, [
    ["waybill tour", "every outcome, as people read it"],
    ["waybill tour --json", "as programs do"],
  ]);
  command.action(
    action(io, async (flags: { readonly json?: boolean }) => {
      const { runTour } = await import("../../tour/run-tour.ts");
      await runTour({
        write: (text) => void io.stdout.write(text),
        json: flags.json ?? false,
        colors: wantsColors(io.stdout, io.env),
      });
    }),
  );
}
