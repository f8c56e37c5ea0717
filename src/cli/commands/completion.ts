import type { Command } from "commander";
import { addExamples } from "../examples.ts";
import { checkChoice } from "../flags.ts";
import type { Io } from "../io.ts";
import { action } from "../run-command.ts";

const SHELLS = ["bash", "zsh", "fish", "powershell"] as const;

/** A shell that there is a completion script for. */
export type Shell = (typeof SHELLS)[number];

/** Adds `waybill completion`. */
export function addCompletionCommand(program: Command, io: Io): void {
  const command = program
    .command("completion")
    .summary("write the completion script of a shell")
    .description("Write the script that completes commands, flags and names of operations in a shell.")
    .argument("<shell>", SHELLS.join(", "));
  addExamples(command, io, [
    ["source <(waybill completion bash)", "in this shell; in ~/.bashrc for every one"],
    ["source <(waybill completion zsh)", "in this shell; in ~/.zshrc for every one"],
    ["waybill completion fish > ~/.config/fish/completions/waybill.fish", ""],
    ["waybill completion powershell | Out-String | Invoke-Expression", ""],
  ]);
  command.action(
    action(io, async (shell: string) => {
      const chosen = checkChoice(shell, "completion", SHELLS);
      const { completionScript } = await import("../completion-script.ts");
      io.stdout.write(await completionScript(chosen));
    }),
  );
}

/** Adds `waybill complete`, which completion scripts call. */
export function addCompleteCommand(program: Command, io: Io): void {
  program
    .command("complete", { hidden: true })
    .argument("[words...]")
    .allowUnknownOption()
    .helpOption(false)
    .action(
      action(io, async (words: string[]) => {
        const { completeWords } = await import("../complete-words.ts");
        io.stdout.write(await completeWords(io, words));
      }),
    );
}
