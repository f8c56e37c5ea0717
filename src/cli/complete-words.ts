import { readdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { type Complete, RootCommand, type Command as TabCommand } from "@bomb.sh/tab";
import type { Command } from "commander";
import { FORMAT_NAMES } from "../core/result/tool-result.ts";
import { safeLine } from "../core/text/safe-text.ts";
import { captureLog } from "./capture-log.ts";
import { COMMANDS } from "./command-table.ts";
import { createProgram } from "./create-program.ts";
import type { Io } from "./io.ts";
import { type KnownNames, recallNames } from "./name-cache.ts";
import type { SourceFlags } from "./session.ts";

/** Shells expand some words that are offered to them; nothing they would act on is. */
const SAFE_WORD = /^[\w@%+=:,./~-]+$/;
const MOST_FILES = 500;

/**
 * Answers a completion script: one line for each word that may follow, and a last line for the script. Names of operations and sources
 * are those that earlier commands have kept: a TAB reads no config, loads no module, starts no server and asks nobody.
 */
export async function completeWords(io: Io, words: readonly string[]): Promise<string> {
  const row = COMMANDS.find(({ name, hidden }) => name === words[0] && !hidden);
  const current = words.at(-1) ?? "";
  const root = new RootCommand();
  for (const { name, summary, hidden } of COMMANDS)
    if (!hidden && name !== row?.name) root.command(name, summary);
  if (row !== undefined && words.length > 1) {
    const [command] = createProgram(io, [await row.load()]).commands;
    const needsNames =
      !current.startsWith("-") && ["call", "describe", "list", "lock", "check", "inspect"].includes(row.name);
    const names = needsNames
      ? await recallNames(io, flagsIn(words))
      : { operations: [], sources: [], servers: [] };
    if (command !== undefined) describe(root.command(row.name, row.summary), command, names, { io, current });
  } else if (row !== undefined) root.command(row.name, row.summary);
  return captureLog(() => root.parse([...words]));
}

interface Surroundings {
  readonly io: Io;
  readonly current: string;
}

/** Tells tab what a command takes. */
function describe(tab: TabCommand, command: Command, names: KnownNames, at: Surroundings): void {
  for (const { long, short, description, required, optional, mandatory: _ } of command.options) {
    if (long === undefined || long === null) continue;
    const name = long.slice(2);
    const alias = short?.slice(1);
    if (required || optional) tab.option(name, description, (complete) => values(name, complete, at), alias);
    else tab.option(name, description, alias as string);
  }
  for (const { name, variadic } of command.registeredArguments.map((argument) => ({
    name: argument.name(),
    variadic: argument.variadic,
  }))) {
    tab.argument(name, (complete) => argumentWords(name, complete, names, at), variadic);
  }
}

function values(flag: string, complete: Complete, at: Surroundings): void {
  if (flag === "format" || flag === "to") for (const name of FORMAT_NAMES) complete(name, "");
  else if (flag === "log-level")
    for (const level of ["debug", "info", "warn", "error", "silent"]) complete(level, "");
  else if (flag === "log-format") for (const format of ["json", "text"]) complete(format, "");
  else if (["config", "openapi", "output", "out", "from", "junit", "file"].includes(flag))
    files(complete, at);
}

function argumentWords(name: string, complete: Complete, names: KnownNames, at: Surroundings): void {
  if (name === "operation" || name === "filter")
    for (const { id, about } of names.operations) offer(complete, id, about);
  else if (name === "shell") for (const shell of ["bash", "zsh", "fish", "powershell"]) complete(shell, "");
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
function files(complete: Complete, { io, current }: Surroundings): void {
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

type ValueFlag = Exclude<keyof SourceFlags, "allowPrivate">;

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
