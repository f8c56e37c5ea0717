import { safeLine } from "../../core/text/safe-text.ts";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import { sourceNames } from "../../gateway/config/source-names.ts";
import { lockFileOf } from "../../gateway/sources/mcp-source.ts";
import { configuredConnection } from "../configured-connection.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { nearestNames } from "../nearest-names.ts";
import { readTarget } from "../session.ts";
import { spelledCommand } from "../spelled-command.ts";
import { toSafeJson } from "../terminal/json-output.ts";
import { withProgress } from "../terminal/progress.ts";
import { askToApprove } from "./ask-to-approve.ts";
import {
  type LockedServer,
  type OpenServer,
  openLocked,
  type ServerLockState,
  type ToolState,
} from "./lock-state.ts";
import { toLockText } from "./write-lock-state.ts";

/** The flags of `waybill lock`. */
export interface LockFlags {
  readonly config?: string | undefined;
  readonly mcp?: string | undefined;
  readonly tokenEnv?: string | undefined;
  /** Names of servers, or `true` for all. */
  readonly approve?: readonly string[] | true | undefined;
  readonly tool?: readonly string[] | undefined;
  readonly yes?: boolean | undefined;
  /** Cuts nothing of what is shown. */
  readonly all?: boolean | undefined;
  readonly json?: boolean | undefined;
}

/** Shows how tools compare with what was approved, or approves them; gives the exit code. */
export async function runLock(io: Io, names: readonly string[], flags: LockFlags): Promise<number> {
  const { config, mcp, tokenEnv, approve } = flags;
  if (flags.tool !== undefined && approve === undefined)
    throw new CommandError("--tool goes with --approve.");
  const target = await readTarget(io, { config, mcp, tokenEnv });
  const opened: OpenServer[] = [];
  try {
    const { loaded, kind } = target;
    if (kind === "embedded") {
      throw new CommandError(
        'There is no config here; write one with "waybill init", or name a server with --mcp.',
      );
    }
    const wanted = [...names, ...(Array.isArray(approve) ? approve : [])];
    const servers = await chooseServers(loaded, wanted);
    const lockFile = lockFileOf(loaded);
    const mask = (text: string) => loaded.secrets.mask(text);
    await withProgress(io, `listing the tools of ${servers.length} servers`, async () => {
      // All at once, and each of them kept even where another fails.
      const opening = servers.map(async (server) => opened.push(await openLocked(server, lockFile, mask)));
      const failed = (await Promise.allSettled(opening)).find(({ status }) => status === "rejected");
      if (failed !== undefined) throw (failed as PromiseRejectedResult).reason;
    });
    opened.sort((a, b) => indexOf(servers, a) - indexOf(servers, b));
    const states = opened.map(({ state }) => state);
    const approved = approve === undefined ? undefined : await approveAll(io, opened, flags, lockFile);
    const after = approved === undefined ? states : states.map((state) => withApproved(state, approved));
    tell(io, { states: after, approved, lockFile }, flags);
    if (kind === "config" && !io.quiet) warnOfUnlocked(io, states);
    return exitCodeOf(after);
  } finally {
    await Promise.all(opened.map((server) => server.close()));
    await target.close();
  }
}

function indexOf(servers: readonly LockedServer[], { state }: OpenServer): number {
  return servers.findIndex(({ name }) => name === state.server);
}

/** Approving is of no use where nobody asks for it. */
function warnOfUnlocked(io: Io, states: readonly ServerLockState[]): void {
  const open = states.filter(({ enforced }) => !enforced).map(({ server }) => server);
  if (open.length === 0) return;
  const which = open.length === states.length ? "" : ` for ${safeLine(open.join(", "), 200)}`;
  io.stderr.write(
    `waybill: the config does not say "lock": true${which}, so the gateway serves tools whether they are approved or not.\n`,
  );
}

async function chooseServers(
  loaded: LoadedConfig,
  wanted: readonly string[],
): Promise<readonly LockedServer[]> {
  const { config, baseDir, faults } = loaded;
  const names = sourceNames(config);
  const locksAll = config.lock !== undefined && config.lock !== false;
  const known = Object.entries(config.mcpServers ?? {}).map(([key, server]) => ({
    key,
    name: names.get(`mcpServers.${key}`) as string,
    server,
  }));
  for (const name of wanted) {
    if (known.some((one) => one.key === name || one.name === name)) continue;
    const [near] = nearestNames(
      name,
      known.map((one) => one.name),
    );
    const hint = near === undefined ? "." : `; did you mean "${near}"?`;
    throw new CommandError(`There is no MCP server "${safeLine(name, 80)}" in the config${hint}`);
  }
  const isWanted = ({ key, name }: { key: string; name: string }) =>
    wanted.length === 0 || wanted.includes(key) || wanted.includes(name);
  const chosen = known.filter((one) => isWanted(one) && one.server.disabled !== true);
  return await Promise.all(
    chosen.map(async ({ key, name, server }) => {
      const fault = Object.hasOwn(faults, `mcpServers.${key}`) ? faults[`mcpServers.${key}`] : undefined;
      if (fault !== undefined) throw new CommandError(`The server "${name}" cannot be used: ${fault}`);
      return {
        name,
        connection: await configuredConnection(server, baseDir),
        keepIds: server.keepIds === true,
        isEnforced: server.lock ?? locksAll,
      };
    }),
  );
}

/** Approved tools, by server. */
type Approved = ReadonlyMap<string, readonly ToolState[]>;

async function approveAll(
  io: Io,
  opened: readonly OpenServer[],
  { tool: named, yes }: LockFlags,
  lockFile: string,
): Promise<Approved> {
  assertListed(opened, named ?? []);
  const wanted = opened.map((server) => ({ server, tools: toApprove(server.state, named) }));
  const changed = wanted.flatMap(({ tools }) => tools).filter(({ state }) => state === "changed");
  if (changed.length > 0 && !yes) {
    await askToApprove(
      io,
      opened.map(({ state }) => state),
      changed.length,
    );
  }
  const approved = new Map<string, readonly ToolState[]>();
  for (const { server, tools } of wanted) {
    if (tools.length === 0) continue;
    await server.approve(tools).catch((cause: unknown) => {
      if (cause instanceof CommandError) throw cause;
      const message = cause instanceof Error ? cause.message : String(cause);
      throw new CommandError(`${message} (${safeLine(lockFile)})`, EXIT.usage, { cause });
    });
    approved.set(server.state.server, tools);
  }
  return approved;
}

function assertListed(opened: readonly OpenServer[], named: readonly string[]): void {
  const all = opened.flatMap(({ state }) => state.tools.map(({ tool }) => tool));
  for (const tool of named) {
    if (all.includes(tool)) continue;
    const [near] = nearestNames(tool, all);
    const hint = near === undefined ? "." : `; did you mean "${near}"?`;
    throw new CommandError(`No server lists the tool "${safeLine(tool, 80)}"${hint}`);
  }
}

function toApprove({ tools }: ServerLockState, named: readonly string[] | undefined): readonly ToolState[] {
  return tools.filter(
    ({ tool, state }) => (state === "new" || state === "changed") && (named?.includes(tool) ?? true),
  );
}

function withApproved(state: ServerLockState, approved: Approved): ServerLockState {
  const now = new Set(approved.get(state.server) ?? []);
  const tools = state.tools.map((tool) =>
    now.has(tool) ? { ...tool, state: "approved" as const, diff: [] } : tool,
  );
  return { ...state, tools };
}

/** 3 where a server cannot be reached, 1 where a tool is not as approved, else 0. */
function exitCodeOf(states: readonly ServerLockState[]): number {
  if (states.some(({ reachable }) => !reachable)) return EXIT.callError;
  const isOpen = states.some(({ tools }) =>
    tools.some(({ state }) => state === "new" || state === "changed"),
  );
  return isOpen ? EXIT.toolError : EXIT.ok;
}

interface Told {
  readonly states: readonly ServerLockState[];
  readonly approved: Approved | undefined;
  readonly lockFile: string;
}

function tell(io: Io, { states, approved, lockFile }: Told, { json, all }: LockFlags): void {
  const names =
    approved && new Map([...approved].map(([server, tools]) => [server, tools.map(({ tool }) => tool)]));
  if (!json) {
    const command = spelledCommand(io);
    const { stdout: stream, env } = io;
    stream.write(toLockText(states, { stream, env, lockFile, approved: names, command, all }));
    return;
  }
  const ok = exitCodeOf(states) === EXIT.ok;
  const report = { ok, lockFile, servers: states, ...(names && { approved: Object.fromEntries(names) }) };
  io.stdout.write(`${toSafeJson(report, 2)}\n`);
}
