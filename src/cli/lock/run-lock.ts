import { safeLine } from "../../core/text/clean-text.ts";
import { counted, didYouMean, nearestNames } from "../../core/text/nearest-name.ts";
import type { McpServerConfig } from "../../gateway/config/gateway-config.ts";
import { type LoadedConfig, sourceNames } from "../../gateway/config/loaded-config.ts";
import { lockFileOf } from "../../gateway/sources/mcp-server-source.ts";
import { loginOfServer } from "../../gateway/sources/source-login.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { spelledCommand } from "../pasted-command.ts";
import { readTarget } from "../session/session.ts";
import { configuredConnection } from "../session/target-config.ts";
import { withProgress } from "../terminal/progress.ts";
import { toSafeJson } from "../terminal/style.ts";
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
  /** Names of servers, or of tools as `server.tool`, or `true` for all. */
  readonly approve?: readonly string[] | true | undefined;
  readonly tool?: readonly string[] | undefined;
  readonly yes?: boolean | undefined;
  /** Cuts nothing of what is shown. */
  readonly all?: boolean | undefined;
  readonly json?: boolean | undefined;
}

/** Shows how tools compare with what was approved, or approves them; gives the exit code. */
export async function runLock(io: Io, names: readonly string[], flags: LockFlags): Promise<number> {
  const { config, mcp, tokenEnv, approve, tool: named, yes } = flags;
  if (flags.tool !== undefined && approve === undefined)
    throw new CommandError("--tool goes with --approve.");
  const target = await readTarget(io, { config, mcp, tokenEnv });
  const opened: OpenServer[] = [];
  try {
    const { loaded, kind } = target;
    if (kind === "embedded") {
      throw new CommandError(
        `There is no config here; write one with "${spelledCommand(io)} init", or name a server with --mcp.`,
      );
    }
    const wanted = [...names, ...(Array.isArray(approve) ? approve : [])];
    const servers = await chooseServers(loaded, wanted);
    if (approve === undefined && servers.some(({ tools }) => tools !== undefined))
      throw new CommandError("A tool is named with --approve alone; name its server to see how it compares.");
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
    const approving = { servers, named, yes, lockFile };
    const approved = approve === undefined ? undefined : await approveChangedTools(io, opened, approving);
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
  if (!json) {
    const command = spelledCommand(io);
    const { stdout: stream, env } = io;
    stream.write(toLockText(states, { stream, env, lockFile, approved, command, all }));
    return;
  }
  const ok = exitCodeOf(states) === EXIT.ok;
  const names =
    approved && new Map([...approved].map(([server, tools]) => [server, tools.map(({ tool }) => tool)]));
  const report = { ok, lockFile, servers: states, ...(names && { approved: Object.fromEntries(names) }) };
  io.stdout.write(`${toSafeJson(report, 2)}\n`);
}

/** A server that was asked for, and which of its tools. */
interface ChosenServer extends LockedServer {
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
async function chooseServers(
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
  const locksAll = config.lock !== undefined && config.lock !== false;
  return {
    name,
    connection:
      fault === undefined
        ? await configuredConnection(server, baseDir, loginOfServer(name, server, loaded))
        : { fault },
    keepIds: server.keepIds === true,
    isEnforced: server.lock ?? locksAll,
  };
}

/** Approved tools as they were before, by server. */
type Approved = ReadonlyMap<string, readonly ToolState[]>;

/** What is approved, and where that is kept. */
interface ApproveOptions {
  /** With the tools that were named of each. */
  readonly servers: readonly ChosenServer[];
  /** Tools that were named, of whichever server. */
  readonly named: readonly string[] | undefined;
  /** Nobody is asked. */
  readonly yes: boolean | undefined;
  readonly lockFile: string;
}

/** Approves what is wanted and not yet approved, once somebody has agreed to it; gives what that was. */
async function approveChangedTools(
  io: Io,
  opened: readonly OpenServer[],
  { servers, named, yes, lockFile }: ApproveOptions,
): Promise<Approved> {
  assertListed(opened, named ?? []);
  const wanted = opened.map((server) => {
    const tools = namedOf(server, servers, named);
    return { server, tools: server.state.tools.filter((tool) => isOpen(tool) && isNamed(tool, tools)) };
  });
  if (!yes) {
    const asked = wanted.map(({ server, tools }) => ({ state: server.state, tools }));
    await askToApprove(io, asked);
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

/** How a server stands once these tools are approved. */
function withApproved(state: ServerLockState, approved: Approved): ServerLockState {
  const now = new Set(approved.get(state.server) ?? []);
  const tools = state.tools.map((tool) => (now.has(tool) ? toApproved(tool) : tool));
  return { ...state, tools };
}

function toApproved(tool: ToolState): ToolState {
  const was = tool.state === "new" ? "new" : "changed";
  return { ...tool, state: "approved", was, diff: [] };
}

/** The tools that were named for a server; nothing where all are meant. */
function namedOf(
  { state }: OpenServer,
  servers: readonly ChosenServer[],
  named: readonly string[] | undefined,
): readonly string[] | undefined {
  const own = servers.find(({ name }) => name === state.server)?.tools;
  if (own === undefined) return named;
  if (state.reachable) assertOwn(state, own);
  return [...own, ...(named ?? [])];
}

function isOpen({ state }: ToolState): boolean {
  return state === "new" || state === "changed";
}

function isNamed({ tool }: ToolState, named: readonly string[] | undefined): boolean {
  return named?.includes(tool) ?? true;
}

function assertOwn({ server, tools }: ServerLockState, named: readonly string[]): void {
  const all = tools.map(({ tool }) => tool);
  for (const tool of named) {
    if (all.includes(tool)) continue;
    const [near] = nearestNames(tool, all);
    const hint = didYouMean(near && `${server}.${near}`);
    throw new CommandError(`The server "${server}" lists no tool "${safeLine(tool, 80)}"${hint}`);
  }
}

function assertListed(opened: readonly OpenServer[], named: readonly string[]): void {
  const all = opened.flatMap(({ state }) => state.tools.map(({ tool }) => tool));
  for (const tool of named) {
    if (all.includes(tool)) continue;
    const [near] = nearestNames(tool, all);
    throw new CommandError(`No server lists the tool "${safeLine(tool, 80)}"${didYouMean(near)}`);
  }
}

/** Tools of a server that would be approved. */
interface AskedServer {
  readonly state: ServerLockState;
  readonly tools: readonly ToolState[];
}

/**
 * Shows what would be approved and asks, on a terminal. Where nobody can be asked, `--yes` has to say it, unless nothing was ever approved of
 * the server: a first lock has nothing to compare with.
 */
async function askToApprove(io: Io, asked: readonly AskedServer[]): Promise<void> {
  if (io.stdin.isTTY !== true || io.stderr.isTTY !== true) {
    assertFirst(io, asked);
    return;
  }
  const all = asked.flatMap(({ tools }) => tools);
  if (all.length === 0) return;
  const shown = asked
    .map(({ state, tools }) => ({
      ...state,
      tools: state.tools.filter((tool) => tools.includes(tool) || tool.state === "gone"),
    }))
    .filter(({ tools }) => tools.length > 0);
  // Nothing of what is agreed to is cut.
  io.stderr.write(toLockText(shown, { stream: io.stderr, env: io.env, all: true }));
  const { confirm, isCancel } = await import("@clack/prompts");
  const answer = await confirm({
    message: `${summaryOf(all)} Approve?`,
    initialValue: false,
    input: io.stdin,
    output: io.stderr,
  });
  if (isCancel(answer)) throw new CommandError("Nothing was approved.", EXIT.interrupted);
  if (!answer) throw new CommandError("Nothing was approved.", EXIT.toolError);
}

function assertFirst(io: Io, asked: readonly AskedServer[]): void {
  const unseen = asked.filter(({ state }) => !isFirst(state)).flatMap(({ tools }) => tools);
  if (unseen.length === 0) return;
  const look = `look with "${spelledCommand(io)} lock"`;
  throw new CommandError(`${summaryOf(unseen)} Nothing was approved: ${look}, then add --yes.`);
}

/** Whether nothing of a server was approved so far. */
function isFirst({ tools }: ServerLockState): boolean {
  return tools.every(({ state }) => state === "new");
}

function summaryOf(tools: readonly ToolState[]): string {
  const changed = tools.filter(({ state }) => state === "changed").length;
  const fresh = tools.length - changed;
  const sentences = [
    ...(changed === 1 ? ["1 tool has changed since it was approved."] : []),
    ...(changed > 1 ? [`${changed} tools have changed since they were approved.`] : []),
    ...(fresh > 0 ? [`${counted(fresh, "tool")} ${fresh === 1 ? "is" : "are"} new.`] : []),
  ];
  return sentences.join(" ");
}
