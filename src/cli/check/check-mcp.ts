import { isCallError } from "../../core/errors/errors.ts";
import { describeFindings } from "../../core/text/clean-text.ts";
import { findHidden } from "../../core/text/find-hidden.ts";
import { didYouMean, nearestName } from "../../core/text/nearest-name.ts";
import { openMcpConnection } from "../../mcp/client/connect.ts";
import type { McpConnectionOptions } from "../../mcp/client/connection-options.ts";
import type { McpConnection } from "../../mcp/client/mcp-connection.ts";
import { CommandError } from "../io.ts";
import { counted } from "../terminal/counted.ts";
import { CheckList, type CheckReport } from "./check-report.ts";
import { type CallPlan, checkCalls } from "./mcp-call-checks.ts";
import { checkContent } from "./mcp-content-checks.ts";
import { checkList, checkSize, checkStable } from "./mcp-list-checks.ts";
import { checkManners } from "./mcp-manners-checks.ts";
import { McpPeer } from "./mcp-peer.ts";
import { checkTools, type ListedTool } from "./mcp-tool-checks.ts";

/** How an MCP server is checked. */
export interface McpCheckOptions {
  /** What it is called in the report, without secrets. */
  readonly target: string;
  readonly connection: McpConnectionOptions;
  /** Milliseconds for one request. */
  readonly timeoutMs: number;
  readonly calls: Omit<CallPlan, "onCall">;
  readonly signal?: AbortSignal | undefined;
  /** Takes secrets out of what is told. @default nothing is taken out */
  readonly mask?: ((text: string) => string) | undefined;
  /** Hears what is looked at. */
  onProgress(text: string): void;
}

const TOOLS = { method: "tools/list", field: "tools", id: "mcp.list" } as const;

/** Asks an MCP server everything that can be asked without changing anything behind it; never rejects because of it. */
export async function checkMcp(options: McpCheckOptions): Promise<CheckReport> {
  const { target, connection: how, mask } = options;
  const list = new CheckList({ target, kind: "mcp" }, mask);
  options.onProgress(`connecting to ${target}`);
  const connection = await connect(list, how);
  if (connection === undefined) return list.report;
  try {
    await checkConnected(list, connection, options);
  } finally {
    await connection.close();
  }
  return list.report;
}

async function connect(list: CheckList, how: McpConnectionOptions): Promise<McpConnection | undefined> {
  try {
    const connection = await openMcpConnection(how);
    const { protocolVersion, serverInfo, instructions } = connection.server;
    const { name, version } = serverInfo ?? {};
    list.describe({ name, version, protocol: protocolVersion });
    list.pass("mcp.connect", "", `Connected; the server speaks ${protocolVersion}.`);
    const findings = findHidden([instructions, serverInfo]);
    if (findings.length > 0) {
      const message = `Characters that people do not see stand in what the server says of itself: ${describeFindings(findings)}.`;
      list.fail("mcp.tool.hidden", "", message);
    }
    return connection;
  } catch (thrown) {
    if (thrown instanceof TypeError) throw new CommandError(thrown.message);
    if (!isCallError(thrown)) throw thrown;
    list.unreachable("mcp.connect", thrown.message);
    return undefined;
  }
}

async function checkConnected(
  list: CheckList,
  connection: McpConnection,
  options: McpCheckOptions,
): Promise<void> {
  const { timeoutMs, signal, calls, onProgress } = options;
  const peer = new McpPeer(connection, timeoutMs, signal);
  onProgress("listing tools");
  const tools = await checkListing(list, peer);
  assertListed(tools, calls);
  await checkRevisions(list, connection, tools, options);
  onProgress("looking at its manners");
  await checkManners(list, peer, tools.length > 0);
  await checkCalls(list, peer, tools, { ...calls, onCall: (tool) => onProgress(`calling ${tool}`) });
  onProgress("reading resources and prompts");
  await checkContent(list, peer);
}

async function checkListing(list: CheckList, peer: McpPeer): Promise<readonly ListedTool[]> {
  if (peer.connection.server.capabilities["tools"] === undefined) {
    list.skip("mcp.list", "", "The server says that it has no tools.");
    return [];
  }
  const entries = await checkList(list, peer, TOOLS);
  if (entries === undefined) return [];
  await checkStable(list, peer, TOOLS, entries);
  checkSize(list, entries);
  return checkTools(list, entries);
}

/** A tool that is named and not there is a mistake of whoever asked. */
function assertListed(tools: readonly ListedTool[], { named, inputs }: McpCheckOptions["calls"]): void {
  const names = tools.map(({ name }) => name);
  for (const wanted of [...named, ...inputs.keys()]) {
    if (names.includes(wanted)) continue;
    throw new CommandError(`There is no tool "${wanted}"${didYouMean(nearestName(wanted, names))}`);
  }
}

/** Speaks the older revision to a server of the newer one, and compares what it offers. */
async function checkRevisions(
  list: CheckList,
  { server }: McpConnection,
  tools: readonly ListedTool[],
  { connection: how, timeoutMs, signal }: McpCheckOptions,
): Promise<void> {
  const id = "mcp.revision";
  if (server.protocolVersion < "2026" || how.protocol === "2026") {
    const other = server.protocolVersion < "2026" ? "2026-07-28" : "2025";
    list.skip(id, "", `Only ${server.protocolVersion} was spoken; ${other} is not offered or not asked for.`);
    return;
  }
  let older: McpConnection;
  try {
    older = await openMcpConnection({ ...how, protocol: "2025" });
  } catch (thrown) {
    if (!isCallError(thrown)) throw thrown;
    list.skip(id, "", `The 2025 revisions are not offered. ${thrown.message}`);
    return;
  }
  try {
    const found = new CheckList({ target: "", kind: "mcp" });
    const entries = (await checkList(found, new McpPeer(older, timeoutMs, signal), TOOLS)) ?? [];
    const names = new Set(entries.map((entry) => (entry as { name?: unknown } | null)?.name));
    const missing = tools.filter(({ name }) => !names.has(name)).map(({ name }) => name);
    const both = `${server.protocolVersion} and ${older.server.protocolVersion}`;
    if (missing.length === 0) list.pass(id, "", `${both} are spoken, with the same tools.`);
    else
      list.warn(id, "", `${both} are spoken; the older one lacks ${counted(missing.length, "tool")}.`, {
        evidence: missing,
      });
  } finally {
    await older.close();
  }
}
