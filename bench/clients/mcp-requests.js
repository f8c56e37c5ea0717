// @ts-check
import { writeRequest } from "./http-load.js";

const REVISION = "2026-07-28";
const CLIENT = { name: "bench", version: "1.0.0" };
const JSON_HEADERS = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
};

/** @param {string} method @param {unknown} params @param {number} [id] */
const write = (method, params, id) => JSON.stringify({ jsonrpc: "2.0", id, method, params });

/**
 * Opens a session of 2025 over HTTP and returns the headers that belong to it; the SDK's handler has no sessions and names none.
 * @param {string} endpoint @returns {Promise<Readonly<Record<string, string>>>}
 */
export async function openSession(endpoint) {
  const opening = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: CLIENT };
  const headers = { ...JSON_HEADERS, "mcp-protocol-version": "2025-11-25" };
  const post = (/** @type {string} */ body, /** @type {Record<string, string>} */ more = {}) =>
    fetch(endpoint, { method: "POST", headers: { ...headers, ...more }, body });
  const opened = await post(write("initialize", opening, 1));
  await opened.text();
  if (!opened.ok) throw new Error(`initialize is answered with ${opened.status}.`);
  const id = opened.headers.get("mcp-session-id");
  const session = id === null ? {} : { "mcp-session-id": id };
  await (await post(write("notifications/initialized", {}), session)).text();
  return { ...headers, ...session };
}

/**
 * Writes so many requests that call the tool `bench_add`, each with an id of its own.
 * @param {number} port @param {"2025" | "2026"} revision @param {number} count
 */
export async function writeToolCalls(port, revision, count) {
  const params = { name: "bench_add", arguments: { a: 1, b: 2 } };
  const isOld = revision === "2025";
  const headers = isOld
    ? await openSession(`http://127.0.0.1:${port}/mcp`)
    : {
        ...JSON_HEADERS,
        "mcp-protocol-version": REVISION,
        "mcp-method": "tools/call",
        "mcp-name": params.name,
      };
  const meta = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const sent = isOld ? params : { ...params, _meta: meta };
  return Array.from({ length: count }, (_, i) =>
    writeRequest("POST /mcp", headers, write("tools/call", sent, i + 2)),
  );
}
