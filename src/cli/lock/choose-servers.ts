import { didYouMean } from "../../core/text/nearest-name.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import type { McpServerConfig } from "../../gateway/config/gateway-config.ts";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import { sourceNames } from "../../gateway/config/source-names.ts";
import { configuredConnection } from "../configured-connection.ts";
import { CommandError } from "../io.ts";
import { nearestNames } from "../nearest-names.ts";
import type { LockedServer } from "./lock-state.ts";

/** A server that was asked for, and which of its tools. */
export interface ChosenServer extends LockedServer {
  /** Named as `server.tool`; nothing where the server was asked for as a whole. */
  readonly tools: readonly string[] | undefined;
}

interface KnownServer {
  /** As the config spells it. */
  readonly key: string;
  /** Its namespace. */
  readonly name: string;
  readonly server: McpServerConfig;
}

/** Finds the servers that are named, alone or as `server.tool`; all of them where none is. */
export async function chooseServers(
  loaded: LoadedConfig,
  wanted: readonly string[],
): Promise<readonly ChosenServer[]> {
  const { config } = loaded;
  const names = sourceNames(config);
  const known = Object.entries(config.mcpServers ?? {}).map(([key, server]) => ({
    key,
    name: names.get(`mcpServers.${key}`) as string,
    server,
  }));
  const named = new Map<KnownServer, readonly string[] | undefined>();
  for (const word of wanted) {
    const { server, tool } = findNamed(known, word);
    const before = named.get(server) ?? [];
    const isWhole = tool === undefined || (named.has(server) && named.get(server) === undefined);
    named.set(server, isWhole ? undefined : [...before, tool]);
  }
  const chosen = known.filter((one) => (named.size === 0 || named.has(one)) && one.server.disabled !== true);
  return await Promise.all(
    chosen.map(async (one) => ({ ...(await toLocked(one, loaded)), tools: named.get(one) })),
  );
}

/** A server of that very name comes first: names of servers and of tools may have dots. */
function findNamed(
  known: readonly KnownServer[],
  word: string,
): { readonly server: KnownServer; readonly tool?: string } {
  const whole = known.find(({ key, name }) => key === word || name === word);
  if (whole !== undefined) return { server: whole };
  for (const server of known) {
    for (const own of [server.key, server.name]) {
      if (word.startsWith(`${own}.`) && word.length > own.length + 1)
        return { server, tool: word.slice(own.length + 1) };
    }
  }
  const near = nearestNames(
    word,
    known.map(({ name }) => name),
  );
  throw new CommandError(
    `There is no MCP server "${safeLine(word, 80)}" in the config${didYouMean(near[0])}`,
  );
}

async function toLocked({ key, name, server }: KnownServer, loaded: LoadedConfig): Promise<LockedServer> {
  const { config, baseDir, faults } = loaded;
  const fault = Object.hasOwn(faults, `mcpServers.${key}`) ? faults[`mcpServers.${key}`] : undefined;
  if (fault !== undefined) throw new CommandError(`The server "${name}" cannot be used: ${fault}`);
  const locksAll = config.lock !== undefined && config.lock !== false;
  return {
    name,
    connection: await configuredConnection(server, baseDir),
    keepIds: server.keepIds === true,
    isEnforced: server.lock ?? locksAll,
  };
}
