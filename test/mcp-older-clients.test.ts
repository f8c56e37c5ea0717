import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";
import { InMemoryTransport } from "@modelcontextprotocol/server";
import { afterEach, describe, expect, it } from "vitest";
import { createMemoryStore } from "../src/formats/index.ts";
import { mcpEnvelope, OperationRegistry, result, Type } from "../src/index.ts";
import { toMcpServer } from "../src/mcp/index.ts";
import { query } from "./make-operation.ts";
import { HARDENED } from "./run-node.ts";

/** What the clients of all SDKs share. */
interface OldClient {
  connect(transport: never): Promise<void>;
  close(): Promise<void>;
  listTools(): Promise<{ tools: readonly { name: string }[] }>;
  callTool(params: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
  getPrompt(params: { name: string }): Promise<unknown>;
  readResource(params: { uri: string }): Promise<{ contents: readonly { text?: string }[] }>;
}

type ClientClass = new (info: object, options: object) => OldClient;

/** Real clients of SDKs as they were, by their package; in a variable, because their types are not those of today's compiler. */
const SDKS: Readonly<Record<string, string>> = {
  "SDK 1.0": "sdk-1-0/client/index.js",
  "SDK 1.10": "sdk-1-10/client/index.js",
  "SDK 1.20": "sdk-1-20/client/index.js",
  "SDK 1.32": "@modelcontextprotocol/sdk/client/index.js",
};

const BLOCKS = [
  { type: "text", text: "Look." },
  { type: "image", data: "AAAA", mimeType: "image/png" },
  { type: "audio", data: "AQID", mimeType: "audio/wav", annotations: { priority: 1 } },
  { type: "resource", resource: { uri: "a://b", mimeType: "text/plain", text: "inside" } },
  {
    type: "resource_link",
    uri: "a://link",
    name: "rates",
    description: "All rates.",
    mimeType: "text/csv",
    size: 1_234,
  },
] as const;

const registry = new OperationRegistry([
  query("block.all", () => mcpEnvelope([...BLOCKS], { isError: false, content: [...BLOCKS] })),
  query("block.big", () => ({ text: "x".repeat(9_000) }), {
    outputSchema: Type.Object({ text: Type.String() }),
  }),
  query("block.said", () => result({ n: 1 }, { markdown: "# One" }), {
    outputSchema: Type.Object({ n: Type.Number() }),
  }),
  query("block.number", () => 7, { outputSchema: Type.Number() }),
]);

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

function serve() {
  const server = toMcpServer(registry, {
    store: createMemoryStore(),
    limits: { inlineCharacters: 1_000 },
    prompts: [
      {
        name: "listen",
        get: () => ({
          messages: BLOCKS.map((content) => ({ role: "user" as const, content })),
        }),
      },
    ],
  });
  closing.push(() => server.close());
  return server;
}

async function connected(sdk: string): Promise<OldClient> {
  const { Client } = (await import(SDKS[sdk] as string)) as { Client: ClientClass };
  // Where code must not be generated, the client that checks results does so with the validator of workers.
  const checking = HARDENED ? { jsonSchemaValidator: new CfWorkerJsonSchemaValidator() } : {};
  const client = new Client({ name: "old", version: "1.0.0" }, { capabilities: {}, ...checking });
  const [here, there] = InMemoryTransport.createLinkedPair();
  await serve().connect(there);
  await client.connect(here as never);
  closing.push(() => client.close());
  return client;
}

const typesOf = (called: unknown) =>
  (called as { content: { type: string }[] }).content.map(({ type }) => type);
const textOf = (called: unknown) => JSON.stringify((called as { content: unknown }).content);

describe.each(Object.keys(SDKS))("a client of %s", (sdk) => {
  const isOld = sdk === "SDK 1.0" || sdk === "SDK 1.10";

  it("RE-30 takes a result of every kind of block", async () => {
    const client = await connected(sdk);
    expect((await client.listTools()).tools).toHaveLength(4);
    const called = await client.callTool({ name: "block_all", arguments: {} });
    expect(typesOf(called)).toEqual(
      isOld ? ["text", "image", "resource", "resource", "text"] : BLOCKS.map(({ type }) => type),
    );
    expect(textOf(called)).toContain("a://link");
    expect(textOf(called)).toContain("AQID");
  });

  it("TR-6 RE-30 takes a big result, and reads the whole", async () => {
    const client = await connected(sdk);
    const called = await client.callTool({ name: "block_big", arguments: {} });
    expect(typesOf(called).includes("resource_link")).toBe(!isOld);
    const [uri = ""] = /waybill:\/\/results\/[^ "?]+/.exec(textOf(called)) ?? [];
    const { contents } = await client.readResource({ uri });
    expect(contents[0]?.text).toBe(JSON.stringify({ text: "x".repeat(9_000) }));
  });

  it("RE-30 sees data that only structured content has", async () => {
    const client = await connected(sdk);
    const texts = textOf(await client.callTool({ name: "block_said", arguments: {} }));
    expect(texts).toContain("# One");
    expect(texts.includes('{\\"n\\":1}')).toBe(isOld);
    expect(typesOf(await client.callTool({ name: "block_number", arguments: {} }))).toEqual(["text"]);
  });

  it("RE-30 takes a prompt of every kind of block", async () => {
    const client = await connected(sdk);
    const { messages } = (await client.getPrompt({ name: "listen" })) as { messages: unknown[] };
    expect(messages).toHaveLength(BLOCKS.length);
  });
});

describe.each([
  ["2024-10-07", ["text", "image", "resource", "resource", "text"]],
  ["2024-11-05", ["text", "image", "resource", "resource", "text"]],
  ["2025-03-26", ["text", "image", "audio", "resource", "text"]],
  ["2025-06-18", BLOCKS.map(({ type }) => type)],
  ["2025-11-25", BLOCKS.map(({ type }) => type)],
])("a client of the revision %s", (protocolVersion, types) => {
  it("RE-30 gets the kinds of blocks that it knows", async () => {
    const [here, there] = InMemoryTransport.createLinkedPair();
    const answers: Record<string, { result: unknown }> = {};
    await serve().connect(there);
    const answer = new Promise<void>((resolve) => {
      here.onmessage = (message) => {
        if (!("id" in message)) return;
        answers[String(message.id)] = message as never;
        if (message.id === 2) resolve();
      };
    });
    await here.start();
    const send = (id: number, method: string, params: object) =>
      here.send({ jsonrpc: "2.0", id, method, params } as never);
    await send(1, "initialize", {
      protocolVersion,
      capabilities: {},
      clientInfo: { name: "a", version: "1" },
    });
    await here.send({ jsonrpc: "2.0", method: "notifications/initialized" });
    await send(2, "tools/call", { name: "block_all", arguments: {} });
    await answer;
    expect(answers[1]?.result).toMatchObject({ protocolVersion });
    expect(typesOf(answers[2]?.result)).toEqual(types);
  });
});
