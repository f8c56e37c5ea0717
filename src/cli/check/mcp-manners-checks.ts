import type { CheckList } from "./check-report.ts";
import { describeAnswer, type McpPeer, type PeerAnswer } from "./mcp-peer.ts";

const NO_SUCH_TOOL = "waybill-check-no-such-tool";
const NO_SUCH_METHOD = "waybill/check-no-such-method";

/** Checks how a server takes what it does not know. */
export async function checkManners(list: CheckList, peer: McpPeer, hasTools: boolean): Promise<void> {
  await checkUnknownMethod(list, peer);
  await checkPing(list, peer);
  if (hasTools) await checkUnknownTool(list, peer);
}

async function checkUnknownMethod(list: CheckList, peer: McpPeer): Promise<void> {
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

async function checkPing(list: CheckList, peer: McpPeer): Promise<void> {
  const id = "mcp.manners.ping";
  if (peer.isModern) {
    list.skip(id, "", "The 2026-07-28 revision has no ping.");
    return;
  }
  const answer = await peer.ask("ping", {});
  if (answer.kind === "result") list.pass(id, "", "ping is answered.");
  else list.fail(id, "", `ping is not answered. ${describeAnswer(answer)}`);
}

async function checkUnknownTool(list: CheckList, peer: McpPeer): Promise<void> {
  const id = "mcp.manners.unknown-tool";
  const answer = await peer.ask("tools/call", { name: NO_SUCH_TOOL, arguments: {} });
  if (isRefusal(answer)) list.pass(id, "", "It is refused.");
  else if (answer.kind === "error") {
    list.warn(id, "", `It is refused with ${answer.code} instead of -32602.`, { evidence: answer.message });
  } else list.fail(id, "", `A tool that nobody knows is not refused. ${describeAnswer(answer)}`);
}

/** Tells whether a call was refused as the protocol has it: by -32602, or a result that says no. */
export function isRefusal(answer: PeerAnswer): boolean {
  return (
    (answer.kind === "error" && answer.code === -32602) ||
    (answer.kind === "result" && answer.result["isError"] === true)
  );
}
