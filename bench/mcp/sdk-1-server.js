// @ts-check
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

/** A server of the SDK's first generation with one tool, as its documentation writes one. */
const server = new McpServer({ name: "sdk-1", version: "1.0.0" });
server.registerTool(
  "bench_add",
  {
    description: "Adds two numbers.",
    inputSchema: { a: z.number(), b: z.number() },
    outputSchema: { sum: z.number() },
  },
  async ({ a, b }) => {
    const data = { sum: a + b };
    return { content: [{ type: "text", text: JSON.stringify(data) }], structuredContent: data };
  },
);
await server.connect(new StdioServerTransport());
