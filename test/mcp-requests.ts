import { expect } from "vitest";
import type { McpHandler } from "../src/mcp/index.ts";

/** Where the handler under test believes to be. */
export const ENDPOINT = "http://localhost/mcp";
/** Headers of a request, in lower case. */
export type HeaderFields = Readonly<Record<string, string>>;

/** Makes a request that posts a body, text as it is. */
export function post(body: unknown, headers: HeaderFields = {}): Request {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return new Request(ENDPOINT, {
    method: "POST",
    body: text,
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "content-length": String(Buffer.byteLength(text)),
      ...headers,
    },
  });
}

const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

/** Makes a request of a 2026-07-28 client. */
export function modern(
  method: string,
  params: Record<string, unknown> = {},
  headers: HeaderFields = {},
): Request {
  const named = typeof params["name"] === "string" ? { "mcp-name": params["name"] } : {};
  const standard = { "mcp-protocol-version": "2026-07-28", "mcp-method": method, ...named };
  return post(
    { jsonrpc: "2.0", id: 7, method, params: { ...params, _meta: META } },
    { ...standard, ...headers },
  );
}

/** Sends a request of a 2026-07-28 client to a server that listens, and gives its result. */
export async function askServer(
  { url, token }: { readonly url: string; readonly token: string },
  method: string,
  params: Record<string, unknown> = {},
): Promise<Record<string, unknown>> {
  const made = modern(method, params, { authorization: `Bearer ${token}` });
  const headers = new Headers(made.headers);
  // It is added when the body is sent; another one beside it is refused by some versions of undici.
  headers.delete("content-length");
  const response = await fetch(url, { method: "POST", headers, body: await made.text() });
  const { result } = (await response.json()) as { readonly result: Record<string, unknown> };
  return result;
}

/** What a 2025 client says first. */
export const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } },
};

/** Opens a session and gives its id back. */
export async function initialize(handler: McpHandler, headers: HeaderFields = {}): Promise<string> {
  const response = await handler.fetch(post(INITIALIZE, headers));
  expect(response.status).toBe(200);
  await response.text();
  return response.headers.get("mcp-session-id") ?? "";
}

/** Makes the message that calls a tool, as of 2025. */
export const call = (id: number | string, name: string, args: object = {}) => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name, arguments: args },
});

/** Reads the error of a refusal. */
export async function errorOf(response: Response): Promise<{ status: number; code: number; id: unknown }> {
  const { error, id } = (await response.json()) as { error: { code: number }; id: unknown };
  return { status: response.status, code: error.code, id };
}

/** Waits until something holds. */
export async function until(holds: () => boolean): Promise<void> {
  const end = performance.now() + 20_000;
  while (!holds() && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 2));
  expect(holds()).toBe(true);
}
