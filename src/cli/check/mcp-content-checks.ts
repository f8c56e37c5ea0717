import { isPlainObject } from "../../core/json/json-value.ts";
import type { CheckList } from "./check-report.ts";
import { checkList } from "./mcp-list-checks.ts";
import { describeAnswer, type McpPeer } from "./mcp-peer.ts";

/** How many of the listed resources and prompts are looked at. */
const MOST_READ = 10;

/** Checks that listed resources can be read, and listed prompts had. */
export async function checkContent(list: CheckList, peer: McpPeer): Promise<void> {
  const { capabilities } = peer.connection.server;
  if (capabilities["resources"] !== undefined) await checkResources(list, peer);
  if (capabilities["prompts"] !== undefined) await checkPrompts(list, peer);
}

async function checkResources(list: CheckList, peer: McpPeer): Promise<void> {
  const plan = { method: "resources/list", field: "resources", id: "mcp.resource.list" } as const;
  const entries = (await checkList(list, peer, plan)) ?? [];
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

async function checkPrompts(list: CheckList, peer: McpPeer): Promise<void> {
  const plan = { method: "prompts/list", field: "prompts", id: "mcp.prompt.list" } as const;
  const entries = (await checkList(list, peer, plan)) ?? [];
  for (const entry of entries.slice(0, MOST_READ)) {
    const name = isPlainObject(entry) ? entry["name"] : undefined;
    if (!isPlainObject(entry) || typeof name !== "string") {
      list.fail("mcp.prompt.list", "", "A prompt is listed without a name.", { evidence: entry });
      continue;
    }
    await checkPrompt(list, peer, name, entry["arguments"]);
  }
}

async function checkPrompt(list: CheckList, peer: McpPeer, name: string, declared: unknown): Promise<void> {
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
