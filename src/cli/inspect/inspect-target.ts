import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import { assertDocument, findSource, findTarget } from "../find-target.ts";
import { CommandError, type Io } from "../io.ts";
import type { SourceFlags } from "../session.ts";

/** What is looked at, as flags say it. */
export interface InspectTarget {
  readonly flags: SourceFlags;
  /** The one source of the config that is meant, such as `mcpServers.github`. @default all */
  readonly only?: string;
}

/** A config by its usual name. */
const CONFIG_FILE = /(?:^|[\\/])waybill\.config\.[a-z]+$/i;

/** Finds out what is meant to be looked at; without a target, what the flags say. */
export async function findInspectTarget(
  io: Io,
  target: string | undefined,
  flags: SourceFlags,
): Promise<InspectTarget> {
  const { config, mcp, openapi, url, tokenEnv, baseUrl, allowPrivate } = flags;
  // What has no use for these says so when it is read.
  const api = { baseUrl, allowPrivate };
  if (target === undefined) {
    if (openapi !== undefined) await assertDocument(io, openapi);
    return { flags: { config, mcp, openapi, url, tokenEnv, ...api } };
  }
  if ([mcp, openapi, url].some((given) => given !== undefined))
    throw new CommandError("inspect takes one target.");
  if (config !== undefined)
    return { flags: { config, ...api }, only: (await findSource(io, target, config)).key };
  if (CONFIG_FILE.test(target)) return { flags: { config: target, ...api } };
  const found = await findTarget(io, target);
  switch (found.kind) {
    case "mcp":
      return { flags: { mcp: target, tokenEnv, ...api } };
    case "openapi":
      await assertDocument(io, target);
      return { flags: { openapi: target, tokenEnv, ...api } };
    case "gateway":
      // What merely looks like a gateway gets no token that nobody meant for it.
      return { flags: { url: target, ...api, ...(tokenEnv === undefined ? { token: "" } : { tokenEnv }) } };
    case "source":
      return { flags: { ...api }, only: found.key };
  }
}

/** The config with one of its sources alone; one that is gone leaves nothing. */
export function withOnlySource(loaded: LoadedConfig, key: string): LoadedConfig {
  const { mcpServers = {}, openapi = {}, operations: _, bus: __, ...rest } = loaded.config;
  const pick = <T>(kind: string, entries: Readonly<Record<string, T>>): Record<string, T> =>
    Object.fromEntries(Object.entries(entries).filter(([name]) => `${kind}.${name}` === key));
  const config = {
    ...rest,
    mcpServers: pick("mcpServers", mcpServers),
    openapi: pick("openapi", openapi),
  };
  return { ...loaded, config };
}
