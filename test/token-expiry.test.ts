import { SignJWT } from "jose";
import { afterEach, describe, expect, it } from "vitest";
import { OperationRegistry, Type } from "../src/index.ts";
import { serveMcpHttp, toMcpServer } from "../src/mcp/index.ts";
import { serveHttp } from "../src/openapi/index.ts";
import { query, stream } from "./make-operation.ts";

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

const ACCEPT = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

let aborted = 0;
const inputSchema = Type.Object({});
const registry = () =>
  new OperationRegistry([
    query("small.read", () => "small", { inputSchema }),
    stream(
      "quiet.watch",
      async function* (_input, { signal }) {
        yield 1;
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        aborted += 1;
      },
      { inputSchema },
    ),
  ]);

/** Whoever asks is known for a while, unless they say that it is for ever; a renewed token is another while. */
const authenticate = (request: Request) => ({
  subject: "ann",
  ...(request.headers.get("x-for-ever") === null && { expiresAt: Date.now() + 400 }),
});
const FOR_EVER = { "x-for-ever": "yes" };

/** Opens a stream that is to stay, and reads it to its end. */
async function readToEnd(url: string, init: RequestInit = {}): Promise<string> {
  const response = await fetch(url, init);
  expect(response.status).toBe(200);
  return await response.text();
}

/** Opens a stream, and says whether it has ended. */
async function follow(url: string, init: RequestInit = {}): Promise<() => boolean> {
  const leaving = new AbortController();
  open.push(() => leaving.abort());
  const response = await fetch(url, { ...init, signal: leaving.signal });
  expect(response.status).toBe(200);
  let isOver = false;
  response.text().then(
    () => {
      isOver = true;
    },
    () => {},
  );
  return () => isOver;
}

describe("a stream that was opened with a token", () => {
  it("RE-30 ends when it expires, and says so: subscriptions over HTTP", async () => {
    aborted = 0;
    const server = await serveHttp(registry(), { authenticate });
    open.push(() => server.close({ timeoutMs: 0 }));
    const url = `${server.url}/api/quiet/watch`;
    const isOver = await follow(url, { headers: FOR_EVER });
    const text = await readToEnd(url);
    expect(text).toContain("event: error");
    expect(text).toContain("UNAUTHENTICATED");
    expect(text).toContain("has expired");
    expect([aborted, isOver()]).toEqual([1, false]);
  });

  it("RE-30 ends when the token expires that it was resumed with", async () => {
    aborted = 0;
    const server = await serveHttp(registry(), { authenticate });
    open.push(() => server.close({ timeoutMs: 0 }));
    const url = `${server.url}/api/quiet/watch`;
    const first = await fetch(url, { headers: FOR_EVER });
    const reader = first.body?.getReader();
    let text = "";
    for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) {
      text += new TextDecoder().decode(read.value);
      if (/^id: .+$/m.test(text)) break;
    }
    await reader?.cancel();
    const last = /^id: (.+)$/m.exec(text)?.[1] ?? "";
    expect(await readToEnd(url, { headers: { "last-event-id": last } })).toContain("has expired");
    expect(aborted).toBe(1);
  });

  it("RE-30 ends when it expires: the stream of a session, which goes on with a new token", async () => {
    const served = await serveMcpHttp(toMcpServer(registry()), { authenticate });
    open.push(() => served.close({ timeoutMs: 0 }));
    const clientInfo = { name: "t", version: "1" };
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
    const first = await fetch(served.url, {
      method: "POST",
      headers: ACCEPT,
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }),
    });
    await first.text();
    const session = {
      accept: "text/event-stream",
      "mcp-session-id": first.headers.get("mcp-session-id") ?? "",
    };
    expect(await readToEnd(served.url, { headers: session })).toBe("");
    const isOver = await follow(served.url, { headers: { ...session, ...FOR_EVER } });
    expect(isOver()).toBe(false);
  });

  it("RE-30 ends when it expires, as complete: subscriptions/listen", async () => {
    const served = await serveMcpHttp(toMcpServer(registry()), { authenticate });
    open.push(() => served.close({ timeoutMs: 0 }));
    const params = { notifications: { toolsListChanged: true }, _meta: META };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 7, method: "subscriptions/listen", params });
    const headers = { ...ACCEPT, "mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen" };
    const isOver = await follow(served.url, { method: "POST", body, headers: { ...headers, ...FOR_EVER } });
    const text = await readToEnd(served.url, { method: "POST", body, headers });
    expect(text).toContain("notifications/subscriptions/acknowledged");
    expect(text).toMatch(/"id":7,"result":\{"resultType":"complete"/);
    expect(isOver()).toBe(false);
  });

  it("RE-30 ends with the tolerance of a signed token, and not before", async () => {
    const keys = new Uint8Array(32).fill(7);
    // It has expired already, and is taken because clocks may differ.
    const exp = Math.floor(Date.now() / 1_000) - 2;
    const claims = new SignJWT({ sub: "ann", aud: "urn:here", exp });
    const token = await claims.setProtectedHeader({ alg: "HS256" }).sign(keys);
    const auth = { bearer: { audience: "urn:here", keys, clockToleranceMs: 6_000 } };
    const server = await serveHttp(registry(), { auth });
    open.push(() => server.close({ timeoutMs: 0 }));
    const headers = { authorization: `Bearer ${token}` };
    expect(await readToEnd(`${server.url}/api/quiet/watch`, { headers })).toContain("has expired");
    expect(Date.now()).toBeGreaterThanOrEqual(exp * 1_000 + 6_000);
    expect((await fetch(`${server.url}/api/small/read`, { headers })).status).toBe(401);
  });
});
