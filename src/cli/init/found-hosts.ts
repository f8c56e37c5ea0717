import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { relative, resolve } from "node:path";
import { safeLine } from "../../core/text/safe-text.ts";
import { knownHostFiles, readHostFile } from "../../gateway/config/import-hosts.ts";
import { CommandError, type Io } from "../io.ts";
import type { HostServers } from "./merge-hosts.ts";

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
    const read = await readHostFile(path, { cwd: io.cwd }).catch(() => undefined);
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
    read = await readHostFile(path, { cwd: io.cwd });
  } catch (cause) {
    const why = cause instanceof Error ? safeLine(cause.message, 300) : "";
    throw new CommandError(`${safeLine(given, 200)} cannot be taken over: ${why}`, undefined, { cause });
  }
  if (Object.keys(read.servers).length > 0) return read;
  throw new CommandError(`${safeLine(given, 200)} has no MCP servers.`);
}
