// A server of SDK 2 on standard input and output, with a tool, a resource that can be watched, and a log.
import { Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/server/validators/cf-worker";

serveStdio(() => {
  const server = new Server(
    { name: "second", version: "1.0.0" },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        logging: {},
      },
      jsonSchemaValidator: new CfWorkerJsonSchemaValidator(),
    },
  );
  server.setRequestHandler("tools/list", () => ({
    tools: [{ name: "greet", inputSchema: { type: "object" } }],
  }));
  server.setRequestHandler("tools/call", async ({ params }) => {
    if (params.name === "change") await server.sendResourceUpdated({ uri: "memo://one" });
    return { content: [{ type: "text", text: "Hello." }] };
  });
  server.setRequestHandler("resources/read", ({ params }) => ({
    contents: [{ uri: params.uri, text: "one" }],
  }));
  try {
    server.setRequestHandler("resources/subscribe", () => ({}));
    server.setRequestHandler("resources/unsubscribe", () => ({}));
  } catch {
    // The newer revision has no such methods.
  }
  return server;
});
