import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { isStringList } from "../core/json/json-value.ts";
import { stateFolder } from "../gateway/embedded/state-folder.ts";
import type { Io } from "./io.ts";
import type { Session, SourceFlags } from "./session/session.ts";

/** What completion and suggestions know of what is mounted. */
export interface KnownNames {
  readonly operations: readonly { readonly id: string; readonly about: string }[];
  readonly sources: readonly string[];
  /** Those of the sources that are MCP servers. */
  readonly servers: readonly string[];
}

/** More would only be slow to complete. */
const MOST_OPERATIONS = 20_000;
const MOST_CHARACTERS = 120;
const MOST_BYTES = 16 * 1024 * 1024;
/** Targets whose names are kept; the oldest go. */
const MOST_FILES = 50;

/** What the flags point at: names are kept for each. */
async function targetKey(io: Io, flags: SourceFlags): Promise<string> {
  const { mcp, openapi, url, config } = flags;
  if (mcp !== undefined || openapi !== undefined || url !== undefined)
    return JSON.stringify([io.cwd, mcp, openapi, url]);
  if (config !== undefined) return resolve(io.cwd, config);
  const { findConfig } = await import("../gateway/config/config-files.ts");
  return (await findConfig(io.cwd)) ?? "embedded";
}

/** Where the names of what the flags point at are kept. */
async function fileFor(io: Io, flags: SourceFlags): Promise<string> {
  const name = createHash("sha256")
    .update(await targetKey(io, flags))
    .digest("hex")
    .slice(0, 24);
  return join(stateFolder({ env: io.env }), "names", `${name}.json`);
}

/** Keeps the names of what is mounted, for completion; says nothing where that cannot be done. */
export async function rememberNames(
  io: Io,
  flags: SourceFlags,
  session: Pick<Session, "gateway">,
): Promise<void> {
  try {
    const file = await fileFor(io, flags);
    const { gateway } = session;
    const operations = [...gateway.executor.operations]
      .filter(({ visibility }) => visibility !== "internal")
      .slice(0, MOST_OPERATIONS)
      .map(({ id, description }) => ({ id, about: description.slice(0, MOST_CHARACTERS) }));
    const sources = gateway.sources.map(({ name }) => name);
    const servers = serverNames(gateway);
    const beside = `${file}.${process.pid}`;
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await writeFile(beside, JSON.stringify({ operations, sources, servers }), { mode: 0o600 });
    await rename(beside, file).catch(() => rm(beside, { force: true }));
    await dropOldest(dirname(file));
  } catch {
    // A folder that cannot be written to costs completion its names, and nobody anything else.
  }
}

/** The names of those sources that are MCP servers. */
function serverNames({ sources }: Session["gateway"]): readonly string[] {
  return sources.filter(({ kind }) => kind === "mcp").map(({ name }) => name);
}

async function dropOldest(folder: string): Promise<void> {
  const names = await readdir(folder);
  if (names.length <= MOST_FILES) return;
  const dated = names.map(async (name) => {
    const facts = await stat(join(folder, name)).catch(() => undefined);
    return { name, at: facts?.mtimeMs ?? 0 };
  });
  const oldest = (await Promise.all(dated)).sort((a, b) => b.at - a.at).slice(MOST_FILES);
  await Promise.all(oldest.map(({ name }) => rm(join(folder, name), { force: true })));
}

/** Finds the names that were kept, and none where there are none; opens nothing but the file they are kept in. */
export async function recallNames(io: Io, flags: SourceFlags): Promise<KnownNames> {
  const nothing = { operations: [], sources: [], servers: [] };
  try {
    const file = await fileFor(io, flags);
    const { size } = await stat(file);
    if (size > MOST_BYTES) return nothing;
    const kept: unknown = JSON.parse(await readFile(file, "utf8"));
    return isKept(kept) ? kept : nothing;
  } catch {
    return nothing;
  }
}

function isKept(value: unknown): value is KnownNames {
  if (typeof value !== "object" || value === null) return false;
  const { operations, sources, servers } = value as Record<string, unknown>;
  return (
    isStringList(sources) &&
    isStringList(servers) &&
    Array.isArray(operations) &&
    operations.every(({ id, about }) => typeof id === "string" && typeof about === "string")
  );
}
