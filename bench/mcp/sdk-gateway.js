// @ts-check
import { createServer } from "node:http";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

/** The least gateway that the two ends of the SDK make: one tool, handed on by hand, over stdio or HTTP. */
const client = new Client({ name: "gateway", version: "1.0.0" });
await client.connect(
  new StdioClientTransport({
    command: process.execPath,
    args: [new URL("./sdk-server.js", import.meta.url).pathname, "stdio"],
  }),
);
function createGateway() {
  const server = new McpServer({ name: "sdk-gateway", version: "1.0.0" });
  server.registerTool(
    "bench_add",
    {
      description: "Adds two numbers.",
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      outputSchema: z.object({ sum: z.number() }),
    },
    async (input) => /** @type {any} */ (await client.callTool({ name: "bench_add", arguments: input })),
  );
  return server;
}
if (process.argv[2] === "stdio") serveStdio(createGateway);
else {
  const server = createServer(toNodeHandler(createMcpHandler(createGateway)));
  server.listen(0, "127.0.0.1", () => {
    process.send?.({ port: /** @type {import("node:net").AddressInfo} */ (server.address()).port });
  });
}
