import { access, constants, open, stat } from "node:fs/promises";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import { safeLine } from "../../core/text/clean-text.ts";
import { didYouMean, nearestNames } from "../../core/text/nearest-name.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import { type LoadedConfig, sourceNames } from "../../gateway/config/loaded-config.ts";
import { CommandError, type Io } from "../io.ts";
import { readTarget } from "./session.ts";
import { splitCommandLine } from "./target-config.ts";

/** A source of a config. */
export interface NamedSource {
  /** As it was given: its namespace, or its name in the config. */
  readonly name: string;
  /** Where it stands: `mcpServers.github`. */
  readonly key: string;
  readonly loaded: LoadedConfig;
}

/** What a word, an address or a command line turned out to name. */
type FoundTarget =
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
    const { findConfig } = await import("../../gateway/config/config-files.ts");
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

/** Characters that are looked at to tell what something is. */
const MOST_SEEN = 65_536;

const PATIENCE_MS = 5_000;

/** What an address may turn out to be. */
type SniffedAddress = "openapi" | "mcp" | "gateway";

/** The member that every OpenAPI document has, as JSON or YAML spell it. */
const MARK =
  /(?:^|[\n{,])\s*(?:"openapi"|"swagger"|'openapi'|'swagger'|openapi|swagger)\s*:\s*["']?[23](?:\.\d|["'\s,}])/;

/** Tells by the name of an address, and where that says nothing by what stands there, what it is. */
async function sniffAddress(url: string, signal?: AbortSignal): Promise<SniffedAddress> {
  if (parseUrl(url) === undefined) return "mcp";
  const { pathname, origin } = new URL(url);
  if (/\.(?:json|ya?ml)$/i.test(pathname)) return "openapi";
  if (/\/(?:mcp|sse)\/?$/i.test(pathname)) return "mcp";
  if (isDocument(await look(url, signal))) return "openapi";
  const base = `${origin}${pathname.replace(/\/(?:api|docs)?\/?$/, "")}`;
  const [document, health] = await Promise.all([
    look(`${base}/openapi.json`, signal),
    look(`${base}/health`, signal),
  ]);
  return isDocument(document) && health !== "" ? "gateway" : "mcp";
}

/** Tells whether a file holds a document. */
async function sniffFile(path: string): Promise<"openapi" | "other"> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(MOST_SEEN), 0, MOST_SEEN, 0);
    return isDocument(buffer.toString("utf8", 0, bytesRead)) ? "openapi" : "other";
  } finally {
    await file.close();
  }
}

function isDocument(text: string): boolean {
  return MARK.test(text.slice(0, MOST_SEEN));
}

/** The beginning of what an address answers with a success; nothing otherwise. */
async function look(url: string, signal: AbortSignal | undefined): Promise<string> {
  const within = [AbortSignal.timeout(PATIENCE_MS), ...(signal === undefined ? [] : [signal])];
  try {
    const response = await fetch(url, { signal: AbortSignal.any(within), redirect: "manual" });
    if (!response.ok || response.body === null) {
      await response.body?.cancel();
      return "";
    }
    return await beginningOf(response.body);
  } catch {
    signal?.throwIfAborted();
    return "";
  }
}

async function beginningOf(body: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length >= MOST_SEEN) break;
  }
  return text;
}
