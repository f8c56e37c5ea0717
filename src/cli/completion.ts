import { readdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { type Complete, RootCommand, type Command as TabCommand } from "@bomb.sh/tab";
import type { Command } from "commander";
import { FORMAT_NAMES } from "../core/result/tool-result.ts";
import { safeLine } from "../core/text/clean-text.ts";
import { COMMANDS } from "./command-table.ts";
import { createProgram } from "./create-program.ts";
import { checkChoice } from "./flags.ts";
import type { Io } from "./io.ts";
import { type KnownNames, recallNames } from "./name-cache.ts";
import { addExamples } from "./root-help.ts";
import { action } from "./run-command.ts";
import type { SourceFlags } from "./session/session.ts";

/** Shells expand some words that are offered to them; nothing they would act on is. */
const SAFE_WORD = /^[\w@%+=:,./~-]+$/;
const MOST_FILES = 500;

/**
 * Answers a completion script: one line for each word that may follow, and a last line for the script. Names of operations and sources
 * are those that earlier commands have kept: a TAB reads no config, loads no module, starts no server and asks nobody.
 */
async function completeWords(io: Io, words: readonly string[]): Promise<string> {
  const row = COMMANDS.find(({ name, hidden }) => name === words[0] && !hidden);
  const current = words.at(-1) ?? "";
  const root = new RootCommand();
  for (const { name, summary, hidden } of COMMANDS)
    if (!hidden && name !== row?.name) root.command(name, summary);
  if (row !== undefined && words.length > 1) {
    const [command] = createProgram(io, [await row.load()]).commands;
    const needsNames =
      !current.startsWith("-") &&
      [
        "call",
        "describe",
        "list",
        "types",
        "doctor",
        "lock",
        "check",
        "inspect",
        "login",
        "logout",
        "auth",
      ].includes(row.name);
    const names = needsNames
      ? await recallNames(io, flagsIn(words))
      : { operations: [], sources: [], servers: [] };
    if (command !== undefined) describe(root.command(row.name, row.summary), command, { io, current, names });
  } else if (row !== undefined) root.command(row.name, row.summary);
  return captureLog(() => root.parse([...words]));
}

/** What the words that are offered depend on. */
interface Completing {
  readonly io: Io;
  /** The word at the cursor. */
  readonly current: string;
  readonly names: KnownNames;
}

/** Tells tab what a command takes. */
function describe(tab: TabCommand, command: Command, at: Completing): void {
  for (const { long, short, description, required, optional, argChoices } of command.options) {
    if (long === undefined || long === null) continue;
    const name = long.slice(2);
    const alias = short?.slice(1);
    if (required || optional)
      tab.option(
        name,
        description,
        (complete) => {
          if (argChoices === undefined) values(name, complete, at);
          else for (const choice of argChoices) complete(choice, "");
        },
        alias,
      );
    else tab.option(name, description, alias as string);
  }
  for (const argument of command.registeredArguments) {
    const name = argument.name();
    const words = (complete: Complete): void => {
      if (argument.argChoices === undefined) argumentWords(name, complete, at);
      else for (const choice of argument.argChoices) complete(choice, "");
    };
    tab.argument(name, words, argument.variadic);
  }
}

function values(flag: string, complete: Complete, at: Completing): void {
  if (flag === "format" || flag === "to") for (const name of FORMAT_NAMES) complete(name, "");
  else if (flag === "log-level")
    for (const level of ["debug", "info", "warn", "error", "silent"]) complete(level, "");
  else if (flag === "source") for (const source of at.names.sources) offer(complete, source, "");
  else if (flag === "log-format") for (const format of ["json", "text"]) complete(format, "");
  else if (["config", "openapi", "output", "out", "from", "junit", "file"].includes(flag))
    files(complete, at);
}

function argumentWords(name: string, complete: Complete, at: Completing): void {
  const { names } = at;
  if (name === "operation" || name === "filter")
    for (const { id, about } of names.operations) offer(complete, id, about);
  else if (name === "shell") for (const shell of SHELLS) complete(shell, "");
  else if (name.startsWith("server")) for (const server of names.servers) offer(complete, server, "");
  else if (name.startsWith("source") || name === "target") {
    for (const source of names.sources) offer(complete, source, "");
    if (name === "target") files(complete, at);
  } else if (name === "file" || at.current.startsWith("@")) files(complete, at);
}

function offer(complete: Complete, word: string, about: string): void {
  if (SAFE_WORD.test(word)) complete(word, safeLine(about, 80));
}

/** Names of files; tab has no way to leave them to the shell. */
function files(complete: Complete, { io, current }: Completing): void {
  const sign = current.startsWith("@") ? "@" : "";
  const typed = current.slice(sign.length);
  const folder = typed.endsWith("/") ? typed : typed.includes("/") ? `${dirname(typed)}/` : "";
  try {
    const entries = readdirSync(resolve(io.cwd, folder === "" ? "." : folder), { withFileTypes: true });
    for (const entry of entries.slice(0, MOST_FILES)) {
      if (entry.name.startsWith(".") && !typed.slice(folder.length).startsWith(".")) continue;
      offer(complete, `${sign}${folder}${entry.name}${entry.isDirectory() ? "/" : ""}`, "");
    }
  } catch {
    // No such folder: no names.
  }
}

type ValueFlag = Exclude<keyof SourceFlags, "allowPrivate" | "source" | "gateway" | "timeout">;

const VALUE_FLAGS: Readonly<Record<string, ValueFlag>> = {
  "-c": "config",
  "--config": "config",
  "--mcp": "mcp",
  "--openapi": "openapi",
  "--url": "url",
  "--token-env": "tokenEnv",
};

/** The flags among the words that say where operations come from. */
function flagsIn(words: readonly string[]): SourceFlags {
  const flags: Partial<Record<ValueFlag, string>> = {};
  for (const [at, word] of words.entries()) {
    const [flag = "", inline] = word.split(/=(.*)/s, 2);
    const name = Object.hasOwn(VALUE_FLAGS, flag) ? VALUE_FLAGS[flag] : undefined;
    const value = inline ?? words[at + 1];
    if (name !== undefined && value !== undefined && value !== "") flags[name] = value;
  }
  return flags;
}

/** Runs what writes with `console.log`, and gives what it wrote instead. */
function captureLog(run: () => void): string {
  const lines: string[] = [];
  const { log } = console;
  console.log = (...texts: unknown[]) => void lines.push(texts.join(" "));
  try {
    run();
  } finally {
    console.log = log;
  }
  return lines.map((line) => `${line}\n`).join("");
}

/** A piece of a script that is written in another way. */
type Replacement = readonly [found: string | RegExp, written: string];

/** Gives the completion script of a shell; nothing that was typed is evaluated before Enter is pressed. */
async function completionScript(shell: Shell): Promise<string> {
  const script = captureLog(() => new RootCommand().setup("waybill", "waybill", shell));
  return REPLACEMENTS[shell].reduce(
    (text, [found, written]) => text.replaceAll(found, () => written),
    script,
  );
}

const READ_WORDS = '_get_comp_words_by_ref -n "=:" cur prev words cword';

/** Works where the package bash-completion is not installed as well. */
const READ_WORDS_ANYWHERE = `if declare -F _get_comp_words_by_ref >/dev/null; then
        ${READ_WORDS}
    else
        words=("\${COMP_WORDS[@]}")
        cword=$COMP_CWORD
        cur=\${COMP_WORDS[COMP_CWORD]}
    fi`;

const REPLACEMENTS: Readonly<Record<Shell, readonly Replacement[]>> = {
  bash: [
    // May be loaded twice.
    [/^readonly (?=ShellCompDirective)/gm, ""],
    [READ_WORDS, READ_WORDS_ANYWHERE],
    [
      /# Build the command to get completions[\s\S]*?out=\$\(eval "\$requestComp" 2>\/dev\/null\)/g,
      `out=$(waybill complete -- "\${words[@]:1:$cword}" 2>/dev/null)`,
    ],
  ],
  zsh: [
    [
      /# Use Zsh's \(q\) flag to quote[\s\S]*?out=\$\(eval \$\{requestComp\} 2>\/dev\/null\)/g,
      `out=$(waybill complete -- "\${args_to_quote[@]}" 2>/dev/null)`,
    ],
    // The start of a flag that was typed, such as --config=, is handed on as one word.
    [/ flagPrefix requestComp out directive comp lastComp noSpace /g, " out directive comp lastComp "],
    ["local -a completions", "local -a completions flagPrefix noSpace"],
    [`flagPrefix="-P \${BASH_REMATCH}"`, `flagPrefix=(-P "\${BASH_REMATCH}")`],
    [`noSpace="-S ''"`, "noSpace=(-S '')"],
    [
      `eval _describe $keepOrder "completions" completions -Q \${flagPrefix} \${noSpace}`,
      `_describe $keepOrder "completions" completions -Q "\${flagPrefix[@]}" "\${noSpace[@]}"`,
    ],
    // Actions of _arguments are evaluated.
    [/" \$\{flagPrefix\}"/g, '""'],
  ],
  fish: [],
  // Typographic quotes end a text in PowerShell as plain ones do.
  powershell: [[`-replace "'", "''"`, `-replace "['\\u2018-\\u201b]", '$0$0'`]],
};

const SHELLS = ["bash", "zsh", "fish", "powershell"] as const;

/** A shell that there is a completion script for. */
type Shell = (typeof SHELLS)[number];

/** Adds `waybill completion`. */
export function addCompletionCommand(program: Command, io: Io): void {
  const command = program
    .command("completion")
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
        io.stdout.write(await completeWords(io, words));
      }),
    );
}
