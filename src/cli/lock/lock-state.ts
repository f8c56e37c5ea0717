import { isCallError } from "../../core/errors/errors.ts";
import { safeLine } from "../../core/text/clean-text.ts";
import { findDistrust } from "../../gateway/config/config-files.ts";
import { type ToolDifference, toReadableDiff, unambiguousText } from "../../gateway/lock/readable-diff.ts";
import type { McpConnectionOptions } from "../../mcp/client/connection-options.ts";
import { type McpSource, openMcpSource } from "../../mcp/client/from-mcp.ts";
import { readLockFile, updateLockFile } from "../../mcp/client/lock/lock-file.ts";
import {
  type ApprovedTool,
  approve,
  createToolLock,
  diffDefinitions,
  hashDefinition,
  type ToolDefinition,
  type ToolLock,
} from "../../mcp/client/lock/tool-lock.ts";
import { CommandError, EXIT } from "../io.ts";

/** A server whose definitions are looked at. */
export interface LockedServer {
  /** Its namespace, under which the lock keeps its tools. */
  readonly name: string;
  /** How it is reached, or what of its config cannot be used. */
  readonly connection: McpConnectionOptions | { readonly fault: string };
  /** As in the config: what is approved depends on it. */
  readonly keepIds: boolean;
  /** Whether the gateway refuses tools that are not approved. */
  readonly isEnforced: boolean;
}

/** One tool and how it compares with what was approved. */
export interface ToolState {
  readonly tool: string;
  readonly state: "approved" | "new" | "changed" | "gone";
  /** Where it was approved just now: what it was until then. */
  readonly was?: "new" | "changed";
  /** Where it differs; for new ones what it says of itself. Whole, with what hides made visible. */
  readonly diff: readonly ToolDifference[];
}

/** How the tools of one server compare with what was approved; what `--json` prints of it. */
export interface ServerLockState {
  readonly server: string;
  readonly reachable: boolean;
  /** Why it cannot be reached. */
  readonly reason?: string;
  readonly enforced: boolean;
  readonly tools: readonly ToolState[];
}

/** A server that is connected, so that what was shown is what is approved. */
export interface OpenServer {
  readonly state: ServerLockState;
  /** Approves tools of the state as they were shown; a `CommandError` where the server has changed any since. */
  approve(tools: readonly ToolState[]): Promise<void>;
  close(): Promise<void>;
}

/** Lists the tools of a server and compares them with the lock file. */
export async function openLocked(
  server: LockedServer,
  lockFile: string,
  mask: (text: string) => string,
): Promise<OpenServer> {
  const { name, isEnforced, connection } = server;
  if ("fault" in connection) return unreachable(server, connection.fault);
  try {
    const lock = await readLock(lockFile);
    const definitions = new Map<string, ToolDefinition>();
    const source = await openMcpSource({
      ...connection,
      namespace: name,
      ...(server.keepIds && { keepIds: true }),
      // Where nothing is approved every tool is told of, whole.
      pin: { lock: createToolLock() },
      onDefinitionChange: ({ tool, diff }) => void definitions.set(tool, diff[0]?.after as ToolDefinition),
      onWarning: () => {},
    });
    const approved = (Object.hasOwn(lock.servers, name) ? lock.servers[name] : undefined) ?? {};
    const exact = compareTools(approved, definitions, mask);
    const gone = Object.keys(approved).filter((tool) => !definitions.has(tool));
    const state = {
      server: name,
      reachable: true,
      enforced: isEnforced,
      tools: [...exact.keys(), ...gone.map((tool) => toState(tool, "gone", mask))],
    };
    const approve = approver(source, { name, lockFile, exact });
    return { state, approve, close: () => source.close() };
  } catch (thrown) {
    if (thrown instanceof TypeError)
      throw new CommandError(`The server "${name}" cannot be used: ${thrown.message}`);
    if (!isCallError(thrown)) throw thrown;
    return unreachable(server, mask(safeLine(mask(thrown.message))));
  }
}

function unreachable({ name, isEnforced }: LockedServer, reason: string): OpenServer {
  const state = { server: name, reachable: false, reason, enforced: isEnforced, tools: [] };
  return { state, approve: async () => {}, close: async () => {} };
}

async function readLock(lockFile: string): Promise<ToolLock> {
  const distrust = await findDistrust(lockFile);
  if (distrust !== undefined) throw new CommandError(`The lock file "${safeLine(lockFile)}" ${distrust}.`);
  try {
    return (await readLockFile(lockFile)) ?? createToolLock();
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new CommandError(message, EXIT.usage, { cause });
  }
}

/** The person who approves sees all of it. */
const UNLIMITED = { differences: Number.POSITIVE_INFINITY, sideLength: Number.POSITIVE_INFINITY };

type ShownTools = ReadonlyMap<ToolState, ToolDefinition>;

/** By what is shown, what it was made of: names may hide something, and what is shown does not. */
function compareTools(
  approved: Readonly<Record<string, ApprovedTool>>,
  definitions: ReadonlyMap<string, ToolDefinition>,
  mask: (text: string) => string,
): ShownTools {
  const byName = [...definitions].sort(([a], [b]) => (a < b ? -1 : 1));
  return new Map(
    byName.map(([tool, definition]) => {
      const known = Object.hasOwn(approved, tool) ? approved[tool] : undefined;
      if (known?.hash === hashDefinition(definition)) return [toState(tool, "approved", mask), definition];
      const diff = toReadableDiff(diffDefinitions(known?.definition, definition, UNLIMITED), mask);
      return [{ ...toState(tool, known === undefined ? "new" : "changed", mask), diff }, definition];
    }),
  );
}

function toState(tool: string, state: ToolState["state"], mask: (text: string) => string): ToolState {
  return { tool: mask(safeLine(unambiguousText(mask(tool)), 200)), state, diff: [] };
}

interface ShownServer {
  readonly name: string;
  readonly lockFile: string;
  readonly exact: ShownTools;
}

/** Approves what was shown, and nothing that the server says after it was looked at. */
function approver(source: McpSource, { name, lockFile, exact }: ShownServer): OpenServer["approve"] {
  let isStale = false;
  source.onChange(() => {
    isStale = true;
  });
  return async (tools) => {
    if (isStale) {
      const message = `The server "${name}" changed its tools meanwhile; nothing of it was approved. Look again.`;
      throw new CommandError(message, EXIT.toolError);
    }
    const definitions = tools.map((tool) => exact.get(tool)).filter((one) => one !== undefined);
    await updateLockFile(lockFile, (lock = createToolLock()) => approve(lock, name, definitions));
  };
}
