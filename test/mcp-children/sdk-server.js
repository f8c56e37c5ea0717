// A server of the older SDK with one tool, which greets on both outputs before it speaks the protocol.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";

process.stdout.write("Welcome!\n");
process.stderr.write("listening\n");
const server = new McpServer({ name: "greeter", version: "1.0.0" });
server.registerTool("greet", { description: "Greets." }, () => ({
  content: [{ type: "text", text: "Hello." }],
}));
await server.connect(new StdioServerTransport());
