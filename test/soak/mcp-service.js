// @ts-check
// An MCP server of SDK 2, over stdio or over HTTP: `node mcp-service.js [port]`. Over HTTP it says where it listens.
import { createServer } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/server/validators/cf-worker";

/** @param {Record<string, { type: string }>} properties */
const inputOf = (properties) => ({
  type: /** @type {const} */ ("object"),
  properties,
  required: Object.keys(properties),
});
const outputSchema = { type: /** @type {const} */ ("object") };
const annotations = { readOnlyHint: true };
/** @type {import("@modelcontextprotocol/server").Tool[]} */
const TOOLS = [
  { name: "add", inputSchema: inputOf({ a: { type: "number" }, b: { type: "number" } }), outputSchema },
  { name: "wait", inputSchema: inputOf({ ms: { type: "integer" } }), outputSchema, annotations },
  { name: "process", inputSchema: inputOf({}), outputSchema, annotations },
  { name: "refuse", inputSchema: inputOf({}) },
];

/** @param {string} name @param {any} given @param {AbortSignal} signal */
async function run(name, given, signal) {
  if (name === "add") return { sum: given.a + given.b };
  if (name === "process") return { pid: process.pid };
  await new Promise((resolve) => {
    const timer = setTimeout(resolve, given.ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve(undefined);
    });
  });
  return { waited: given.ms };
}

function create() {
  const server = new Server(
    { name: "service", version: "1.0.0" },
    { capabilities: { tools: {} }, jsonSchemaValidator: new CfWorkerJsonSchemaValidator() },
  );
  server.setRequestHandler("tools/list", () => ({ tools: TOOLS }));
  server.setRequestHandler("tools/call", async ({ params }, { mcpReq }) => {
    if (params.name === "refuse") return { isError: true, content: [{ type: "text", text: "No." }] };
    const structuredContent = await run(params.name, params.arguments, mcpReq.signal);
    return { structuredContent, content: [{ type: "text", text: JSON.stringify(structuredContent) }] };
  });
  return server;
}

const port = process.argv[2];
if (port === undefined) serveStdio(create);
else {
  // Whoever has started it holds the other end of its input, and takes it along.
  process.stdin.resume().once("end", () => process.exit(0));
  const serve = toNodeHandler(createMcpHandler(create));
  const { KEY } = process.env;
  const server = createServer((request, response) => {
    const given = request.headers["x-key"];
    if (KEY === undefined || given === KEY) return void serve(/** @type {any} */ (request), response);
    response.writeHead(401, { "content-type": "text/plain" }).end(`${given} is not it`);
  });
  server.listen(Number(port), "127.0.0.1", () => {
    const address = server.address();
    if (address !== null && typeof address === "object") console.log(`http://127.0.0.1:${address.port}/mcp`);
  });
}
