// @ts-check
import { createServer } from "node:http";

/** What is left of a server when nothing is checked: it parses a message, looks the tool up, calls it and writes the answer. */
const tools = new Map([["bench_add", (/** @type {any} */ { a, b }) => ({ sum: a + b })]]);

/** @param {string} text @returns {string | undefined} nothing for a notification */
function answer(text) {
  const { id, method, params } = JSON.parse(text);
  if (id === undefined) return undefined;
  return JSON.stringify({ jsonrpc: "2.0", id, result: resultOf(method, params) });
}

/** @param {string} method @param {any} params */
function resultOf(method, params) {
  switch (method) {
    case "tools/call": {
      const data = tools.get(params.name)?.(params.arguments);
      return { content: [{ type: "text", text: JSON.stringify(data) }], structuredContent: data };
    }
    case "tools/list":
      return { tools: [...tools.keys()].map((name) => ({ name, inputSchema: { type: "object" } })) };
    default:
      return { protocolVersion: params.protocolVersion, capabilities: {}, serverInfo: { name: "bare" } };
  }
}

function serveLines() {
  let rest = "";
  process.stdin.setEncoding("utf8").on("data", (chunk) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    const answers = lines.map(answer).filter((each) => each !== undefined);
    if (answers.length > 0) process.stdout.write(`${answers.join("\n")}\n`);
  });
}

function serveHttp() {
  const server = createServer((request, response) => {
    /** @type {Buffer[]} */
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      const body = answer(Buffer.concat(chunks).toString());
      if (body === undefined) return response.writeHead(202).end();
      const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
      return response.writeHead(200, headers).end(body);
    });
  });
  server.listen(0, "127.0.0.1", () => {
    process.send?.({ port: /** @type {import("node:net").AddressInfo} */ (server.address()).port });
  });
}

if (process.argv[2] === "stdio") serveLines();
else serveHttp();
