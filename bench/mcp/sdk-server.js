// @ts-check
import { createServer } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

/** A server of the SDK with one tool, as its documentation writes one. */
function createSdkServer() {
  const server = new McpServer({ name: "sdk", version: "1.0.0" });
  server.registerTool(
    "bench_add",
    {
      description: "Adds two numbers.",
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      outputSchema: z.object({ sum: z.number() }),
    },
    async ({ a, b }) => {
      const data = { sum: a + b };
      return { content: [{ type: "text", text: JSON.stringify(data) }], structuredContent: data };
    },
  );
  return server;
}

if (process.argv[2] === "stdio") serveStdio(createSdkServer);
else {
  const server = createServer(toNodeHandler(createMcpHandler(createSdkServer)));
  server.listen(0, "127.0.0.1", () => {
    process.send?.({ port: /** @type {import("node:net").AddressInfo} */ (server.address()).port });
  });
}
