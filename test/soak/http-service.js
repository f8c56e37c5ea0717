// @ts-check
// An HTTP API with an OpenAPI document, written by hand on node:http: `node http-service.js <port>`. It says where it listens, and does what
// tests of a gateway want to see from the other side. With TOKEN in its environment it asks for that token.
import { createServer } from "node:http";

const TOKEN = process.env.TOKEN;
/** @type {Map<string, number>} */
const counts = new Map();
let [running, most] = [0, 0];

/** @param {string} key */
const count = (key) => {
  counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts.get(key) ?? 0;
};
/** @param {string | null} text */
const sleep = (text) => new Promise((resolve) => setTimeout(resolve, Number(text)));

/** @typedef {{ query: URLSearchParams, body: any }} Asked */
/** @type {Record<string, { method: string, path: string, query?: Record<string, string>, body?: object, answer: (asked: Asked) => unknown }>} */
const OPERATIONS = {
  add: {
    method: "get",
    path: "/add",
    query: { a: "number", b: "number" },
    answer: ({ query }) => ({ sum: Number(query.get("a")) + Number(query.get("b")) }),
  },
  echo: {
    method: "post",
    path: "/echo",
    body: { type: "object", properties: { message: { type: "string" } }, required: ["message"] },
    answer: ({ body }) => ({ said: body.message }),
  },
  wait: {
    method: "get",
    path: "/wait",
    query: { ms: "integer" },
    answer: async ({ query }) => {
      await sleep(query.get("ms"));
      return { waited: Number(query.get("ms")) };
    },
  },
  /** How often it was asked under a key, itself included. */
  count: {
    method: "get",
    path: "/count",
    query: { key: "string", ms: "integer" },
    answer: async ({ query }) => {
      const counted = count(String(query.get("key")));
      await sleep(query.get("ms"));
      return { counted };
    },
  },
  /** As `count`, for those who change something. */
  order: {
    method: "post",
    path: "/order",
    body: { type: "object", properties: { key: { type: "string" } }, required: ["key"] },
    answer: ({ body }) => ({ ordered: count(body.key) }),
  },
  /** How many of these ran at a time at most. */
  crowd: {
    method: "get",
    path: "/crowd",
    query: { ms: "integer" },
    answer: async ({ query }) => {
      running += 1;
      most = Math.max(most, running);
      await sleep(query.get("ms"));
      running -= 1;
      return { most };
    },
  },
  process: { method: "get", path: "/process", answer: () => ({ pid: process.pid }) },
  /** Breaks, and tells all that it knows. */
  leak: { method: "get", path: "/leak", answer: () => undefined },
};

/** @param {(typeof OPERATIONS)[string] & { operationId: string }} operation */
function describe({ operationId, query = {}, body }) {
  const content = { "application/json": { schema: { type: "object" } } };
  return {
    operationId,
    parameters: Object.entries(query).map(([name, type]) => ({
      name,
      in: "query",
      required: true,
      schema: { type },
    })),
    ...(body && { requestBody: { required: true, content: { "application/json": { schema: body } } } }),
    ...(TOKEN !== undefined && { security: [{ key: [] }] }),
    responses: { 200: { description: "The answer.", content } },
  };
}

const DOCUMENT = {
  openapi: "3.0.3",
  info: { title: "Depot", version: "2.1" },
  paths: Object.fromEntries(
    Object.entries(OPERATIONS).map(([operationId, operation]) => [
      operation.path,
      { [operation.method]: describe({ ...operation, operationId }) },
    ]),
  ),
  ...(TOKEN !== undefined && {
    components: { securitySchemes: { key: { type: "http", scheme: "bearer" } } },
  }),
};

const server = createServer(async (request, response) => {
  const url = new URL(request.url ?? "/", "http://localhost");
  /** @param {number} status @param {unknown} value */
  const send = (status, value) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
  if (url.pathname === "/openapi.json") return send(200, DOCUMENT);
  const { authorization } = request.headers;
  if (TOKEN !== undefined && authorization !== `Bearer ${TOKEN}`) {
    return send(401, { error: `${authorization} is not it` });
  }
  let text = "";
  for await (const chunk of request) text += chunk;
  const operation = Object.values(OPERATIONS).find(({ path }) => path === url.pathname);
  const answer = await operation?.answer({
    query: url.searchParams,
    body: text === "" ? {} : JSON.parse(text),
  });
  if (answer === undefined) return send(500, { error: "broken", headers: request.headers });
  return send(200, answer);
});
server.listen(Number(process.argv[2] ?? 0), "127.0.0.1", () => {
  const address = server.address();
  if (address !== null && typeof address === "object") console.log(`http://127.0.0.1:${address.port}`);
});
// Whoever has started it holds the other end of its input, and takes it along.
process.stdin.resume().once("end", () => process.exit(0));
