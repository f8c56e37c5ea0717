import { access, constants, stat } from "node:fs/promises";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import type { McpServerConfig, OpenApiConfig } from "../../gateway/config/gateway-config.ts";
import { sourceNames } from "../../gateway/config/source-names.ts";
import { describeAddress, describeServer } from "../../gateway/sources/shown-target.ts";
import { CommandError, type Io } from "../io.ts";
import { nearestNames } from "../nearest-names.ts";
import { readTarget } from "../session.ts";
import { splitCommandLine } from "../split-command-line.ts";
import { gatewayBase } from "../target-config.ts";
import { safeLine } from "../terminal/safe-text.ts";
import { sniffAddress, sniffFile } from "./sniff-target.ts";

/** One thing to check. */
export type CheckTarget = {
  /** What it is called, without secrets. */
  readonly label: string;
  /** What relative paths start from. */
  readonly baseDir: string;
  /** Takes secrets out of a text. */
  mask(text: string): string;
} & (
  | { readonly kind: "mcp"; readonly server: McpServerConfig }
  | { readonly kind: "openapi"; readonly api: OpenApiConfig }
);

/** What the command line says of the target. */
export interface TargetFlags {
  readonly config?: string | undefined;
  /** The target, or `true` where it only says what the target is. */
  readonly mcp?: string | true | undefined;
  readonly openapi?: string | true | undefined;
  readonly url?: string | undefined;
  readonly tokenEnv?: string | undefined;
}

/** Finds out what is meant to be checked; a running gateway is checked as both. */
export async function findTargets(
  io: Io,
  target: string | undefined,
  flags: TargetFlags,
): Promise<readonly CheckTarget[]> {
  const { mcp, openapi, url, config } = flags;
  const wanted = [target, mcp, openapi, url].filter((one) => typeof one === "string") as string[];
  if (wanted.length > 1) throw new CommandError("check takes one target.");
  const [one] = wanted;
  if (one === undefined) {
    throw new CommandError(
      'check needs a target: an address, a command line in quotes, a document, or a source of the config; "waybill check --help" has examples.',
    );
  }
  if (mcp !== undefined) return direct(io, { mcp: one }, flags);
  if (openapi !== undefined) return direct(io, { openapi: one }, flags);
  if (url !== undefined) return gateway(io, one, flags);
  if (config !== undefined) return [await fromConfig(io, one, config)];
  if (/^https?:\/\//i.test(one)) return fromAddress(io, one, flags);
  return fromWords(io, one, flags);
}

/** Something on the command line itself. */
async function direct(
  io: Io,
  one: { readonly mcp: string } | { readonly openapi: string },
  { tokenEnv }: TargetFlags,
): Promise<readonly CheckTarget[]> {
  const { loaded } = await readTarget(io, { ...one, tokenEnv });
  const { baseDir, secrets } = loaded;
  const mask = (text: string) => secrets.mask(text);
  const [server] = Object.values(loaded.config.mcpServers ?? {});
  const [api] = Object.values(loaded.config.openapi ?? {});
  if (server !== undefined) {
    return [{ kind: "mcp", label: mask(describeServer(server)), server, baseDir, mask }];
  }
  if (api === undefined) throw new CommandError("There is nothing to check.");
  await assertDocument(io, api.document);
  return [{ kind: "openapi", label: mask(describeAddress(api.document)), api, baseDir, mask }];
}

async function assertDocument(io: Io, document: string): Promise<void> {
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(document) || (await isThere(resolve(io.cwd, document)))) return;
  throw new CommandError(`The document "${safeLine(document, 200)}" does not exist.`);
}

async function gateway(io: Io, url: string, flags: TargetFlags): Promise<readonly CheckTarget[]> {
  const base = gatewayBase(url);
  // What merely looks like a gateway gets no token that nobody meant for it.
  const isMeant = flags.url !== undefined && io.env["WAYBILL_TOKEN"];
  const tokenEnv = flags.tokenEnv ?? (isMeant ? "WAYBILL_TOKEN" : undefined);
  const parts = [{ mcp: `${base}/mcp` }, { openapi: `${base}/openapi.json` }];
  return (await Promise.all(parts.map((part) => direct(io, part, { tokenEnv })))).flat();
}

async function fromAddress(io: Io, url: string, flags: TargetFlags): Promise<readonly CheckTarget[]> {
  switch (await sniffAddress(url, io.signal)) {
    case "openapi":
      return direct(io, { openapi: url }, flags);
    case "gateway":
      return gateway(io, url, flags);
    case "mcp":
      return direct(io, { mcp: url }, flags);
  }
}

/** A file, a source of the config, or a command line. */
async function fromWords(io: Io, text: string, flags: TargetFlags): Promise<readonly CheckTarget[]> {
  const looksLikeFile = /\.(?:json|ya?ml)$/i.test(text);
  const path = resolve(io.cwd, text);
  if (looksLikeFile || ((await isThere(path)) && (await sniffFile(path)) === "openapi")) {
    return direct(io, { openapi: text }, flags);
  }
  const [command = ""] = splitCommandLine(text);
  const isOneWord = command === text;
  const source = isOneWord ? await fromConfig(io, text, undefined).catch(unlessUnknown) : undefined;
  if (source !== undefined && !(source instanceof UnknownSource)) return [source];
  if (await isCommand(io, command)) return direct(io, { mcp: text }, flags);
  const near = source?.near ?? "";
  throw new CommandError(`There is no source, document or command "${safeLine(command, 80)}"${near || "."}`);
}

/** No source of the config has the name. */
class UnknownSource extends CommandError {
  readonly near: string;

  constructor(name: string, near: readonly string[]) {
    const hint = near.length === 0 ? "" : `; did you mean ${near.map((one) => `"${one}"`).join(" or ")}?`;
    super(`The config has no source "${safeLine(name, 80)}"${hint || "."}`);
    this.near = hint;
  }
}

function unlessUnknown(thrown: unknown): UnknownSource {
  if (thrown instanceof UnknownSource) return thrown;
  throw thrown;
}

async function fromConfig(io: Io, name: string, config: string | undefined): Promise<CheckTarget> {
  if (config === undefined) {
    const { findConfig } = await import("../../gateway/config/find-config.ts");
    if ((await findConfig(io.cwd)) === undefined) throw new UnknownSource(name, []);
  }
  const { loaded } = await readTarget(io, { config });
  const { mcpServers = {}, openapi = {} } = loaded.config;
  const names = sourceNames(loaded.config);
  const key = [...names].find(
    ([key, given]) => given === name || key.slice(key.indexOf(".") + 1) === name,
  )?.[0];
  if (key === undefined) throw new UnknownSource(name, nearestNames(name, [...names.values()]));
  const fault = Object.hasOwn(loaded.faults, key) ? loaded.faults[key] : undefined;
  if (fault !== undefined) throw new CommandError(`The source "${name}" cannot be used: ${fault}`);
  const { baseDir, secrets } = loaded;
  const mask = (text: string) => secrets.mask(text);
  const own = key.slice(key.indexOf(".") + 1);
  const server = key.startsWith("mcpServers.") ? mcpServers[own] : undefined;
  if (server !== undefined) return { kind: "mcp", label: name, server, baseDir, mask };
  return { kind: "openapi", label: name, api: openapi[own] as OpenApiConfig, baseDir, mask };
}

async function isThere(path: string): Promise<boolean> {
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
      () => isThere(place),
      () => false,
    );
    if (isProgram) return true;
  }
  return false;
}
