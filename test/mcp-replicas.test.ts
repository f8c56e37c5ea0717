import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as FirstTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, it } from "vitest";
import { serveGateway } from "../src/gateway/index.ts";
import { fromMcp } from "../src/mcp/index.ts";
import { type Balancer, startBalancer } from "./balancer.ts";
import { atEnd } from "./gateway-sources.ts";
import { query } from "./make-operation.ts";
import { call, INITIALIZE, post } from "./mcp-requests.ts";
import { handGateway, loadedConfig } from "./served-gateway.ts";

const KEY = "the-key-of-all-replicas-00000000";
const ANN = "the-token-of-ann-1";
const BEN = "the-token-of-ben-1";
const FORM = {
  message: "Which colour?",
  requestedSchema: { type: "object", properties: { colour: { type: "string" } }, required: ["colour"] },
} as const;

interface Replica {
  readonly url: string;
  /** How many questions were answered to handlers of this replica. */
  readonly asked: number;
}

/** Starts gateways that share nothing but a key. */
async function startReplicas(count: number, key: string | null = KEY): Promise<readonly Replica[]> {
  const starting = Array.from({ length: count }, async (): Promise<Replica> => {
    const counts = { asked: 0 };
    const gateway = handGateway([
      query("desk.who", (_, { identity }) => ({ who: identity?.subject })),
      query("desk.ask", async (_, { elicit }) => {
        const { content } = await elicit(FORM, { key: "colour" });
        counts.asked += 1;
        return { colour: content?.["colour"] };
      }),
    ]);
    const tokens = { ann: { token: ANN }, ben: { token: BEN } };
    const sessions = key === null ? undefined : { key };
    const server = await serveGateway(gateway, loadedConfig({ serve: { auth: { tokens }, sessions } }));
    atEnd(() => server.close({ timeoutMs: 0 }));
    return {
      url: server.url,
      get asked() {
        return counts.asked;
      },
    };
  });
  return await Promise.all(starting);
}

interface Caller {
  /** The id of the session; nothing for a 2026-07-28 client. */
  readonly session: string | undefined;
  call(name: string): Promise<unknown>;
}

const ANSWER = { action: "accept" as const, content: { colour: "green" } };
const asAnn = { requestInit: { headers: { authorization: `Bearer ${ANN}` } } };
const jsonSchemaValidator = new CfWorkerJsonSchemaValidator();

async function connectSecond(url: string, mode: "legacy" | "auto"): Promise<Caller> {
  const capabilities = { elicitation: { form: {} } };
  const client = new Client(
    { name: "second", version: "1" },
    { capabilities, jsonSchemaValidator, versionNegotiation: { mode } },
  );
  client.setRequestHandler("elicitation/create", () => ANSWER);
  const transport = new StreamableHTTPClientTransport(new URL(url), asAnn);
  await client.connect(transport);
  atEnd(() => client.close());
  return {
    session: transport.sessionId,
    call: async (name) => (await client.callTool({ name, arguments: {} })).structuredContent,
  };
}

async function connectFirst(url: string): Promise<Caller> {
  const client = new FirstClient({ name: "first", version: "1" }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, () => ANSWER);
  const transport = new FirstTransport(new URL(url), asAnn);
  await client.connect(transport as never);
  atEnd(() => client.close());
  return {
    session: transport.sessionId,
    call: async (name) => (await client.callTool({ name, arguments: {} })).structuredContent,
  };
}

const FIRST_OR_SECOND = {
  "SDK 1.32": connectFirst,
  "SDK 2.4, 2025": (url: string) => connectSecond(url, "legacy"),
} satisfies Record<string, (url: string) => Promise<Caller>>;
const ALL = { ...FIRST_OR_SECOND, "SDK 2.4, 2026-07-28": (url: string) => connectSecond(url, "auto") };

/** Every replica had something to do. */
function expectSpread({ answered }: Balancer): void {
  for (const count of answered) expect(count).toBeGreaterThan(0);
}

describe.each(Object.entries(ALL))("%s before gateways that share a key", (_, connect) => {
  it("Mcp: begins at one of them and calls at all", async () => {
    const balancer = await startBalancer(await startReplicas(3), { retries: false });
    const client = await connect(balancer.url);
    for (let i = 0; i < 20; i++) expect(await client.call("desk_who")).toEqual({ who: "ann" });
    expectSpread(balancer);
  });

  it("Mcp: answers questions where they were asked, through a balancer that tries another replica after a 503", async () => {
    const replicas = await startReplicas(2);
    const balancer = await startBalancer(replicas, { retries: true });
    const client = await connect(balancer.url);
    for (let i = 0; i < 12; i++) expect(await client.call("desk_ask")).toEqual({ colour: "green" });
    expectSpread(balancer);
    expect(balancer.retried).toBeGreaterThan(0);
    const asked = replicas.map((replica) => replica.asked);
    expect([asked.reduce((sum, count) => sum + count, 0), Math.min(...asked) > 0]).toEqual([12, true]);
  });
});

describe.each(["2025", "2026"] as const)("fromMcp in %s before gateways that share a key", (protocol) => {
  it("Mcp: sends again what another replica has to take, and no handler runs twice", async () => {
    const replicas = await startReplicas(2);
    const balancer = await startBalancer(replicas, { retries: false });
    const settings = { namespace: "desk", protocol, auth: { bearer: ANN }, reconnect: false } as const;
    const source = await fromMcp(balancer.url, settings);
    atEnd(() => source.close());
    const caller = { elicit: async () => ANSWER };
    for (let i = 0; i < 2; i++) {
      const { data } = await source.call("desk_ask", {}, { caller });
      expect(data).toEqual({ colour: "green" });
    }
    const asked = replicas.map((replica) => replica.asked);
    expect(asked.reduce((sum, count) => sum + count, 0)).toBe(2);
    expectSpread(balancer);
  });
});

describe.each(Object.entries(FIRST_OR_SECOND))("a session of %s", (_, connect) => {
  it("X-4 is not there for another caller, at any replica", async () => {
    const replicas = await startReplicas(2);
    const { session = "" } = await connect(`${replicas[0]?.url}/mcp`);
    const status = async ({ url }: Replica, token: string): Promise<number> => {
      const { headers, body } = post(call(2, "desk_who"), {
        "mcp-session-id": session,
        authorization: `Bearer ${token}`,
      });
      const answer = await fetch(`${url}/mcp`, {
        method: "POST",
        headers,
        body,
        duplex: "half",
      } as RequestInit);
      await answer.text();
      return answer.status;
    };
    for (const replica of replicas) {
      expect([await status(replica, ANN), await status(replica, BEN)]).toEqual([200, 404]);
    }
  });

  it("Mcp: is known to one replica alone where they share no key", async () => {
    const balancer = await startBalancer(await startReplicas(2, null), { retries: false });
    const found = async (): Promise<unknown> => {
      const client = await connect(balancer.url);
      for (let i = 0; i < 10; i++) await client.call("desk_who");
      return "all calls were answered";
    };
    await expect(found()).rejects.toThrow(/session|404/i);
  });
});

describe("a gateway with a key that is read anew", () => {
  const JSON_HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };

  it("Mcp: goes on with its sessions, and with streams whose calls run", async () => {
    let release = (): void => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    atEnd(() => release());
    const gateway = handGateway([
      query("desk.wait", async (_, { progress }) => {
        progress({ progress: 1, total: 2 });
        await released;
        return { waited: true };
      }),
    ]);
    const config = (instructions: string) =>
      loadedConfig({ serve: { sessions: { key: KEY }, mcp: { instructions } } });
    const server = await serveGateway(gateway, config("before"));
    atEnd(() => server.close({ timeoutMs: 0 }));
    const send = (method: string, headers: Readonly<Record<string, string>>, body?: object) =>
      fetch(`${server.url}/mcp`, {
        method,
        headers: { ...JSON_HEADERS, ...headers },
        ...(body && { body: JSON.stringify(body) }),
      });
    const opened = await send("POST", {}, INITIALIZE);
    expect(await opened.text()).toContain("before");
    const session = {
      "mcp-session-id": opened.headers.get("mcp-session-id") ?? "",
      "mcp-protocol-version": "2025-11-25",
    };
    const wait = call(2, "desk_wait");
    const params = { ...wait.params, _meta: { progressToken: 2 } };
    const stream = await send("POST", session, { ...wait, params });
    const reader = (stream.body as ReadableStream<Uint8Array>).getReader();
    const first = /^id: (.*)$/m.exec(new TextDecoder().decode((await reader.read()).value))?.[1] ?? "";
    await reader.cancel();
    await server.reload(config("after"));
    const listed = await send("POST", session, { jsonrpc: "2.0", id: 3, method: "tools/list" });
    expect([listed.status, await listed.text()]).toEqual([200, expect.stringContaining("desk_wait")]);
    const resumed = await send("GET", { ...session, accept: "text/event-stream", "last-event-id": first });
    release();
    const text = await resumed.text();
    expect(text).toContain("notifications/progress");
    expect(text).toContain('"waited":true');
  });
});
