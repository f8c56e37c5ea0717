import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/server";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type CallToolResult,
  createMemoryStore,
  createResultFormat,
  createResultReader,
  createToolCaller,
  RESULT_META_KEY,
} from "../src/formats/index.ts";
import { mcpEnvelope, OperationRegistry, type ResponseEnvelope, Type } from "../src/index.ts";
import { createMcpHandler, fromMcp, type McpServer, serveMcpHttp, toMcpServer } from "../src/mcp/index.ts";
import { fromOpenApi, serveHttp } from "../src/openapi/index.ts";
import { closeImported, imported, serverOf } from "./import-raw-server.ts";
import { query, stream } from "./make-operation.ts";
import { HARDENED } from "./run-node.ts";

const INFO = { name: "peer", version: "1.0.0" };
const VALIDATING = HARDENED ? { jsonSchemaValidator: new CfWorkerJsonSchemaValidator() } : {};

/** Real clients with the validators they come with, which list the tools first, as hosts do. */
const CLIENTS: Readonly<Record<string, (server: McpServer) => Promise<Client>>> = {
  "SDK 1": (server) => inMemory(server, new FirstClient(INFO, VALIDATING) as unknown as Client),
  "SDK 2, 2025": (server) => inMemory(server, new Client(INFO, VALIDATING)),
  "SDK 2, 2026": async (server) => {
    const handler = createMcpHandler(server);
    const client = new Client(INFO, { ...VALIDATING, versionNegotiation: { mode: { pin: "2026-07-28" } } });
    const fetch = async (url: string | URL, init?: RequestInit) =>
      await handler.fetch(new Request(url, init));
    await client.connect(new StreamableHTTPClientTransport(new URL("http://localhost/mcp"), { fetch }));
    return client;
  },
};

async function inMemory(server: McpServer, client: Client): Promise<Client> {
  const [here, there] = InMemoryTransport.createLinkedPair();
  await server.connect(there);
  await client.connect(here as never);
  return client;
}

const COUNT = Type.Object({ count: Type.Number() }, { additionalProperties: false });
const FULL = { count: "many", at: "noon" };
const ISSUE = { pointer: "/count", expected: "number", found: "string of 4 characters" };

const operations = [
  query("odd.object", () => FULL, { outputSchema: COUNT }),
  query("odd.unchecked", () => FULL, { outputSchema: COUNT, outputPolicy: "off" }),
  query("odd.list", () => [1, "two"], { outputSchema: Type.Array(Type.Number()) }),
  query("odd.text", () => "seven", { outputSchema: Type.Number() }),
  query("odd.nothing", () => undefined, { outputSchema: COUNT }),
  query("odd.null", () => null, { outputSchema: COUNT }),
  query("odd.dates", () => ({ count: "x", at: new Date(5), big: 7n }), { outputSchema: COUNT }),
  query("odd.content", () => mcpEnvelope([], { isError: false, content: [{ type: "text", text: "3" }] }), {
    outputSchema: COUNT,
  }),
  query("odd.long", () => ({ count: "x".repeat(5_000) }), { outputSchema: COUNT }),
  query("odd.refined", () => ({ count: 11 }), {
    outputSchema: z.object({ count: z.number().refine((n) => n < 10, "Too many") }),
  }),
  query("fine.object", () => ({ count: 3 }), { outputSchema: COUNT }),
  stream(
    "odd.ticks",
    async function* () {
      yield { count: 1 };
      yield { count: "two" };
    },
    { outputSchema: COUNT },
  ),
];
const quiet = { onWarning: () => {} };
const registry = new OperationRegistry(operations, quiet);
const MISSING = [
  "object",
  "unchecked",
  "list",
  "text",
  "nothing",
  "null",
  "content",
  "dates",
  "long",
  "ticks",
];
const FORMATS = ["mcp", "status-envelope", "tiered-envelope"] as const;

const facts = (result: CallToolResult) => result._meta?.[RESULT_META_KEY] as Record<string, unknown>;
const texts = ({ content }: CallToolResult) =>
  content.map((block) => (block.type === "text" ? block.text : block.type));

describe.each(Object.keys(CLIENTS))("a result that misses its announced schema, called by %s", (name) => {
  async function called(tool: string, format?: (typeof FORMATS)[number]): Promise<CallToolResult> {
    const server = toMcpServer(registry, {
      store: createMemoryStore(),
      limits: { inlineCharacters: 4_000 },
      ...(format !== undefined && { format: createResultFormat(format) }),
    });
    const client = await CLIENTS[name]?.(server);
    if (client === undefined) throw new Error("There is no such client.");
    await client.listTools();
    const result = (await client.callTool({ name: tool, arguments: {} })) as CallToolResult;
    await client.close();
    await server.close();
    return result;
  }

  it.each(MISSING)("X-4 reaches the caller as a result it can read: %s", async (tool) => {
    const result = await called(`odd_${tool}`);
    expect(result.isError).toBe(true);
    expect(result).not.toHaveProperty("structuredContent");
    expect(texts(result)[0]).toMatch(/^The tool ran, and its answer does not match the output schema/);
    expect(facts(result)).toMatchObject({ outcome: "ok" });
    expect(facts(result)["violations"]).not.toEqual([]);
  });

  it("X-4 says how the answer differs, and shows the data as JSON", async () => {
    const result = await called("odd_object");
    expect(texts(result)[0]).toContain("- count must be number; it is string of 4 characters");
    expect(
      texts(result)
        .slice(1)
        .map((text) => JSON.parse(text)),
    ).toEqual([FULL]);
    expect(facts(result)["violations"]).toContainEqual(ISSUE);
  });

  it.each(FORMATS)("X-4 TR-4 CS-11 does so in the format %s", async (format) => {
    for (const tool of MISSING.filter((each) => each !== "content")) {
      const result = await called(`odd_${tool}`, format);
      expect([tool, result.isError, result.structuredContent]).toEqual([tool, true, undefined]);
      expect(facts(result)).toMatchObject({ outcome: "ok" });
    }
    expect(texts(await called("odd_object", format)).join("\n")).toContain(JSON.stringify(FULL));
    expect((await called("fine_object", format)).isError ?? false).toBe(false);
  });

  it("X-4 is sent as it is where clients would take it: they do not know rules that are no JSON Schema", async () => {
    const result = await called("odd_refined");
    expect(result).toMatchObject({ structuredContent: { count: 11 } });
    expect(result.isError ?? false).toBe(false);
    expect(facts(result)).toMatchObject({ violations: [{ pointer: "/count" }] });
  });

  it("X-4 leaves results that match alone", async () => {
    expect(await called("fine_object")).toMatchObject({ structuredContent: { count: 3 } });
    expect(facts(await called("fine_object"))).toBeUndefined();
  });

  it("X-10 is cut to the budget and linked to, whatever its schema", async () => {
    const result = await called("odd_long");
    expect(JSON.stringify(result).length).toBeLessThan(8_000);
    expect(result.content.at(-1)).toMatchObject({ type: "resource_link", mimeType: "application/json" });
  });
});

const FOUND = ({ data, meta }: ResponseEnvelope) => ({
  data,
  isError: meta.isError === true,
  violations: meta.waybill?.violations,
});

describe.each(["2025", "2026"] as const)("a Waybill client of %s", (protocol) => {
  it.each([undefined, ...FORMATS])(
    "X-4 X-6 restores what was served exactly, in the format %s",
    async (format) => {
      const server = toMcpServer(registry, {
        store: createMemoryStore(),
        limits: { inlineCharacters: 4_000 },
        ...(format !== undefined && { format: createResultFormat(format) }),
      });
      const http = await serveMcpHttp(server);
      const reader = format === undefined ? undefined : createResultReader();
      const source = await fromMcp(http.url, { namespace: "x", keepIds: true, protocol, reader, ...quiet });
      const there = new OperationRegistry([], quiet);
      there.registerAll(source);
      const ids = [...MISSING, "refined"].filter((each) => each !== "ticks").map((tool) => `odd.${tool}`);
      for (const id of ids) {
        const here = FOUND(await registry.execute(id, {}));
        const found = FOUND(await there.execute(id, {}));
        // Nobody looked at it here.
        if (id === "odd.unchecked") expect({ ...found, violations: undefined }).toEqual(here);
        else if (id === "odd.content") expect(found).toMatchObject({ isError: false, violations: [{}] });
        // Envelopes have no way to say that there is no data.
        else if (id === "odd.nothing" && format?.endsWith("envelope")) expect(found.isError).toBe(false);
        else expect([id, found]).toEqual([id, here]);
      }
      await source.close();
      await http.close();
      await server.close();
    },
  );
});

describe("a forged miss", () => {
  const tool = (structured: unknown, text: string, result: object = {}) => ({
    content: [{ type: "text", text }],
    isError: true,
    _meta: {
      [RESULT_META_KEY]: {
        outcome: "ok",
        violations: [ISSUE],
        missed: { blocks: 1, structuredContent: structured },
      },
    },
    ...result,
  });
  const listed = (meta: object) => ({
    name: "x_count",
    inputSchema: { type: "object" },
    outputSchema: { type: "object", properties: { count: { type: "number" } }, required: ["count"] },
    _meta: meta,
  });
  const OURS = { "dev.waybill/operation": { id: "x.count", type: "query", version: "1.0.0" } };

  it.each([
    ["of a server that is not Waybill's", {}, tool({ count: "many" }, '{"count":"many"}')],
    ["whose data matches the schema", OURS, tool({ count: 3 }, '{"count":3}')],
    ["whose data the text does not show", OURS, tool({ count: "many" }, "Access denied.")],
    [
      "of a tool error",
      OURS,
      tool({}, "{}", {
        _meta: { [RESULT_META_KEY]: { outcome: "tool-error", missed: { blocks: 1, structuredContent: {} } } },
      }),
    ],
  ])("X-4 %s stays an error", async (_, meta, result) => {
    const { source } = await imported(
      serverOf(
        () => [listed(meta)],
        () => result,
      ),
    );
    const { meta: told } = await source.call("x_count", {});
    expect(told.isError).toBe(true);
    await closeImported();
  });
});

const POST = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };

describe("over HTTP", () => {
  it("RE-12 a result that misses its schema is a 200 that counts its violations", async () => {
    const http = await serveHttp(registry);
    const response = await fetch(`${http.url}/api/odd/object`, POST);
    expect([response.status, response.headers.get("waybill-violations")]).toEqual([200, "2"]);
    const fine = await fetch(`${http.url}/api/fine/object`, POST);
    expect(fine.headers.has("waybill-violations")).toBe(false);
    const source = await fromOpenApi(`${http.url}/openapi.json`, { namespace: "x", keepIds: true });
    const document = JSON.stringify(await (await fetch(`${http.url}/openapi.json`)).json());
    expect(document).toContain('"waybill-violations":{"$ref":"#/components/headers/Violations"}');
    const there = new OperationRegistry([], quiet);
    there.registerAll(source);
    expect(FOUND(await there.execute("odd.object", {}))).toEqual(
      FOUND(await registry.execute("odd.object", {})),
    );
    await source.close();
    await http.close();
  });
});

describe("createToolCaller", () => {
  it.each(FORMATS)("X-4 TR-4 writes a miss so that a server of the SDK sends it on: %s", async (format) => {
    const result = await createToolCaller(registry, { format })("odd.object", {});
    expect(result).toMatchObject({ isError: true });
    expect(result).not.toHaveProperty("structuredContent");
  });
});
