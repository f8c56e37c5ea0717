import type { Client } from "@modelcontextprotocol/client";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Identity } from "../src/index.ts";
import { toMcpServer } from "../src/mcp/index.ts";
import { closeImported, imported, OBJECT, text } from "./import-raw-server.ts";
import { legacyClient, modernClient } from "./mcp-server-peers.ts";
import { createRawMcpServer } from "./raw-mcp-server.ts";

afterEach(closeImported);

/** A server whose tool, prompt and resource log what they are asked, and answer when a test says so. */
async function logging() {
  const waiting = new Map<string, () => void>();
  const answer = (what: string) => new Promise<void>((resolve) => waiting.set(what, resolve));
  const upstream = createRawMcpServer({
    "tools/list": () => ({ tools: [{ name: "pay", inputSchema: OBJECT }] }),
    "tools/call": async ({ arguments: args }) => {
      const { card } = args as { card: string };
      say(`charging ${card}`);
      await answer(card);
      return { content: [text("paid")] };
    },
    "prompts/list": () => ({ prompts: [{ name: "ask" }] }),
    "prompts/get": async () => {
      say("filling in");
      await answer("ask");
      return { messages: [] };
    },
    "resources/list": () => ({ resources: [{ uri: "x://one", name: "one" }] }),
    "resources/templates/list": () => ({ resourceTemplates: [] }),
    "resources/read": async () => {
      say("reading");
      await answer("read");
      return { contents: [] };
    },
    "logging/setLevel": () => ({}),
  });
  const say = (data: unknown, level = "info") =>
    upstream.notify("notifications/message", { level, logger: "till", data });
  const operators: unknown[] = [];
  const { source, registry } = await imported(upstream, { onLog: ({ data }) => void operators.push(data) });
  const server = toMcpServer(registry, { providers: [source] });
  const connect = async (subject?: string, open = legacyClient) => {
    const heard: unknown[] = [];
    const identity: Identity | undefined = subject === undefined ? undefined : { subject };
    const client = await open(server, { ...(identity && { identity }) });
    client.setNotificationHandler("notifications/message", ({ params }) => void heard.push(params.data));
    return { client, heard };
  };
  const isWaiting = (what: string) => vi.waitFor(() => expect(waiting.has(what)).toBe(true), 20_000);
  const release = (what: string) => waiting.get(what)?.();
  const close = () => server.close();
  return { connect, isWaiting, release, say, operators, registry, close };
}

const META = { "io.modelcontextprotocol/logLevel": "debug" };
const pay = (client: Client, card: string) =>
  client.callTool({ name: "raw_pay", arguments: { card }, _meta: META });

describe("what an imported server logs", () => {
  it.each([
    ["2025", legacyClient],
    ["2026-07-28", modernClient],
  ])("X-4 during the only call there is reaches its caller and nobody else (%s)", async (_, open) => {
    const { connect, isWaiting, release, operators, close } = await logging();
    const bob = await connect("bob");
    const ann = await connect("ann", open);
    const paid = pay(ann.client, "4111");
    await isWaiting("4111");
    release("4111");
    await paid;
    await bob.client.ping();
    expect([ann.heard, bob.heard, operators]).toEqual([["charging 4111"], [], ["charging 4111"]]);
    await close();
  });

  it.each([
    ["callers who said who they are", ["ann", "bob"]],
    ["anonymous sessions", [undefined, undefined]],
    ["sessions of one caller", ["ann", "ann"]],
  ])("X-4 while calls of %s run is for operators alone", async (_, [first, second]) => {
    const { connect, isWaiting, release, operators, close } = await logging();
    const [ann, bob] = [await connect(first), await connect(second)];
    const one = pay(ann.client, "4111");
    await isWaiting("4111");
    const other = pay(bob.client, "5500");
    await isWaiting("5500");
    release("4111");
    release("5500");
    await Promise.all([one, other]);
    expect([ann.heard, bob.heard]).toEqual([["charging 4111"], []]);
    expect(operators).toEqual(["charging 4111", "charging 5500"]);
    await close();
  });

  it("X-4 after a call, or after it was given up, is not taken to be about the next one", async () => {
    const { connect, isWaiting, release, say, operators, close } = await logging();
    const [ann, bob] = [await connect("ann"), await connect("bob")];
    const leaving = new AbortController();
    const left = ann.client.callTool(
      { name: "raw_pay", arguments: { card: "1" } },
      { signal: leaving.signal },
    );
    await isWaiting("1");
    leaving.abort();
    await expect(left).rejects.toThrow();
    const next = pay(bob.client, "2");
    await isWaiting("2");
    say("card 1 was given up");
    release("1");
    say("card 1 was charged all the same");
    release("2");
    await next;
    const last = pay(ann.client, "3");
    await isWaiting("3");
    say("card 2 was charged");
    release("3");
    await last;
    expect(bob.heard).toEqual([]);
    expect(ann.heard).toEqual(["charging 1"]);
    expect(operators).toHaveLength(6);
    await close();
  });

  it("X-4 while nobody asks anything is for operators alone", async () => {
    const { connect, say, operators, close } = await logging();
    const ann = await connect("ann");
    say("all is well");
    await ann.client.ping();
    expect([ann.heard, operators]).toEqual([[], ["all is well"]]);
    await close();
  });

  it("X-4 during several calls of one session reaches it, and prompts and resources are no different", async () => {
    const { connect, isWaiting, release, close } = await logging();
    const ann = await connect();
    const all = [pay(ann.client, "1")];
    await isWaiting("1");
    all.push(ann.client.getPrompt({ name: "raw_ask" }) as never);
    await isWaiting("ask");
    all.push(ann.client.readResource({ uri: "x://one" }) as never);
    await isWaiting("read");
    for (const what of ["1", "ask", "read"]) release(what);
    await Promise.all(all);
    expect(ann.heard).toEqual(["charging 1", "filling in", "reading"]);
    await close();
  });

  it("X-4 during a call from here that is not over MCP is nobody's who listens", async () => {
    const { connect, isWaiting, release, registry, close } = await logging();
    const ann = await connect("ann");
    const lines: unknown[] = [];
    const here = registry.execute("raw.pay", { card: "9" }, { onLog: ({ message }) => lines.push(message) });
    await isWaiting("9");
    release("9");
    await here;
    await ann.client.ping();
    expect([ann.heard, lines]).toEqual([[], ["charging 9"]]);
    await close();
  });
});
