import { didYouMean } from "../../core/text/nearest-name.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { nearestNames } from "../nearest-names.ts";
import { askToApprove } from "./ask-to-approve.ts";
import type { ChosenServer } from "./choose-servers.ts";
import type { OpenServer, ServerLockState, ToolState } from "./lock-state.ts";

/** Approved tools as they were before, by server. */
export type Approved = ReadonlyMap<string, readonly ToolState[]>;

/** What is approved, and where that is kept. */
export interface ApproveOptions {
  /** With the tools that were named of each. */
  readonly servers: readonly ChosenServer[];
  /** Tools that were named, of whichever server. */
  readonly named: readonly string[] | undefined;
  /** Nobody is asked. */
  readonly yes: boolean | undefined;
  readonly lockFile: string;
}

/** Approves what is wanted and not yet approved, once somebody has agreed to it; gives what that was. */
export async function approveTools(
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
export function withApproved(state: ServerLockState, approved: Approved): ServerLockState {
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
