// @ts-check
// What stands behind the gateways, in a process of its own: `node upstream.js <port> <file>`. An HTTP API that looks things up and places orders, and
// writes a line into the file for every order that it places, before it answers.
import { openSync, writeSync } from "node:fs";
import { createServer } from "node:http";

const [port = "0", path = ""] = process.argv.slice(2);
const file = openSync(path, "a");

const ANSWER = { type: "object", properties: { call: { type: "integer" }, owner: { type: "string" } } };
const content = (/** @type {object} */ schema) => ({ "application/json": { schema } });
const responses = { 200: { description: "The answer.", content: content(ANSWER) } };
const FIELDS = { call: { type: "integer" }, owner: { type: "string" }, ms: { type: "integer" } };
const DOCUMENT = JSON.stringify({
  openapi: "3.1.0",
  info: { title: "Shop", version: "1" },
  paths: {
    "/order": {
      post: {
        operationId: "order",
        requestBody: {
          required: true,
          content: content({ type: "object", properties: FIELDS, required: Object.keys(FIELDS) }),
        },
        responses,
      },
    },
    "/look": {
      get: {
        operationId: "look",
        parameters: Object.entries(FIELDS).map(([name, schema]) => ({ name, in: "query", schema })),
        responses,
      },
    },
  },
});

const server = createServer((request, response) => {
  const url = new URL(request.url ?? "/", "http://localhost");
  const send = (/** @type {string} */ text) =>
    response.writeHead(200, { "content-type": "application/json" }).end(text);
  const answer = (/** @type {{ call: number, owner: string, ms: number }} */ { call, owner, ms }) =>
    setTimeout(() => send(JSON.stringify({ call, owner })), ms);
  if (url.pathname === "/openapi.json") {
    send(DOCUMENT);
    return;
  }
  let text = "";
  request.setEncoding("utf8").on("data", (piece) => {
    text += piece;
  });
  request.on("end", () => {
    if (url.pathname === "/look") {
      const { call, owner = "", ms } = Object.fromEntries(url.searchParams);
      answer({ call: Number(call), owner, ms: Number(ms) });
      return;
    }
    const asked = JSON.parse(text);
    writeSync(file, `${JSON.stringify({ call: asked.call, owner: asked.owner })}\n`);
    answer(asked);
  });
});

process.once("disconnect", () => process.exit());
server.keepAliveTimeout = 60_000;
server.listen(Number(port), "127.0.0.1", () => process.send?.("listening"));
