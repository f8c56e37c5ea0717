import { describe, expect, it } from "vitest";
import { createMemoryStore } from "../src/formats/index.ts";
import {
  createGateway,
  type GatewayConfig,
  type ServeGatewayOptions,
  serveGateway,
} from "../src/gateway/index.ts";
import { defineOperation } from "../src/index.ts";
import { atEnd } from "./gateway-sources.ts";
import { query, stream } from "./make-operation.ts";
import { loadedConfig } from "./served-gateway.ts";

const LONG = "x".repeat(300_000);
const read = { scopes: { allOf: ["read"] } };
const TOKENS = {
  ann: { token: "the-token-of-ann-1", scopes: ["read"] },
  bob: { token: "the-token-of-bob-1", scopes: ["read"] },
};
const POLICIES = { "office.whoami": { cacheMs: 60_000, singleFlight: true } } as const;
const EMPTY = { type: "object", properties: {}, additionalProperties: false } as const;

type Tokens = NonNullable<NonNullable<NonNullable<GatewayConfig["serve"]>["auth"]>["tokens"]>;

/** A gateway with two callers, all of it over the wire. */
async function served(config: GatewayConfig = {}) {
  const went: string[] = [];
  const operations = [
    query("office.big", (_, { identity }) => ({ of: identity?.subject ?? "nobody", text: LONG }), {
      access: read,
      inputSchema: EMPTY,
    }),
    defineOperation({
      ...{ namespace: "office", name: "ask", version: "1.0.0", type: "mutation", description: "" },
      access: read,
      inputSchema: EMPTY,
      handler: async (_, { elicit, identity }) => {
        const { action } = await elicit({
          message: "Sure?",
          requestedSchema: { type: "object", properties: {} },
        });
        went.push(identity?.subject ?? "nobody");
        return { action };
      },
    }),
    query("office.open", () => ({ text: LONG }), { inputSchema: EMPTY }),
    query("office.whoami", (_, { identity }) => ({ subject: identity?.subject ?? "nobody" }), {
      inputSchema: EMPTY,
    }),
    stream(
      "office.watch",
      async function* (_, { signal, identity }) {
        yield { of: identity?.subject };
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
      },
      { inputSchema: EMPTY },
    ),
  ];
  const make = (tokens?: Tokens, policies: GatewayConfig["policies"] = POLICIES) => ({
    ...loadedConfig({ policies, ...config, serve: { auth: { tokens: tokens ?? TOKENS }, ...config.serve } }),
    localOperations: operations,
  });
  const loaded = make();
  const gateway = await createGateway(loaded);
  atEnd(() => gateway.close());
  await gateway.ready;
  const records: Parameters<NonNullable<ServeGatewayOptions["onRead"]>>[0][] = [];
  const server = await serveGateway(gateway, loaded, { onRead: (record) => records.push(record) });
  atEnd(() => server.close({ timeoutMs: 0 }));
  const send = async (who: string, path: string, init: RequestInit = {}) =>
    await fetch(server.url + path, {
      ...init,
      headers: {
        ...(who !== "" && { authorization: `Bearer the-token-of-${who}-1` }),
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...init.headers,
      },
    });
  const rpc = async (
    who: string,
    method: string,
    params: Record<string, unknown> = {},
    can: object = {},
    more: object | "" = {},
  ) => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": can,
      ...(more || {}),
    };
    const name = String(params["name"] ?? params["uri"] ?? "");
    const response = await send(who, "/mcp", {
      method: "POST",
      headers: { "mcp-protocol-version": "2026-07-28", "mcp-method": method, "mcp-name": name },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } }),
    });
    const text = await response.text();
    return JSON.parse(text.startsWith("{") ? text : (/^data: (.*)$/m.exec(text)?.[1] ?? "{}"));
  };
  const big = async (who: string, format?: string): Promise<string> => {
    const asked = { name: "office_big", arguments: {} };
    const { result } = await rpc(who, "tools/call", asked, {}, format && { "dev.waybill/format": format });
    return result.content.find(({ type }: { type: string }) => type === "resource_link").uri;
  };
  const reload = async (tokens?: Tokens, policies?: GatewayConfig["policies"]) => {
    const next = make(tokens, policies);
    await gateway.reload(next);
    await server.reload(next);
  };
  return { server, send, rpc, big, reload, records, went };
}

describe("a result that is kept", () => {
  it("X-4 is read by its caller alone, and every attempt leaves a record", async () => {
    const { rpc, big, records } = await served();
    const uri = await big("ann");
    for (const address of [uri, `${uri}?offset=0&length=10`]) {
      expect((await rpc("ann", "resources/read", { uri: address })).result.contents).toHaveLength(1);
      const refused = await rpc("bob", "resources/read", { uri: address });
      const unknown = uri.replace(/[0-9a-f]{32}/, "0".repeat(32));
      const missing = await rpc("bob", "resources/read", { uri: address.replace(uri, unknown) });
      expect(refused.error.code).toBe(missing.error.code);
      expect(refused.error.message).toBe(missing.error.message.replace(unknown, uri));
    }
    expect(records.map(({ event, subject, outcome }) => `${event} ${subject} ${outcome}`)).toEqual([
      "result ann ok",
      "result bob call_error",
      "result bob call_error",
      "result ann ok",
      "result bob call_error",
      "result bob call_error",
    ]);
    expect(records[0]).toMatchObject({ source: "local", name: uri });
  });

  it.each(["mcp", "status-envelope", "tiered-envelope", "tool-envelope"])(
    "X-4 is its caller's in every format: %s",
    async (format) => {
      const { rpc, big } = await served({ serve: { formats: [format as "mcp"] } });
      const uri = await big("ann", format);
      expect((await rpc("ann", "resources/read", { uri })).result.contents).toHaveLength(1);
      expect((await rpc("bob", "resources/read", { uri })).error).toBeDefined();
    },
  );

  it.each<[string, Tokens | undefined, GatewayConfig["policies"], boolean]>([
    ["lost the scope", { ...TOKENS, ann: { ...TOKENS.ann, scopes: [] } }, undefined, false],
    ["has other rights", { ...TOKENS, ann: { ...TOKENS.ann, tier: "pro" } }, undefined, false],
    ["would need another scope now", undefined, { "office.big": { scopes: ["more"] } }, false],
    ["could not call it any more", undefined, { "office.big": { enabled: false } }, false],
    ["may do the same", { ...TOKENS, cid: { token: "the-token-of-cid-1" } }, undefined, true],
  ])("X-4 is read, or not, by a caller who %s", async (_, tokens, policies, isRead) => {
    const { rpc, big, reload } = await served();
    const uri = await big("ann");
    await reload(tokens, policies);
    expect((await rpc("ann", "resources/read", { uri })).error === undefined).toBe(isRead);
  });

  it("X-4 stays when somebody else fills the store, to the last place", () => {
    const store = createMemoryStore({ maxEntries: 4 });
    const put = (owner: string, text = "x") => store.put({ text, mimeType: "text/plain", owner }).uri;
    const isKept = (uri: string) => store.read(uri) !== undefined;
    const anns = [put("ann"), put("ann")];
    const bobs = Array.from({ length: 10 }, () => put("bob"));
    expect([...anns, ...bobs].map(isKept)).toEqual([
      ...[true, true],
      ...Array.from({ length: 8 }, () => false),
      ...[true, true],
    ]);
    const third = put("ann");
    expect([...anns, third].map(isKept)).toEqual([false, true, true]);
    const cid = put("cid");
    expect([cid, ...anns, third, ...bobs].filter(isKept)).toHaveLength(4);
    expect([isKept(cid), bobs.some(isKept)]).toEqual([true, true]);
  });

  it("X-4 is counted by its length as well, at the limit and one over", () => {
    const store = createMemoryStore({ maxCharacters: 100 });
    const put = (owner: string, length: number) =>
      store.put({ text: "x".repeat(length), mimeType: "text/plain", owner }).uri;
    const isKept = (uri: string) => store.read(uri) !== undefined;
    const [ann, bob] = [put("ann", 40), put("bob", 60)];
    expect([ann, bob].map(isKept)).toEqual([true, true]);
    const one = put("cid", 1);
    expect([ann, bob, one].map(isKept)).toEqual([true, false, true]);
    const whole = put("dan", 100);
    expect([ann, one, whole].map(isKept)).toEqual([false, false, true]);
  });

  it("X-4 is read by the session that caused it where nobody says who they are", async () => {
    const { send } = await served({ serve: { auth: {} } });
    const open = async () => {
      const params = {
        protocolVersion: "2025-11-25",
        capabilities: {},
        clientInfo: { name: "t", version: "1" },
      };
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
      const response = await send("", "/mcp", { method: "POST", body });
      await response.text();
      const session = { "mcp-session-id": response.headers.get("mcp-session-id") ?? "" };
      return async (method: string, asked: object) => {
        const init = { method: "POST", headers: session };
        const said = JSON.stringify({ jsonrpc: "2.0", id: 2, method, params: asked });
        return await (await send("", "/mcp", { ...init, body: said })).text();
      };
    };
    const [one, other] = [await open(), await open()];
    const called = await one("tools/call", { name: "office_open", arguments: {} });
    const uri = /waybill:\/\/results\/[0-9a-f]{32}/.exec(called)?.[0] ?? "";
    expect(await one("resources/read", { uri })).toContain("xxxx");
    expect(await other("resources/read", { uri })).toContain('"error"');
  });

  it("X-4 of an imported gateway is read through this one by the caller who was given it alone", async () => {
    const first = await served();
    const second = await served({
      mcpServers: {
        first: { url: `${first.server.url}/mcp`, bearer: TOKENS.ann.token, policy: { scopes: ["read"] } },
      },
    });
    const { result } = await second.rpc("ann", "tools/call", { name: "first_office_big", arguments: {} });
    const uris: string[] = result.content.flatMap(({ uri }: { uri?: string }) => uri ?? []);
    expect(uris.length).toBeGreaterThan(0);
    const kept = await first.big("ann");
    for (const uri of [...uris, kept, `waybill+first:${kept}`]) {
      expect((await second.rpc("bob", "resources/read", { uri })).error).toBeDefined();
    }
    const found = await Promise.all(uris.map((uri) => second.rpc("ann", "resources/read", { uri })));
    expect(found.map(({ error }) => error)).toEqual(uris.map(() => undefined));
  });
});

describe("a call that waits for its caller", () => {
  const FORMS = { elicitation: { form: {} } };
  const answers = (state: unknown, keys: object) => ({
    requestState: state,
    inputResponses: Object.fromEntries(
      Object.keys(keys).map((key) => [key, { action: "accept", content: {} }]),
    ),
  });
  const begin = async (rpc: Awaited<ReturnType<typeof served>>["rpc"]) => {
    const ask = { name: "office_ask", arguments: {} };
    const { result } = await rpc("ann", "tools/call", ask, FORMS);
    return { ...ask, ...answers(result.requestState, result.inputRequests) };
  };

  it("X-4 is taken up by nobody else, and goes on for its caller", async () => {
    const { rpc, went } = await served();
    const again = await begin(rpc);
    expect((await rpc("bob", "tools/call", again, FORMS)).error.data.reason).toBe("invalid_request_state");
    expect((await rpc("ann", "tools/call", again, FORMS)).result.structuredContent).toEqual({
      action: "accept",
    });
    expect(went).toEqual(["ann"]);
  });

  it.each<[string, GatewayConfig["policies"]]>([
    ["needs a scope they lack", { "office.ask": { scopes: ["more"] } }],
    ["is not served any more", { "office.ask": { enabled: false } }],
  ])("X-4 does not go on where the operation %s meanwhile", async (_, policies) => {
    const { rpc, reload, went } = await served();
    const again = await begin(rpc);
    await reload(undefined, policies);
    expect((await rpc("ann", "tools/call", again, FORMS)).error).toBeDefined();
    expect(went).toEqual([]);
  });

  it.each<[string, Tokens | undefined, boolean]>([
    ["says who may call as before", undefined, true],
    ["knows another caller", { ...TOKENS, cid: { token: "the-token-of-cid-1" } }, false],
    [
      "gives its caller another scope",
      { ...TOKENS, ann: { ...TOKENS.ann, scopes: ["read", "more"] } },
      false,
    ],
  ])("X-4 goes on, or not, where a new config %s", async (_, tokens, goesOn) => {
    const { rpc, reload, went } = await served();
    const again = await begin(rpc);
    await reload(tokens);
    const { error } = await rpc("ann", "tools/call", again, FORMS);
    expect([error === undefined, went]).toEqual(goesOn ? [true, ["ann"]] : [false, []]);
  });
});

describe("between two callers", () => {
  it("X-4 a cached or shared result is of the caller who gets it", async () => {
    const { send } = await served();
    const who = async (name: string) => await (await send(name, "/api/office/whoami")).json();
    const all = await Promise.all(["ann", "bob", "ann", "bob"].map(who));
    expect(all.map(({ subject }) => subject)).toEqual(["ann", "bob", "ann", "bob"]);
  });

  it("X-4 an idempotency key of one is nothing to the other", async () => {
    const { send } = await served();
    const once = async (name: string) => {
      const headers = { "idempotency-key": "the-same-key" };
      const body = JSON.stringify({ operation: "office.whoami", input: {} });
      return await (await send(name, "/call", { method: "POST", headers, body })).text();
    };
    expect(await once("ann")).toContain("ann");
    expect(await once("bob")).not.toContain("ann");
  });

  it("X-4 a session, its stream and its end are of the caller who opened it", async () => {
    const { send } = await served();
    const params = {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "t", version: "1" },
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
    const opened = await send("ann", "/mcp", { method: "POST", body });
    const event = /^id: (.*)$/m.exec(await opened.text())?.[1] ?? "0";
    const headers = { "mcp-session-id": opened.headers.get("mcp-session-id") ?? "" };
    const ping = JSON.stringify({ jsonrpc: "2.0", id: 2, method: "ping" });
    const tried = [
      { method: "POST", body: ping, headers },
      { method: "GET", headers: { ...headers, accept: "text/event-stream" } },
      { method: "GET", headers: { ...headers, accept: "text/event-stream", "last-event-id": event } },
      { method: "DELETE", headers },
    ];
    for (const init of tried) {
      const response = await send("bob", "/mcp", init);
      expect([init.method, response.status]).toEqual([init.method, 404]);
      await response.text();
    }
    expect((await send("ann", "/mcp", { method: "POST", body: ping, headers })).status).toBe(200);
  });

  it("X-4 a stream over HTTP is resumed by its caller alone", async () => {
    const { send } = await served();
    const follow = async (name: string, headers: Record<string, string> = {}) => {
      const leaving = new AbortController();
      const response = await send(name, "/api/office/watch", {
        headers: { accept: "text/event-stream", ...headers },
        signal: leaving.signal,
      });
      const reader = response.body?.getReader();
      const { value } = (await reader?.read()) ?? {};
      leaving.abort();
      return { status: response.status, text: new TextDecoder().decode(value) };
    };
    const { text } = await follow("ann");
    expect(text).toContain('"ann"');
    const id = /^id: (.*)$/m.exec(text)?.[1] ?? "";
    const taken = await follow("bob", { "last-event-id": id });
    expect(taken.text).not.toContain("ann");
  });
});
