import { isCallError } from "../../core/errors/errors.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { describeFindings, findHidden } from "../../core/text/clean-text.ts";
import { counted, didYouMean, nearestName } from "../../core/text/nearest-name.ts";
import { estimateTokens } from "../../formats/preview/token-budget.ts";
import type { McpConnectionOptions } from "../../mcp/client/connection-options.ts";
import { listPages } from "../../mcp/client/list-pages.ts";
import { type McpConnection, openMcpConnection } from "../../mcp/client/mcp-connection.ts";
import { CommandError } from "../io.ts";
import { type CheckId, CheckList, type CheckOptions, type CheckReport } from "./check-report.ts";
import { type CallPlan, checkCalls } from "./mcp-call-checks.ts";
import { describeAnswer, isRefusal, McpPeer, type PeerCheck } from "./mcp-peer.ts";
import { checkTools, type ListedTool } from "./mcp-tool-checks.ts";

/** How an MCP server is checked. */
export interface McpCheckOptions extends CheckOptions {
  readonly connection: McpConnectionOptions;
  readonly calls: Omit<CallPlan, "onCall">;
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
  const check: PeerCheck = { list, peer };
  onProgress("listing tools");
  const tools = await checkListing(check);
  assertListed(tools, calls);
  await checkRevisions(check, tools, options);
  onProgress("looking at its manners");
  await checkManners(check, tools.length > 0);
  await checkCalls(check, tools, { ...calls, onCall: (tool) => onProgress(`calling ${tool}`) });
  onProgress("reading resources and prompts");
  await checkContent(check);
}

async function checkListing(check: PeerCheck): Promise<readonly ListedTool[]> {
  const { list, peer } = check;
  if (peer.connection.server.capabilities["tools"] === undefined) {
    list.skip("mcp.list", "", "The server says that it has no tools.");
    return [];
  }
  const entries = await checkList(check, TOOLS);
  if (entries === undefined) return [];
  await checkStable(check, TOOLS, entries);
  checkSize(list, entries);
  return checkTools(list, entries);
}

/** A tool that is named and not there is a mistake of the caller. */
function assertListed(tools: readonly ListedTool[], { named, inputs }: McpCheckOptions["calls"]): void {
  const names = tools.map(({ name }) => name);
  for (const wanted of [...named, ...inputs.keys()]) {
    if (names.includes(wanted)) continue;
    throw new CommandError(`There is no tool "${wanted}"${didYouMean(nearestName(wanted, names))}`);
  }
}

/** Speaks the older revision to a server of the newer one, and compares what it offers. */
async function checkRevisions(
  { list, peer }: PeerCheck,
  tools: readonly ListedTool[],
  { connection: how, timeoutMs, signal }: McpCheckOptions,
): Promise<void> {
  const id = "mcp.revision";
  const { server } = peer.connection;
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
    const check: PeerCheck = { list: found, peer: new McpPeer(older, timeoutMs, signal) };
    const entries = (await checkList(check, TOOLS)) ?? [];
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

const NO_SUCH_TOOL = "waybill-check-no-such-tool";
const NO_SUCH_METHOD = "waybill/check-no-such-method";

/** Checks how a server takes what it does not know. */
async function checkManners(check: PeerCheck, hasTools: boolean): Promise<void> {
  await checkUnknownMethod(check);
  await checkPing(check);
  if (hasTools) await checkUnknownTool(check);
}

async function checkUnknownMethod({ list, peer }: PeerCheck): Promise<void> {
  const id = "mcp.manners.unknown-method";
  const answer = await peer.ask(NO_SUCH_METHOD, {});
  if (answer.kind === "error" && answer.code === -32601) list.pass(id, "", "It is refused with -32601.");
  else if (answer.kind === "error") {
    list.warn(id, "", `It is refused with ${answer.code} instead of -32601.`, { evidence: answer.message });
  } else if (peer.isModern && answer.kind === "failure" && answer.status === 404) {
    // The 2026-07-28 revision wants that status with the error, and the error then stays with the transport.
    list.pass(id, "", "It is refused with the HTTP status 404.");
  } else list.fail(id, "", `A method that nobody knows is not refused. ${describeAnswer(answer)}`);
}

async function checkPing({ list, peer }: PeerCheck): Promise<void> {
  const id = "mcp.manners.ping";
  if (peer.isModern) {
    list.skip(id, "", "The 2026-07-28 revision has no ping.");
    return;
  }
  const answer = await peer.ask("ping", {});
  if (answer.kind === "result") list.pass(id, "", "ping is answered.");
  else list.fail(id, "", `ping is not answered. ${describeAnswer(answer)}`);
}

async function checkUnknownTool({ list, peer }: PeerCheck): Promise<void> {
  const id = "mcp.manners.unknown-tool";
  const answer = await peer.ask("tools/call", { name: NO_SUCH_TOOL, arguments: {} });
  if (isRefusal(answer)) list.pass(id, "", "It is refused.");
  else if (answer.kind === "error") {
    list.warn(id, "", `It is refused with ${answer.code} instead of -32602.`, { evidence: answer.message });
  } else list.fail(id, "", `A tool that nobody knows is not refused. ${describeAnswer(answer)}`);
}

/** How many of the listed resources and prompts are looked at. */
const MOST_READ = 10;

/** Checks that listed resources can be read, and listed prompts had. */
async function checkContent(check: PeerCheck): Promise<void> {
  const { capabilities } = check.peer.connection.server;
  if (capabilities["resources"] !== undefined) await checkResources(check);
  if (capabilities["prompts"] !== undefined) await checkPrompts(check);
}

async function checkResources(check: PeerCheck): Promise<void> {
  const { list, peer } = check;
  const plan = { method: "resources/list", field: "resources", id: "mcp.resource.list" } as const;
  const entries = (await checkList(check, plan)) ?? [];
  for (const entry of entries.slice(0, MOST_READ)) {
    const uri = isPlainObject(entry) ? entry["uri"] : undefined;
    if (typeof uri !== "string") {
      list.fail("mcp.resource.list", "", "A resource is listed without a uri.", { evidence: entry });
      continue;
    }
    const id = "mcp.resource.read";
    const answer = await peer.ask("resources/read", { uri });
    if (answer.kind !== "result") list.fail(id, uri, `It cannot be read. ${describeAnswer(answer)}`);
    else if (isContents(answer.result["contents"])) list.pass(id, uri, "It can be read.");
    else {
      const message = "The answer has no contents that each have a uri and a text or a blob.";
      list.fail(id, uri, message, { evidence: answer.result });
    }
  }
}

function isContents(contents: unknown): boolean {
  return (
    Array.isArray(contents) &&
    contents.every(
      (one: unknown) =>
        isPlainObject(one) &&
        typeof one["uri"] === "string" &&
        (typeof one["text"] === "string" || typeof one["blob"] === "string"),
    )
  );
}

async function checkPrompts(check: PeerCheck): Promise<void> {
  const plan = { method: "prompts/list", field: "prompts", id: "mcp.prompt.list" } as const;
  const entries = (await checkList(check, plan)) ?? [];
  for (const entry of entries.slice(0, MOST_READ)) {
    const name = isPlainObject(entry) ? entry["name"] : undefined;
    if (!isPlainObject(entry) || typeof name !== "string") {
      check.list.fail("mcp.prompt.list", "", "A prompt is listed without a name.", { evidence: entry });
      continue;
    }
    await checkPrompt(check, name, entry["arguments"]);
  }
}

async function checkPrompt({ list, peer }: PeerCheck, name: string, declared: unknown): Promise<void> {
  const id = "mcp.prompt.get";
  const required = (Array.isArray(declared) ? declared : [])
    .filter(isPlainObject)
    .filter((one) => one["required"] === true && typeof one["name"] === "string");
  const args = Object.fromEntries(required.map((one) => [String(one["name"]), "text"]));
  const answer = await peer.ask("prompts/get", { name, arguments: args });
  if (answer.kind === "error" && required.length > 0) {
    list.skip(id, name, `It takes other arguments than the sampled ones (${answer.code}).`);
  } else if (answer.kind !== "result") list.fail(id, name, `It cannot be had. ${describeAnswer(answer)}`);
  else if (isMessages(answer.result["messages"])) list.pass(id, name, "It can be had.");
  else {
    list.fail(id, name, "The answer has no messages that each have a role and content.", {
      evidence: answer.result,
    });
  }
}

function isMessages(messages: unknown): boolean {
  return (
    Array.isArray(messages) &&
    messages.every(
      (one: unknown) =>
        isPlainObject(one) &&
        (one["role"] === "user" || one["role"] === "assistant") &&
        isPlainObject(one["content"]),
    )
  );
}

/** Bounds of what is listed. */
const LIMITS = { tools: 10_000, pages: 1_000, definitionBytes: 1_048_576, listBytes: 67_108_864 } as const;

/** Tokens of all definitions together past which a model has little room left. */
const MOST_TOKENS = 10_000;

/** Which list is read. */
interface ListPlan {
  /** Such as "tools/list". */
  readonly method: string;
  readonly field: string;
  readonly id: CheckId;
}

/** What a list holds, and what went wrong while it was read. */
interface Listing {
  readonly entries: readonly unknown[] | undefined;
  readonly faults: readonly string[];
  readonly pages: number;
}

/** Reads all pages of a list, and says so; nothing where it cannot be read. */
async function checkList({ list, peer }: PeerCheck, plan: ListPlan): Promise<readonly unknown[] | undefined> {
  const { entries, faults, pages } = await readList(peer, plan);
  for (const fault of faults) list.fail(plan.id, "", fault);
  if (entries !== undefined && faults.length === 0) {
    const paged = pages > 1 ? ` on ${pages} pages` : "";
    list.pass(plan.id, "", `${plan.method} lists ${entries.length} ${plan.field}${paged}.`);
  }
  return entries;
}

/** Reads the same list once more and compares. */
async function checkStable(
  { list, peer }: PeerCheck,
  plan: ListPlan,
  first: readonly unknown[],
): Promise<void> {
  const id = "mcp.list.stable";
  const { entries } = await readList(peer, plan);
  if (entries === undefined) {
    list.fail(id, "", "The second listing failed, though the first did not.");
    return;
  }
  const before = byName(first);
  const after = byName(entries);
  const names = [...new Set([...before.keys(), ...after.keys()])];
  const different = names.filter((name) => before.get(name) !== after.get(name));
  const isReordered = different.length === 0 && JSON.stringify(first) !== JSON.stringify(entries);
  for (const name of different.slice(0, 20)) {
    const what = !after.has(name) ? "is gone" : !before.has(name) ? "is new" : "has another definition";
    list.fail(id, name, `It ${what} in a second listing right after the first.`, {
      evidence: after.get(name),
    });
  }
  if (different.length > 20)
    list.fail(
      id,
      "",
      `${counted(different.length - 20, "further tool differs", "further tools differ")} as well.`,
    );
  if (isReordered) list.warn(id, "", "A second listing has the same tools in another order.");
  else if (different.length === 0) list.pass(id, "", "A second listing is the same.");
}

/** Estimates what the definitions cost a model. */
function checkSize(list: CheckList, entries: readonly unknown[]): void {
  if (entries.length === 0) return;
  const tokens = estimateTokens(JSON.stringify(entries));
  const message = `The definitions of ${counted(entries.length, "tool")} take about ${tokens} tokens`;
  if (tokens > MOST_TOKENS) list.warn("mcp.list.size", "", `${message}, more than ${MOST_TOKENS}.`);
  else list.pass("mcp.list.size", "", `${message}.`);
}

async function readList(peer: McpPeer, { method, field }: ListPlan): Promise<Listing> {
  const faults: string[] = [];
  let pages = 0;
  const asking = {
    request: async (wanted: string, params: Readonly<Record<string, unknown>> | undefined) => {
      pages += 1;
      const answer = await peer.ask(wanted, params);
      if (answer.kind === "result") return answer.result;
      throw new ListFailed(describeAnswer(answer));
    },
  };
  try {
    const warn = (fault: string) => void faults.push(fault);
    const onOversized = ({ name, reason }: { name: string; reason: string }) =>
      warn(`A definition is left out${name === "" ? "" : `, "${name}"`}. ${reason}`);
    const request = { timeoutMs: peer.timeoutMs };
    const entries = await listPages(asking, { method, field, limits: LIMITS, request, warn, onOversized });
    return { entries, faults, pages };
  } catch (thrown) {
    if (!(thrown instanceof ListFailed)) throw thrown;
    return { entries: undefined, faults: [...faults, `${method} failed. ${thrown.message}`], pages };
  }
}

class ListFailed extends Error {}

function byName(entries: readonly unknown[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const entry of entries) {
    const name = isPlainObject(entry) && typeof entry["name"] === "string" ? entry["name"] : "";
    found.set(name, `${found.get(name) ?? ""}${JSON.stringify(entry)}`);
  }
  return found;
}
