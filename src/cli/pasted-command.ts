import { existsSync, realpathSync } from "node:fs";
import { delimiter, join, relative } from "node:path";
import { shellWord } from "../core/text/clean-text.ts";
import type { Io } from "./io.ts";
import type { SourceFlags } from "./session/session.ts";

/** Writes a command of Waybill as it can be pasted: `lock files` for `npx --no waybill lock files --config other.json`. */
export type PastedCommand = (words: string) => string;

/** Makes what writes commands so that they are about the same sources. */
export function createPastedCommand(io: Io, flags: SourceFlags): PastedCommand {
  const command = spelledCommand(io);
  const end = sourceWords(flags);
  return (words) => [command, words, end].filter((part) => part !== "").join(" ");
}

/** The flags that make a pasted command reach the same target. */
export function sourceWords(flags: SourceFlags): string {
  const { config, mcp, openapi, baseUrl, allowPrivate, url, tokenEnv } = flags;
  const given = { config, mcp, openapi, "base-url": baseUrl, url, "token-env": tokenEnv };
  return Object.entries(given)
    .flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, shellWord(value)]))
    .concat(allowPrivate === true ? ["--allow-private"] : [])
    .join(" ");
}

/**
 * How this command is started again from the same folder: `waybill` where the shell finds this very script under that name, `npx
 * --no waybill` where npm does, else node and the script. `--no` keeps npx from fetching a package of that name where it is not installed.
 */
export function spelledCommand(io: Io): string {
  const { script } = io;
  if (script === undefined) return "waybill";
  const real = realPath(script);
  const isHere = (path: string): boolean => existsSync(path) && realPath(path) === real;
  const local = ancestors(io.cwd).some((folder) => isHere(join(folder, "node_modules", ".bin", "waybill")));
  // npm and npx put folders of their own into PATH, which the next shell does not have.
  const found = (io.env["PATH"] ?? "")
    .split(delimiter)
    .filter((folder) => folder !== "" && !/[\\/](?:node_modules[\\/]\.bin|_npx|node-gyp-bin)/.test(folder))
    .some((folder) => isHere(join(folder, "waybill")));
  if (found) return "waybill";
  if (local) return "npx --no waybill";
  const path = relative(realPath(io.cwd), real);
  const shown = path.startsWith("..") ? real : path;
  // Windows has backslashes in its paths, and no shell of those above.
  if (shown.includes("\\")) return `node ${/^[\w@%+=:,./\\-]+$/.test(shown) ? shown : JSON.stringify(shown)}`;
  return `node ${shellWord(shown)}`;
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function ancestors(folder: string): readonly string[] {
  const parent = join(folder, "..");
  return parent === folder ? [folder] : [folder, ...ancestors(parent)];
}
