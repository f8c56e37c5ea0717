import { access, constants, stat } from "node:fs/promises";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import { didYouMean } from "../core/text/nearest-name.ts";
import { safeLine } from "../core/text/safe-text.ts";
import type { LoadedConfig } from "../gateway/config/loaded-config.ts";
import { sourceNames } from "../gateway/config/source-names.ts";
import { CommandError, type Io } from "./io.ts";
import { nearestNames } from "./nearest-names.ts";
import { readTarget } from "./session.ts";
import { sniffAddress, sniffFile } from "./sniff-target.ts";
import { splitCommandLine } from "./split-command-line.ts";

/** A source of a config. */
export interface NamedSource {
  /** As it was given: its namespace, or its name in the config. */
  readonly name: string;
  /** Where it stands: `mcpServers.github`. */
  readonly key: string;
  readonly loaded: LoadedConfig;
}

/** What a word, an address or a command line turned out to name. */
export type FoundTarget =
  | { readonly kind: "mcp" | "openapi" | "gateway" }
  | ({ readonly kind: "source" } & NamedSource);

/** Finds out what is meant: an address, a document, a source of the config, or a command line. */
export async function findTarget(io: Io, text: string): Promise<FoundTarget> {
  if (/^https?:\/\//i.test(text)) return { kind: await sniffAddress(text, io.signal) };
  const looksLikeFile = /\.(?:json|ya?ml)$/i.test(text);
  const path = resolve(io.cwd, text);
  if (looksLikeFile || ((await isFile(path)) && (await sniffFile(path)) === "openapi")) {
    return { kind: "openapi" };
  }
  const [command = ""] = splitCommandLine(text);
  const isOneWord = command === text;
  const source = isOneWord ? await findSource(io, text, undefined).catch(unlessUnknown) : undefined;
  if (source !== undefined && !(source instanceof UnknownSource)) return { kind: "source", ...source };
  if (await isCommand(io, command)) return { kind: "mcp" };
  const hint = source?.near ?? ".";
  throw new CommandError(`There is no source, document or command "${safeLine(command, 80)}"${hint}`);
}

/** No source of the config has the name. */
class UnknownSource extends CommandError {
  readonly near: string;

  constructor(name: string, near: readonly string[]) {
    const hint = didYouMean(near);
    super(`The config has no source "${safeLine(name, 80)}"${hint}`);
    this.near = hint;
  }
}

function unlessUnknown(thrown: unknown): UnknownSource {
  if (thrown instanceof UnknownSource) return thrown;
  throw thrown;
}

/** Finds a source of a config by name; a `CommandError` where it has none. */
export async function findSource(io: Io, name: string, config: string | undefined): Promise<NamedSource> {
  if (config === undefined) {
    const { findConfig } = await import("../gateway/config/find-config.ts");
    if ((await findConfig(io.cwd)) === undefined) throw new UnknownSource(name, []);
  }
  const { loaded } = await readTarget(io, { config });
  const names = sourceNames(loaded.config);
  const key = [...names].find(
    ([key, given]) => given === name || key.slice(key.indexOf(".") + 1) === name,
  )?.[0];
  if (key === undefined) throw new UnknownSource(name, nearestNames(name, [...names.values()]));
  return { name, key, loaded };
}

/** Throws a `CommandError` for a document that should be a file, and is not there. */
export async function assertDocument(io: Io, document: string): Promise<void> {
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(document) || (await isFile(resolve(io.cwd, document)))) return;
  throw new CommandError(`The document "${safeLine(document, 200)}" does not exist.`);
}

/** Tells whether a file is there. */
async function isFile(path: string): Promise<boolean> {
  return await stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}

/** Tells whether a word is a program that can be started. */
async function isCommand(io: Io, word: string): Promise<boolean> {
  if (word === "") return false;
  const isPath = isAbsolute(word) || /[/\\]/.test(word);
  const folders = (io.env["PATH"] ?? io.env["Path"] ?? "").split(delimiter).filter((folder) => folder !== "");
  const places = isPath ? [resolve(io.cwd, word)] : folders.map((folder) => join(folder, word));
  const endings = process.platform === "win32" ? ["", ".exe", ".cmd", ".bat"] : [""];
  for (const place of places.flatMap((path) => endings.map((ending) => path + ending))) {
    const isProgram = await access(place, constants.X_OK).then(
      () => isFile(place),
      () => false,
    );
    if (isProgram) return true;
  }
  return false;
}
