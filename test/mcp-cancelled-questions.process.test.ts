import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { type CallerSide, OperationRegistry } from "../src/index.ts";
import { fromMcp, serveMcpHttp, toMcpServer } from "../src/mcp/index.ts";
import type { RunEvent } from "./inspected-gateway.ts";
import { as, type InspectedGateway, inspectGateway, TOKENS } from "./inspected-gateway.ts";
import { ROOT } from "./run-node.ts";

/** It goes on with what was cancelled, and never answers it. */
const EVERYTHING = {
  command: process.execPath,
  args: [join(ROOT, "node_modules/@modelcontextprotocol/server-everything/dist/index.js"), "stdio"],
};
const LONG = { duration: 30, steps: 300 };
const REFUSED = /given up unanswered.*whose question this is\. Wait \d+ s, or reconnect the source\./;

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

describe("server-everything behind a gateway, after a call of a page was cancelled", () => {
  const [PAGE, OTHER] = ["1234567890123456", "1234567890123457"];

  async function start(config = {}): Promise<InspectedGateway> {
    const open = await inspectGateway([], { mcpServers: { everything: EVERYTHING }, ...config });
    closers.push(() => open.close());
    return open;
  }

  /** Runs an operation, and tells each event as it comes; leaving cancels the call. */
  async function* run(open: InspectedGateway, ask: object, headers = {}): AsyncGenerator<RunEvent> {
    const leaving = new AbortController();
    const { body } = await open.ask("run", { body: ask, headers, signal: leaving.signal });
    let rest = "";
    try {
      for await (const chunk of body ?? []) {
        const lines = (rest + new TextDecoder().decode(chunk)).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) yield JSON.parse(line) as RunEvent;
      }
    } finally {
      leaving.abort();
    }
  }

  async function cancelLong(open: InspectedGateway, page: object, headers = {}): Promise<void> {
    const ask = { operation: "everything.trigger-long-running-operation", input: LONG, ...page };
    for await (const { type } of run(open, ask, headers)) if (type === "progress") break;
  }

  /** Whether somebody was asked, who then declines, and what the call came to. */
  async function askQuestion(open: InspectedGateway, page: object, headers = {}) {
    const seen = { asked: 0, result: "" };
    let requestId: string | undefined;
    const ask = { operation: "everything.trigger-elicitation-request", input: {}, ...page };
    for await (const event of run(open, ask, headers)) {
      if (event.type === "started") ({ requestId } = event);
      if (event.type === "ask") {
        seen.asked += 1;
        await open.ask("answer", { body: { requestId, key: event.key, action: "decline" }, headers });
      }
      if (event.type === "result" || event.type === "error") seen.result = JSON.stringify(event);
    }
    return seen;
  }

  it("RE-31 asks the same page, and tells another one to wait or to reconnect, which helps", async () => {
    const open = await start();
    await cancelLong(open, { page: PAGE });
    const same = await askQuestion(open, { page: PAGE });
    expect(same).toEqual({ asked: 1, result: expect.stringContaining("declined") });
    for (const page of [{ page: OTHER }, {}]) {
      const other = await askQuestion(open, page);
      expect(other).toEqual({ asked: 0, result: expect.stringMatching(REFUSED) });
    }
    const { status } = await open.ask("sources/retry", { body: { source: "everything" } });
    expect(status).toBe(200);
    expect(await askQuestion(open, { page: OTHER })).toMatchObject({ asked: 1 });
  });

  it("RE-31 asks nobody who says the page of another, or who does not say theirs", async () => {
    const open = await start({ serve: { auth: { tokens: TOKENS } } });
    await cancelLong(open, { page: PAGE }, as("ann"));
    const refused = { asked: 0, result: expect.stringMatching(REFUSED) };
    expect(await askQuestion(open, { page: PAGE }, as("bob"))).toEqual(refused);
    expect(await askQuestion(open, {}, as("ann"))).toEqual(refused);
    expect(await askQuestion(open, { page: PAGE }, as("ann"))).toMatchObject({ asked: 1 });
  });

  it("takes no page that could be guessed", async () => {
    const open = await inspectGateway([]);
    closers.push(() => open.close());
    const ask = (page: unknown) => open.ask("run", { body: { operation: "none.such", page } });
    for (const page of ["123456789012345", 1, null, "x".repeat(100_000)])
      expect((await ask(page)).status).toBe(400);
    expect((await ask(PAGE)).status).toBe(200);
  });
});

describe("server-everything behind an MCP server, after a call of a client was cancelled", () => {
  async function connect(protocol: "2025" | "2026") {
    const everything = await fromMcp(EVERYTHING, { namespace: "everything" });
    closers.push(() => everything.close());
    const registry = new OperationRegistry();
    registry.registerAll(everything);
    const server = toMcpServer(registry, { names: { prefix: false } });
    const http = await serveMcpHttp(server);
    closers.push(async () => {
      await http.close();
      await server.close();
    });
    return async () => {
      const source = await fromMcp(http.url, { namespace: "g", protocol });
      closers.push(() => source.close());
      const client = new OperationRegistry();
      client.registerAll(source);
      return client;
    };
  }

  async function cancelLong(client: OperationRegistry, caller: CallerSide): Promise<void> {
    const stop = new AbortController();
    const options = { caller, signal: stop.signal, onProgress: () => stop.abort() };
    const long = client.execute("g.trigger-long-running-operation", LONG, options);
    await expect(long).rejects.toMatchObject({ code: "ABORTED" });
  }

  async function askQuestion(client: OperationRegistry, caller: CallerSide): Promise<string> {
    return JSON.stringify(await client.execute("g.trigger-elicitation-request", {}, { caller }));
  }

  it("RE-31 asks the same session, and tells another one to wait", async () => {
    const open = await connect("2025");
    const [mine, theirs] = [await open(), await open()];
    const asked: string[] = [];
    const side = (who: string): CallerSide => ({
      party: who,
      elicit: async () => {
        asked.push(who);
        return { action: "decline" };
      },
    });
    const me = side("me");
    await cancelLong(mine, me);
    expect(await askQuestion(mine, { ...me })).toContain("declined");
    expect(await askQuestion(theirs, side("they"))).toMatch(REFUSED);
    // The client itself has callers that it tells apart.
    expect(await askQuestion(mine, side("another"))).toContain("could not answer");
    expect(asked).toEqual(["me"]);
  });

  it("RE-31 asks no other caller of a client to which each question belongs to a call", async () => {
    const client = await (await connect("2026"))();
    const asked: unknown[] = [];
    const side = (): CallerSide => ({
      elicit: async (request) => {
        asked.push(request);
        return { action: "decline" };
      },
    });
    await cancelLong(client, side());
    expect(await askQuestion(client, side())).toMatch(REFUSED);
    expect(asked).toEqual([]);
  });
});
