import type { Client } from "@modelcontextprotocol/client";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, it } from "vitest";
import { OperationRegistry } from "../src/index.ts";
import { type McpServer, toMcpServer } from "../src/mcp/index.ts";
import { query, rejection, until } from "./make-operation.ts";
import { legacyClient, modernClient } from "./mcp-server-peers.ts";

const FORM = {
  message: "Who?",
  requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
} as const;
const SAMPLE = { messages: [{ role: "user", content: { type: "text", text: "Hi" } }], maxTokens: 10 };
const CAPABILITIES = { elicitation: { form: {} }, sampling: {}, roots: {} };

let runs = 0;
const OPERATIONS = [
  query("ask.name", async (_, { elicit }) => {
    runs += 1;
    const { action, content } = await elicit(FORM, { key: "user_name" });
    return action === "accept" ? `Hello ${content?.["name"]}` : action;
  }),
  query("ask.all", async (_, { elicit, sample, roots }) => {
    const [who, said, places] = await Promise.all([elicit(FORM), sample(SAMPLE), roots()]);
    return [who.content?.["name"], said.model, places.length];
  }),
  query("ask.twice", async (_, { elicit }) => {
    const first = await elicit(FORM);
    const second = await elicit(FORM);
    return [first.content?.["name"], second.content?.["name"]];
  }),
  query("ask.model", async (_, { sample }) => (await sample(SAMPLE)).model),
  query("ask.either", async (_, { elicit, sample }) => {
    try {
      return await elicit(FORM);
    } catch {
      return (await sample(SAMPLE)).model;
    }
  }),
];
const registry = new OperationRegistry(OPERATIONS);

function answering(name: unknown): (client: Client) => void {
  return (client) => {
    client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { name } }) as never);
    client.setRequestHandler("sampling/createMessage", () => ({
      role: "assistant",
      model: "m1",
      content: { type: "text", text: "Hello" },
    }));
    client.setRequestHandler("roots/list", () => ({ roots: [{ uri: "file:///a" }] }));
  };
}

describe.each([
  ["2025", legacyClient],
  ["2026", modernClient],
])("asking a client of %s", (era, connect) => {
  const open = (server: McpServer, name: unknown = "Ann") =>
    connect(server, { capabilities: CAPABILITIES, prepare: answering(name) });

  it("Mcp: puts a question to the person, and runs the handler once", async () => {
    const client = await open(toMcpServer(registry));
    runs = 0;
    expect(await client.callTool({ name: "ask_name" })).toMatchObject({ content: [{ text: "Hello Ann" }] });
    expect(runs).toBe(1);
  });

  it("Mcp: asks person, model and roots at once, and one after the other", async () => {
    const client = await open(toMcpServer(registry));
    const all = await client.callTool({ name: "ask_all" });
    expect(all.content).toEqual([{ type: "text", text: '["Ann","m1",1]' }]);
    const twice = await client.callTool({ name: "ask_twice" });
    expect(twice.content).toEqual([{ type: "text", text: '["Ann","Ann"]' }]);
  });

  it("Mcp: refuses an answer that is not what the form asked for", async () => {
    const client = await open(toMcpServer(registry), 7);
    const result = await client.callTool({ name: "ask_name" });
    expect(result).toMatchObject({
      isError: true,
      _meta: { "dev.waybill/result": { code: "VALIDATION_ERROR" } },
    });
  });

  it("Mcp: lets handlers find out what cannot be asked", async () => {
    const capabilities = { sampling: {} };
    const client = await connect(toMcpServer(registry), { capabilities, prepare: onlySampling });
    expect(await client.callTool({ name: "ask_either" })).toMatchObject({ content: [{ text: "m1" }] });
    const nothing = await connect(toMcpServer(registry));
    const call = nothing.callTool({ name: "ask_model" });
    if (era === "2025") {
      expect(await call).toMatchObject({ _meta: { "dev.waybill/result": { code: "NOT_IMPLEMENTED" } } });
    } else {
      expect(await rejection(call)).toMatchObject({
        code: -32021,
        data: { requiredCapabilities: { sampling: {} } },
      });
    }
  });

  it("Mcp: prompts and resources may ask as well", async () => {
    const server = toMcpServer(registry, {
      prompts: [
        { name: "greet", get: async (_, { elicit }) => `Greet ${(await elicit(FORM)).content?.["name"]}` },
      ],
      resources: [
        { uri: "x://who", name: "who", read: async (_, { elicit }) => `${(await elicit(FORM)).action}` },
      ],
    });
    const client = await open(server);
    const { messages } = await client.getPrompt({ name: "greet" });
    expect(messages).toEqual([{ role: "user", content: { type: "text", text: "Greet Ann" } }]);
    const { contents } = await client.readResource({ uri: "x://who" });
    expect(contents).toEqual([{ uri: "x://who", text: "accept" }]);
  });
});

function onlySampling(client: Client): void {
  client.setRequestHandler("sampling/createMessage", () => ({
    role: "assistant",
    model: "m1",
    content: { type: "text", text: "Hello" },
  }));
}

/** What a 2026-07-28 client gets when it does not answer by itself. */
interface Round {
  readonly resultType?: string;
  readonly requestState?: string;
  readonly inputRequests?: Readonly<Record<string, unknown>>;
}

type Params = Readonly<Record<string, unknown>>;

async function round(client: Client, params: Params): Promise<Round> {
  const request = { method: "tools/call", params } as never;
  return (await client.request(request, { allowInputRequired: true } as never)) as Round;
}

describe("calls that wait", () => {
  const open = (server: McpServer, subject = "ann") =>
    modernClient(server, { capabilities: CAPABILITIES, identity: { subject } });
  const answer = { user_name: { action: "accept", content: { name: "Ann" } } };

  it("Mcp: go on where they stopped, by the key the handler chose, once", async () => {
    const client = await open(toMcpServer(registry));
    runs = 0;
    const { requestState, inputRequests } = await round(client, { name: "ask_name" });
    expect(Object.keys(inputRequests ?? {})).toEqual(["user_name"]);
    const params = { name: "ask_name", requestState, inputResponses: answer };
    expect(await round(client, params)).toMatchObject({ content: [{ text: "Hello Ann" }] });
    expect(await rejection(round(client, params))).toMatchObject({ code: -32602 });
    expect(runs).toBe(1);
  });

  it("Mcp: take answers that come with the first request", async () => {
    const client = await open(toMcpServer(registry));
    const params = { name: "ask_name", inputResponses: { ...answer, other: { action: "cancel" } } };
    expect(await round(client, params)).toMatchObject({ content: [{ text: "Hello Ann" }] });
    const wrong = await round(client, {
      name: "ask_name",
      inputResponses: { user_name: { action: "maybe" } },
    });
    expect(Object.keys(wrong.inputRequests ?? {})).toEqual(["user_name"]);
  });

  it("Mcp: ask again for what was not answered, under another state", async () => {
    const client = await open(toMcpServer(registry));
    const first = await round(client, { name: "ask_name" });
    const again = await round(client, {
      name: "ask_name",
      requestState: first.requestState,
      inputResponses: {},
    });
    expect(again.inputRequests).toEqual(first.inputRequests);
    expect(again.requestState).not.toBe(first.requestState);
  });

  it("X-4 are of no use to another caller, another tool or a forger", async () => {
    const server = toMcpServer(registry);
    const ann = await open(server);
    const bob = await open(server, "bob");
    const { requestState } = await round(ann, { name: "ask_name" });
    const params = { name: "ask_name", requestState, inputResponses: answer };
    expect(await rejection(round(bob, params))).toMatchObject({ code: -32602 });
    expect(await rejection(round(ann, { ...params, name: "ask_twice" }))).toMatchObject({ code: -32602 });
    const forged = { ...params, requestState: `${requestState}x` };
    expect(await rejection(round(ann, forged))).toMatchObject({ code: -32602 });
    expect(await round(ann, params)).toMatchObject({ content: [{ text: "Hello Ann" }] });
  });

  it("Mcp: are as many as the limit says, and no more", async () => {
    const client = await open(toMcpServer(registry, { limits: { waitingCalls: 2 } }));
    const first = await round(client, { name: "ask_name" });
    expect(await round(client, { name: "ask_name" })).toMatchObject({ requestState: expect.any(String) });
    expect(await round(client, { name: "ask_name" })).toMatchObject({
      isError: true,
      _meta: { "dev.waybill/result": { code: "RESOURCE_EXHAUSTED" } },
    });
    const params = { name: "ask_name", requestState: first.requestState, inputResponses: answer };
    expect(await round(client, params)).toMatchObject({ content: [{ text: "Hello Ann" }] });
    expect(await round(client, { name: "ask_name" })).toMatchObject({ requestState: expect.any(String) });
  });

  it.each(["expires", "closes"])("Mcp: are stopped when the wait %s", async (why) => {
    const reasons: unknown[] = [];
    const waits = query("ask.waits", async (_, { elicit, signal }) => {
      signal.addEventListener("abort", () => reasons.push(signal.reason));
      return await elicit(FORM);
    });
    const limits = { waitingMs: why === "expires" ? 50 : 60_000 };
    const server = toMcpServer(new OperationRegistry([waits]), { limits });
    const client = await open(server);
    const { requestState } = await round(client, { name: "ask_waits" });
    if (why === "closes") await server.close();
    await until(() => reasons.length > 0);
    expect(reasons).toHaveLength(1);
    const late = { name: "ask_waits", requestState, inputResponses: {} };
    expect(await rejection(round(client, late))).toBeInstanceOf(Error);
  });
});

it("Mcp: the first question of all is taken back with its call, from a client of SDK 1.x too", async () => {
  const [here, there] = InMemoryTransport.createLinkedPair();
  const client = new FirstClient({ name: "one", version: "1" }, { capabilities: { elicitation: {} } });
  let asked: AbortSignal | undefined;
  client.setRequestHandler(ElicitRequestSchema, (_, { signal }) => {
    asked = signal;
    return new Promise(() => {});
  });
  const server = toMcpServer(registry);
  await server.connect(there as never);
  await client.connect(here);
  const leaving = new AbortController();
  const call = client.callTool({ name: "ask_name" }, undefined, { signal: leaving.signal });
  const failure = rejection(call);
  await until(() => asked !== undefined);
  leaving.abort();
  await failure;
  await until(() => asked?.aborted === true);
  await client.close();
  await server.close();
});
