// @ts-check
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

/**
 * What somebody would write by hand for this one operation, with the checks that Waybill makes: host, origin, method, media types,
 * size, JSON, every field of the input, every field of the output, a request id, a trace context, and an abort when the client leaves.
 */
const BODY_BYTES = 4_194_304;
const HOST = /^(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/;
const JSON_TYPE = /^application\/json\s*(;|$)/i;
const TRACE = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** @typedef {import("node:http").IncomingMessage} Request @typedef {import("node:http").ServerResponse} Response */

/** @param {Response} response @param {number} status @param {string} title */
function refuse(response, status, title) {
  const body = JSON.stringify({ type: "about:blank", title, status });
  response.writeHead(status, {
    "content-type": "application/problem+json",
    "content-length": Buffer.byteLength(body),
  });
  response.end(body);
}

/** @param {{ a: number, b: number }} input @param {AbortSignal} signal */
async function add({ a, b }, signal) {
  signal.throwIfAborted();
  return { sum: a + b };
}

/** @param {unknown} input @returns {input is { a: number, b: number }} */
function isInput(input) {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return false;
  const { a, b } = /** @type {{ a?: unknown, b?: unknown }} */ (input);
  return Number.isFinite(a) && Number.isFinite(b);
}

/** @param {Request} request @param {Response} response @param {Buffer} body */
async function answer(request, response, body) {
  let input;
  try {
    input = JSON.parse(body.toString());
  } catch {
    return refuse(response, 400, "Not JSON");
  }
  if (!isInput(input)) return refuse(response, 400, "Invalid input");
  const controller = new AbortController();
  const leave = () => controller.abort();
  response.once("close", leave);
  const data = await add(input, controller.signal);
  response.off("close", leave);
  if (typeof data.sum !== "number") return refuse(response, 500, "Invalid output");
  const text = JSON.stringify(data);
  const trace = request.headers["traceparent"];
  const given = request.headers["x-request-id"];
  response.writeHead(200, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
    "cache-control": "no-store",
    vary: "accept",
    "x-request-id": typeof given === "string" && given.length <= 200 ? given : randomUUID(),
    ...(typeof trace === "string" && TRACE.test(trace) && { traceparent: trace }),
  });
  response.end(text);
}

const server = createServer((request, response) => {
  if (!HOST.test(request.headers.host ?? "")) return refuse(response, 403, "Not this host");
  if (request.headers.origin !== undefined) return refuse(response, 403, "Not from a page");
  if (request.url !== "/api/bench/add") return refuse(response, 404, "Not found");
  if (request.method !== "POST") return refuse(response, 405, "Method not allowed");
  if (!JSON_TYPE.test(request.headers["content-type"] ?? "")) return refuse(response, 415, "Not JSON");
  const accept = request.headers.accept ?? "*/*";
  if (!accept.includes("*/*") && !accept.includes("application/json"))
    return refuse(response, 406, "Not acceptable");
  /** @type {Buffer[]} */
  const chunks = [];
  let bytes = 0;
  request.on("data", (/** @type {Buffer} */ chunk) => {
    bytes += chunk.length;
    if (bytes <= BODY_BYTES) chunks.push(chunk);
  });
  request.on("end", () => {
    if (bytes > BODY_BYTES) refuse(response, 413, "Too large");
    else void answer(request, response, Buffer.concat(chunks));
  });
});
server.listen(0, "127.0.0.1", () => {
  process.send?.({ port: /** @type {import("node:net").AddressInfo} */ (server.address()).port });
});
process.once("disconnect", () => process.exit());
