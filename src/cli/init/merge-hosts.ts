import type { McpServerConfig } from "../../gateway/config/gateway-config.ts";
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
