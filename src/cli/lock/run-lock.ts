import { safeLine } from "../../core/text/safe-text.ts";
import { lockFileOf } from "../../gateway/sources/mcp-source.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { readTarget } from "../session.ts";
import { spelledCommand } from "../spelled-command.ts";
import { toSafeJson } from "../terminal/json-output.ts";
import { withProgress } from "../terminal/progress.ts";
import { type Approved, approveTools, withApproved } from "./approve-tools.ts";
import { chooseServers } from "./choose-servers.ts";
import { type LockedServer, type OpenServer, openLocked, type ServerLockState } from "./lock-state.ts";
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
        'There is no config here; write one with "waybill init", or name a server with --mcp.',
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
    const approved = approve === undefined ? undefined : await approveTools(io, opened, approving);
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
