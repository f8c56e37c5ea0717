import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type McpConnection,
  type McpConnectionEvent,
  openMcpConnection,
} from "../../src/mcp/client/mcp-connection.ts";
import type { ConnectionSettings } from "../../src/mcp/index.ts";

const SCRIPT = fileURLToPath(new URL("./scripted.js", import.meta.url));

/** How the scripted server starts. */
export type ScriptedMode =
  | "legacy"
  | "modern"
  | "exits-on-probe"
  | "silent-on-probe"
  | "strict"
  | "downgrades"
  | "both"
  | "silent-2025-11-25"
  | "exits-on-initialize"
  | "deaf"
  | "crashes-later";

/** A connection to the scripted server, and what can be seen of it from outside. */
export interface ScriptedConnection {
  readonly connection: McpConnection;
  readonly events: McpConnectionEvent[];
  /** The ids of all processes that were started. */
  pids(): number[];
}

/** Makes options for the scripted server, and how to see which processes it was. */
export function scriptedOptions(mode: ScriptedMode) {
  const starts = join(mkdtempSync(join(tmpdir(), "waybill-mcp-")), "starts");
  const pids = (): number[] => {
    try {
      return readFileSync(starts, "utf8").trim().split("\n").map(Number);
    } catch {
      return [];
    }
  };
  return { options: { command: process.execPath, args: [SCRIPT, mode], env: { STARTS: starts } }, pids };
}

/** Connects to the scripted server, lets a test use it, and closes it. */
export async function withScripted(
  mode: ScriptedMode,
  settings: ConnectionSettings,
  use: (scripted: ScriptedConnection) => Promise<void>,
): Promise<void> {
  const { options, pids } = scriptedOptions(mode);
  const connection = await openMcpConnection({ ...options, ...settings });
  const events: McpConnectionEvent[] = [];
  connection.onEvent((event) => events.push(event));
  try {
    await use({ connection, events, pids });
  } finally {
    await connection.close();
  }
}

/** Calls a tool of the scripted server. */
export function callScripted(
  connection: McpConnection,
  name: string,
  args: Readonly<Record<string, unknown>> = {},
  options: Parameters<McpConnection["request"]>[2] = {},
): Promise<Readonly<Record<string, unknown>>> {
  return connection.request("tools/call", { name, arguments: args }, options);
}

/** The value that a tool of the scripted server wrote as JSON into its one block. */
export function textOf(result: Readonly<Record<string, unknown>>): unknown {
  const [block] = result["content"] as readonly { readonly text: string }[];
  return JSON.parse(block?.text ?? "null");
}

/** Waits until something holds; fails where it never does. */
export async function until(what: () => boolean): Promise<void> {
  const end = Date.now() + 20_000;
  while (!what()) {
    if (Date.now() > end) throw new Error("It did not happen in twenty seconds.");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Tells whether a process still runs. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
