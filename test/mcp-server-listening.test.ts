import { PassThrough } from "node:stream";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { afterEach, describe, expect, it } from "vitest";
import { OperationRegistry } from "../src/index.ts";
import { createMcpHandler, type McpServer, serveMcpHttp, serveStdio, toMcpServer } from "../src/mcp/index.ts";
import { query, rejection, until } from "./make-operation.ts";
import { modern } from "./mcp-requests.ts";
import { other } from "./mcp-server-other.ts";
import { legacyClient } from "./mcp-server-peers.ts";

/** How many resources one stream may listen to, as docs/security.md says. */
const MAX_SUBSCRIPTIONS = 1_000;

const NOTHING = new OperationRegistry([]);
const open: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

/** Someone who hears of changes, in the way of their revision and transport. */
interface Listener {
  readonly heard: string[];
  listen(uris: string[]): Promise<{ close(): Promise<void> }>;
}

function createClient(): { client: Client; heard: string[] } {
  const client = new Client(
    { name: "listener", version: "1" },
    {
      jsonSchemaValidator: new CfWorkerJsonSchemaValidator(),
      versionNegotiation: { mode: { pin: "2026-07-28" } },
    },
  );
  const heard: string[] = [];
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => {
    heard.push(params.uri);
  });
  open.push(client);
  return { client, heard };
}

async function listenOverHttp(server: McpServer): Promise<Listener> {
  const http = await serveMcpHttp(server);
  open.push({ close: () => http.close({ timeoutMs: 0 }) });
  const { client, heard } = createClient();
  await client.connect(new StreamableHTTPClientTransport(new URL(http.url)));
  return { heard, listen: (resourceSubscriptions) => client.listen({ resourceSubscriptions }) };
}

async function listenOverStdio(server: McpServer): Promise<Listener> {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  open.push(serveStdio(server, { stdin, stdout }));
  const { client, heard } = createClient();
  await client.connect(new StdioServerTransport(stdout, stdin));
  return { heard, listen: (resourceSubscriptions) => client.listen({ resourceSubscriptions }) };
}

async function subscribe2025(server: McpServer): Promise<Listener> {
  const client = await legacyClient(server);
  const heard: string[] = [];
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => {
    heard.push(params.uri);
  });
  const listen: Listener["listen"] = async (uris) => {
    for (const uri of uris) await client.subscribeResource({ uri });
    return {
      close: async () => {
        for (const uri of uris) await client.unsubscribeResource({ uri });
      },
    };
  };
  return { heard, listen };
}

const LISTENERS = {
  "2026-07-28 over HTTP": listenOverHttp,
  "2026-07-28 over stdio": listenOverStdio,
  "2025": subscribe2025,
};

describe.each(Object.entries(LISTENERS))("a listener of %s", (_, connect) => {
  it("Mcp: has whoever owns a resource asked while it listens, and no longer", async () => {
    const [one, two] = [other("one"), other("two")];
    const { heard, listen } = await connect(toMcpServer(NOTHING, { providers: [one, two] }));
    const listening = await listen(["x://one", "waybill+two:x://shared"]);
    expect([one.asked, two.asked]).toEqual([["+x://one"], ["+x://shared"]]);
    one.say({ type: "resource-updated", uri: "x://one" });
    two.say({ type: "resource-updated", uri: "x://shared" });
    two.say({ type: "resource-updated", uri: "x://two" });
    await expect
      .poll(() => heard.toSorted(), { timeout: 20_000 })
      .toEqual(["waybill+two:x://shared", "x://one"]);
    await listening.close();
    await expect
      .poll(() => [one.asked, two.asked], { timeout: 20_000 })
      .toEqual([
        ["+x://one", "-x://one"],
        ["+x://shared", "-x://shared"],
      ]);
  });

  it("Mcp: hears of a resource of this process that says when it changes", async () => {
    const tells = new Set<() => void>();
    const clock = {
      uri: "x://clock",
      name: "clock",
      read: () => "now",
      onUpdate: (listener: () => void) => {
        tells.add(listener);
        return () => void tells.delete(listener);
      },
    };
    const { heard, listen } = await connect(toMcpServer(NOTHING, { resources: [clock] }));
    expect(tells.size).toBe(0);
    const listening = await listen(["x://clock"]);
    expect(tells.size).toBe(1);
    for (const tell of tells) tell();
    await expect.poll(() => heard, { timeout: 20_000 }).toEqual(["x://clock"]);
    await listening.close();
    await expect.poll(() => tells.size, { timeout: 20_000 }).toBe(0);
  });
});

describe.each(["2026-07-28 over HTTP", "2026-07-28 over stdio"] as const)("listeners of %s", (kind) => {
  it("Mcp: share what is asked upstream, and the last one ends it", async () => {
    const one = other("one");
    const { heard, listen } = await LISTENERS[kind](toMcpServer(NOTHING, { providers: [one] }));
    const [first, second] = [await listen(["x://one"]), await listen(["x://one", "x://shared"])];
    expect(one.asked).toEqual(["+x://one", "+x://shared"]);
    one.say({ type: "resource-updated", uri: "x://one" });
    await expect.poll(() => heard, { timeout: 20_000 }).toEqual(["x://one", "x://one"]);
    await first.close();
    one.say({ type: "resource-updated", uri: "x://one" });
    await expect.poll(() => heard, { timeout: 20_000 }).toHaveLength(3);
    expect(one.asked).toHaveLength(2);
    await second.close();
    await expect
      .poll(() => one.asked.slice(2).toSorted(), { timeout: 20_000 })
      .toEqual(["-x://one", "-x://shared"]);
  });

  it("Mcp: listen to what can be subscribed to, though some cannot", async () => {
    const one = other("one");
    one.subscribeResource = async (uri) => {
      if (uri === "x://bad") throw new Error("secret");
      one.asked.push(`+${uri}`);
    };
    const { heard, listen } = await LISTENERS[kind](
      toMcpServer(NOTHING, { providers: [one], onWarning: () => {} }),
    );
    await listen(["x://bad", "x://one"]);
    one.say({ type: "resource-updated", uri: "x://one" });
    await expect.poll(() => heard, { timeout: 20_000 }).toEqual(["x://one"]);
  });

  it("Mcp: let go upstream when the connection ends", async () => {
    const one = other("one");
    const { listen } = await LISTENERS[kind](toMcpServer(NOTHING, { providers: [one] }));
    await listen(["x://one"]);
    for (const each of open.splice(0).reverse()) await each.close();
    await expect.poll(() => one.asked, { timeout: 20_000 }).toEqual(["+x://one", "-x://one"]);
  });

  it("Mcp: listen to as many resources as allowed in one stream, and to none with one more", async () => {
    const one = other("one");
    const { listen } = await LISTENERS[kind](toMcpServer(NOTHING, { providers: [one] }));
    const uris = Array.from({ length: MAX_SUBSCRIPTIONS + 1 }, (_, i) => `x://${i}`);
    await rejection(listen(uris));
    expect(one.asked).toEqual([]);
    await listen(uris.slice(1));
    expect(one.asked).toHaveLength(MAX_SUBSCRIPTIONS);
  });
});

describe("subscriptions of a 2025 peer", () => {
  it("Mcp: are as many as allowed, and one more is refused until another ends", async () => {
    const one = other("one");
    const client = await legacyClient(toMcpServer(NOTHING, { providers: [one] }));
    const uris = Array.from({ length: MAX_SUBSCRIPTIONS }, (_, i) => `x://${i}`);
    await Promise.all(uris.map((uri) => client.subscribeResource({ uri })));
    await rejection(client.subscribeResource({ uri: "x://more" }));
    await client.subscribeResource({ uri: "x://0" });
    expect(one.asked).toHaveLength(MAX_SUBSCRIPTIONS);
    await client.unsubscribeResource({ uri: "x://1" });
    await client.subscribeResource({ uri: "x://more" });
    expect(one.asked.slice(-2)).toEqual(["-x://1", "+x://more"]);
  });

  it("Mcp: last under one address of a resource when the other is given up", async () => {
    const one = other("one");
    const client = await legacyClient(toMcpServer(NOTHING, { providers: [one, other("two")] }));
    await client.subscribeResource({ uri: "x://one" });
    await client.subscribeResource({ uri: "waybill+one:x://one" });
    await client.unsubscribeResource({ uri: "x://one" });
    expect(one.asked).toEqual(["+x://one"]);
    await client.unsubscribeResource({ uri: "waybill+one:x://one" });
    expect(one.asked).toEqual(["+x://one", "-x://one"]);
  });

  it("Mcp: end upstream though the peer left while they were made", async () => {
    const one = other("one");
    let go = (): void => {};
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    let isAsked = false;
    one.subscribeResource = async (uri) => {
      isAsked = true;
      await gate;
      one.asked.push(`+${uri}`);
    };
    const client = await legacyClient(toMcpServer(NOTHING, { providers: [one] }));
    const subscribing = rejection(client.subscribeResource({ uri: "x://one" }));
    await until(() => isAsked);
    await client.close();
    await subscribing;
    go();
    await expect.poll(() => one.asked, { timeout: 20_000 }).toEqual(["+x://one", "-x://one"]);
  });
});

describe("a gateway's tools", () => {
  it("Mcp: keep the title among an imported tool's annotations, cleaned, and leave its execution out", async () => {
    const tool = {
      name: "t",
      annotations: { title: "Other\u200b title", readOnlyHint: true },
      execution: { taskSupport: "required" },
    };
    const imported = query("up.t", () => 1, { title: "Title", _meta: { "dev.waybill/tool": tool } });
    const server = toMcpServer(new OperationRegistry([imported]));
    const handler = createMcpHandler(server);
    open.push(handler);
    const answer = await (await handler.fetch(modern("tools/list"))).json();
    const [listed] = (answer as { result: { tools: Record<string, unknown>[] } }).result.tools;
    expect(listed).toMatchObject({
      title: "Title",
      annotations: { title: "Other title", readOnlyHint: true },
    });
    expect(listed).not.toHaveProperty("execution");
  });
});
