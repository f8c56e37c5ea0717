import type { Command } from "commander";
import type { DoctorFlags } from "../doctor/run-doctor.ts";
import { addExamples } from "../examples.ts";
import { addJsonFlag, addSourceFlags, addTimeoutFlag } from "../flags.ts";
import type { Io } from "../io.ts";
import { action } from "../run-command.ts";

/** Adds `waybill doctor`. */
export function addDoctorCommand(program: Command, io: Io): void {
  const command = program
    .command("doctor")
    .summary("say what is mounted, reachable, slow or broken, and why")
    .description(
      "Starts every source as the gateway would, and says what is mounted, slow or broken, and what to do.",
    );
  addSourceFlags(command);
  addTimeoutFlag(command, "how long sources have to come up (default 1m)");
  addJsonFlag(command, "everything that was found, as JSON");
  addExamples(
    command,
    io,
    [
      ["waybill doctor", "everything about the config here"],
      ["waybill doctor --config team/waybill.config.yaml", "about another"],
      ["waybill doctor --json | jq '.diagnoses[] | select(.status == \"problem\")'", "problems alone"],
    ],
    "Exit codes: 0 healthy, 1 there are problems, 2 the config cannot be used.",
  );
  command.action(
    action(io, async (flags: DoctorFlags) => {
      const { runDoctor } = await import("../doctor/run-doctor.ts");
      return runDoctor(io, flags);
    }),
  );
}
