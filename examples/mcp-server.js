// @ts-check
// An MCP server on the official SDK whose tools answer in three of the published formats, and a client that reads them.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/client";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";
import { InMemoryTransport, McpServer, ResourceTemplate } from "@modelcontextprotocol/server";
import { defineOperation, OperationRegistry, Type } from "waybill";
import {
  composeToolPayload,
  createMemoryStore,
  createToolCaller,
  createToolResponseEnvelopeSchema,
  decodeToolResult,
  previewToolPayload,
  toolOutputSchema,
  toReadResourceResult,
  toToolResult,
} from "waybill/formats";
import { z } from "zod";

const server = new McpServer({ name: "shop", version: "1.0.0" });
const store = createMemoryStore();

// A status envelope: declare its schema, and errors pass it too. A long answer goes out as a preview.
const Orders = z.object({ orders: z.array(z.object({ id: z.number() })) });
server.registerTool(
  "orders",
  { inputSchema: z.object({ count: z.number() }), outputSchema: createToolResponseEnvelopeSchema(Orders) },
  async ({ count }) => {
    if (count < 0) {
      return composeToolPayload({
        meta: { status: "error", summary: "There are no negative orders", nextSteps: ["Ask for 0 or more"] },
        data: null,
      });
    }
    const orders = Array.from({ length: count }, (_, id) => ({ id }));
    return previewToolPayload({
      meta: { status: "ok", summary: "Orders" },
      data: { orders },
      schema: Orders,
      store,
    });
  },
);

// The rest of a preview, whole or in ranges.
server.registerResource(
  "results",
  new ResourceTemplate("waybill://results/{id}", { list: undefined }),
  {},
  async (uri) => {
    const result = await toReadResourceResult(store, uri.href);
    if (result === undefined) throw new Error("This result is gone; call the tool again.");
    return result;
  },
);

// A tool envelope has no structured content, so it declares no schema.
server.registerTool("greet", {}, async () =>
  toToolResult({ summaryMarkdown: "**Hello**", payload: { greeting: "Hello" }, meta: { tool: "greet" } }),
);

// An operation of a registry, in the tiered envelope.
const scan = defineOperation({
  namespace: "shop",
  name: "scan",
  version: "2.0.0",
  type: "query",
  description: "Scans.",
  outputSchema: Type.Object({ found: Type.Number() }),
  outputPolicy: "strict", // what does not fit the advertised schema is an error here, not at the client
  handler: () => ({ found: 2 }),
});
const callTool = createToolCaller(new OperationRegistry([scan]), { format: "tiered-envelope" });
server.registerTool("scan", { outputSchema: toolOutputSchema(scan, "tiered-envelope") }, () =>
  callTool(scan),
);

const [near, far] = InMemoryTransport.createLinkedPair();
// The usual validator compiles schemas to code; this one also works where that is forbidden.
const jsonSchemaValidator = new CfWorkerJsonSchemaValidator();
const client = new Client({ name: "buyer", version: "1.0.0" }, { jsonSchemaValidator });
await Promise.all([server.connect(far), client.connect(near)]);
await client.listTools();

for (const [name, args] of /** @type {const} */ ([
  ["orders", { count: 2 }],
  ["orders", { count: 2_000 }],
  ["orders", { count: -1 }],
  ["greet", {}],
  ["scan", {}],
])) {
  const { format, isError, result } = decodeToolResult(await client.callTool({ name, arguments: args }));
  console.log(name, args, "→", format, isError ? "failed" : "ok", result?.truncated ? "(preview)" : "");
  assert.equal(isError, "count" in args && args.count < 0);
}

const long = await client.callTool({ name: "orders", arguments: { count: 2_000 } });
const link = long.content.find((block) => block.type === "resource_link");
const { contents } = await client.readResource({ uri: String(link?.uri) });
const [whole] = contents;
assert.ok(whole && "text" in whole);
assert.equal(JSON.parse(whole.text).data.orders.length, 2_000);
await client.close();
await server.close();
