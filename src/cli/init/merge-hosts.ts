import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, relative, resolve } from "node:path";
import { safeLine } from "../../core/text/clean-text.ts";
import { CONFIG_FILE } from "../../gateway/config/config-files.ts";
import type { McpServerConfig } from "../../gateway/config/gateway-config.ts";
import { knownHostFiles, readHostFile } from "../../gateway/config/import-hosts.ts";
import { CommandError, type Io } from "../io.ts";
import { freeName } from "./named-target.ts";

/** What was read from the file of one host. */
export interface HostServers {
  /** What the host is called. */
  readonly host: string;
  readonly servers: Readonly<Record<string, McpServerConfig>>;
  /** By the name that references in `servers` use. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly notes: readonly string[];
}

/** The servers of several hosts side by side. */
export interface MergedServers {
  readonly servers: ReadonlyMap<string, McpServerConfig>;
  /** Those that are not kept yet, by name. */
  readonly secrets: ReadonlyMap<string, string>;
  readonly notes: readonly string[];
}

/**
 * Puts the servers of hosts together so that nothing is lost: a server that two hosts have alike is there once, two that differ get
 * names of their own, and so do secrets, also beside those that are kept already.
 */
export function mergeHosts(hosts: readonly HostServers[], kept: ReadonlyMap<string, string>): MergedServers {
  const servers = new Map<string, McpServerConfig>();
  const secrets = new Map<string, string>();
  const notes: string[] = [];
  for (const { host, ...read } of hosts) {
    notes.push(...read.notes);
    const renamed = placeSecrets(read.secrets, kept, secrets);
    for (const [name, server] of Object.entries(read.servers)) {
      const placed = renameReferences(server, renamed) as McpServerConfig;
      const isSame = (other: string): boolean =>
        JSON.stringify(servers.get(other)) === JSON.stringify(placed);
      const free = freeName(name, (tried) => servers.has(tried) && !isSame(tried), "-");
      servers.set(free, placed);
      if (free !== name) notes.push(`"${name}" of ${host} is there twice; this one is called "${free}".`);
    }
  }
  return { servers, secrets, notes };
}

/** Finds a name for each secret that no other value has; returns those that had to change. */
function placeSecrets(
  read: Readonly<Record<string, string>>,
  kept: ReadonlyMap<string, string>,
  placed: Map<string, string>,
): Map<string, string> {
  const renamed = new Map<string, string>();
  for (const [name, value] of Object.entries(read)) {
    const valueAt = (tried: string): string | undefined => kept.get(tried) ?? placed.get(tried);
    const free = freeName(name, (tried) => (valueAt(tried) ?? value) !== value, "_");
    if (!kept.has(free)) placed.set(free, value);
    if (free !== name) renamed.set(name, free);
  }
  return renamed;
}

function renameReferences(value: unknown, renamed: ReadonlyMap<string, string>): unknown {
  if (renamed.size === 0) return value;
  if (typeof value === "string") {
    return value.replace(/(?<!\$)\$\{([A-Za-z_][A-Za-z0-9_]*)/g, (whole, name: string) => {
      const other = renamed.get(name);
      return other === undefined ? whole : `\${${other}`;
    });
  }
  if (Array.isArray(value)) return value.map((item) => renameReferences(item, renamed));
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).map(([key, member]) => [key, renameReferences(member, renamed)]);
  return Object.fromEntries(members);
}

/** A file of another host that was found and has servers. */
export interface FoundHost extends HostServers {
  readonly path: string;
  /** Whether it belongs to this folder, and not to the person. */
  readonly isProject: boolean;
}

/** Looks where other hosts keep their servers; files that cannot be read are passed over. */
export async function findHosts(io: Io): Promise<FoundHost[]> {
  const home = io.env["HOME"] ?? io.env["USERPROFILE"] ?? homedir();
  const known = knownHostFiles({ home, env: io.env, platform: process.platform, cwd: io.cwd });
  const found: FoundHost[] = [];
  for (const { path } of known) {
    if (!existsSync(path) || found.some((other) => other.path === path)) continue;
    const read = await readHostFile(path, { cwd: io.cwd })
      .then((all) => withoutItself(all, io.cwd))
      .catch(() => undefined);
    if (read === undefined || Object.keys(read.servers).length === 0) continue;
    found.push({
      ...read,
      path,
      isProject: !relative(io.cwd, path).startsWith("..") && !isHome(io.cwd, home),
    });
  }
  return found;
}

/** In one's own folder, files of the person look like those of a project. */
function isHome(cwd: string, home: string): boolean {
  return resolve(cwd) === resolve(home);
}

/** Reads the file of a host that was named. */
export async function readHost(io: Io, given: string): Promise<HostServers> {
  const path = resolve(io.cwd, given);
  if (!existsSync(path)) throw new CommandError(`there is no file ${safeLine(given, 200)}.`);
  let read: HostServers;
  try {
    read = withoutItself(await readHostFile(path, { cwd: io.cwd }), io.cwd);
  } catch (cause) {
    const why = cause instanceof Error ? safeLine(cause.message, 300) : "";
    throw new CommandError(`${safeLine(given, 200)} cannot be taken over: ${why}`, undefined, { cause });
  }
  if (Object.keys(read.servers).length > 0) return read;
  const besides = read.notes.some((note) => note.endsWith(ITSELF)) ? " besides this gateway" : "";
  throw new CommandError(`${safeLine(given, 200)} has no MCP servers${besides}.`);
}

/** What is said of a server that is left out because it is the gateway that the new config is for. */
const ITSELF = "starts the gateway of this folder, and was left out.";

/** Leaves out what `waybill connect` added to the file: the gateway of a folder cannot be a server of its own config. */
function withoutItself<T extends HostServers>(read: T, cwd: string): T {
  const all = Object.entries(read.servers);
  const others = all.filter(([, server]) => !startsGatewayOf(cwd, server));
  if (others.length === all.length) return read;
  const left = all.filter((entry) => !others.includes(entry)).map(([name]) => `${name}: ${ITSELF}`);
  return { ...read, servers: Object.fromEntries(others), notes: [...read.notes, ...left] };
}

/** Tells whether a server is a gateway over stdio, of a config in this folder or of the one that is found where it starts. */
function startsGatewayOf(folder: string, { command, args = [], cwd }: McpServerConfig): boolean {
  if (command === undefined || !args.includes("serve") || !args.includes("--stdio")) return false;
  const started = resolve(folder, cwd ?? ".");
  const at = args.findIndex((arg) => arg === "--config" || arg.startsWith("--config="));
  if (at >= 0) {
    const config = resolve(
      started,
      args[at] === "--config" ? (args[at + 1] ?? "") : (args[at] ?? "").slice(9),
    );
    return dirname(config) === resolve(folder) && CONFIG_FILE.test(basename(config));
  }
  const isWaybill = [command, ...args].some((word) =>
    /(?:^|[\\/])waybill(?:@[\w.-]+)?$|[\\/]dist[\\/]cli\.js$/.test(word),
  );
  return isWaybill && started === resolve(folder);
}
