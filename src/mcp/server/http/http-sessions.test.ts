import { afterEach, describe, expect, it, vi } from "vitest";
import {
  call,
  ENDPOINT,
  errorOf,
  type HeaderFields,
  INITIALIZE,
  initialize,
  post,
  until,
} from "../../../../test/mcp-requests.ts";
import { createSmallMcpServer } from "../../../../test/small-mcp-server.ts";
import { createMcpHandler, type McpHandler } from "./mcp-endpoint.ts";
import type { McpHandlerOptions } from "./serve-mcp-http.ts";

const open: McpHandler[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const handler of open.splice(0)) await handler.close({ timeoutMs: 0 });
});

function start(options?: McpHandlerOptions) {
  const small = createSmallMcpServer();
  const handler = createMcpHandler(small, options);
  open.push(handler);
  return { small, handler };
}

const cancelled = (requestId: number) => ({
  jsonrpc: "2.0",
  method: "notifications/cancelled",
  params: { requestId },
});

describe("HttpSessions", () => {
  it("Mcp: needs a session for everything but initialize", async () => {
    const { handler } = start();
    expect(await errorOf(await handler.fetch(post(call(3, "echo"))))).toMatchObject({ status: 400, id: 3 });
    expect((await handler.fetch(new Request(ENDPOINT))).status).toBe(400);
    expect((await handler.fetch(new Request(ENDPOINT, { method: "DELETE" }))).status).toBe(400);
    const unknown = { "mcp-session-id": "00000000-0000-0000-0000-000000000000" };
    const answer = await errorOf(await handler.fetch(post(call(3, "echo"), unknown)));
    expect(answer).toEqual({ status: 404, code: -32_001, id: 3 });
  });

  it("Mcp: ends a session when told to", async () => {
    const { handler } = start();
    const session = { "mcp-session-id": await initialize(handler) };
    expect(await (await handler.fetch(post(call(2, "echo", { text: "x" }), session))).text()).toContain(
      '"x"',
    );
    expect((await handler.fetch(new Request(ENDPOINT, { method: "DELETE", headers: session }))).status).toBe(
      200,
    );
    expect((await handler.fetch(post(call(3, "echo"), session))).status).toBe(404);
  });

  it("X-4 keeps a session for whoever opened it", async () => {
    const { handler } = start({
      authenticate: (request) => {
        const subject = request.headers.get("x-user");
        return subject === null ? undefined : { subject };
      },
    });
    const session = { "mcp-session-id": await initialize(handler, { "x-user": "ann" }) };
    const status = async (headers: HeaderFields, method = "POST") => {
      const body = method === "POST" ? post(call(2, "whoami"), { ...session, ...headers }) : undefined;
      const request = body ?? new Request(ENDPOINT, { method, headers: { ...session, ...headers } });
      return (await handler.fetch(request)).status;
    };
    expect(await status({ "x-user": "bob" })).toBe(404);
    expect(await status({})).toBe(404);
    expect(await status({ "x-user": "bob" }, "GET")).toBe(404);
    expect(await status({ "x-user": "bob" }, "DELETE")).toBe(404);
    expect(await status({ "x-user": "ann" })).toBe(200);
    const anonymous = { "mcp-session-id": await initialize(handler) };
    expect((await handler.fetch(post(call(2, "whoami"), { ...anonymous, "x-user": "ann" }))).status).toBe(
      404,
    );
  });

  it("Mcp: makes room by ending what has been idle for longest, an owner's own first", async () => {
    const { handler } = start({
      limits: { sessions: 3 },
      authenticate: (request) => ({ subject: request.headers.get("x-user") ?? "flood" }),
    });
    const ann = { "x-user": "ann" };
    const anns = await initialize(handler, ann);
    const floods = [await initialize(handler), await initialize(handler), await initialize(handler)];
    const alive = async (id: string, headers: HeaderFields = {}) =>
      (await handler.fetch(post(call(2, "echo"), { "mcp-session-id": id, ...headers }))).status;
    expect(await alive(anns, ann)).toBe(200);
    expect(await Promise.all(floods.map((id) => alive(id)))).toEqual([404, 200, 200]);
  });

  it("Mcp: gives everybody a share: who holds all sessions open keeps nobody out, and cannot take theirs", async () => {
    const { handler } = start({
      limits: { sessions: 3 },
      authenticate: (request) => ({ subject: request.headers.get("x-user") ?? "flood" }),
    });
    const hold = (id: string) =>
      handler.fetch(
        new Request(ENDPOINT, { headers: { "mcp-session-id": id, accept: "text/event-stream" } }),
      );
    const floods = [await initialize(handler), await initialize(handler), await initialize(handler)];
    const streams = await Promise.all(floods.map(hold));
    const ann = { "x-user": "ann" };
    const anns = await initialize(handler, ann);
    expect((await handler.fetch(post(INITIALIZE))).status).toBe(503);
    const status = await handler.fetch(post(call(2, "echo"), { "mcp-session-id": anns, ...ann }));
    expect(status.status).toBe(200);
    await Promise.all(streams.map((stream) => stream.body?.cancel()));
  });

  it("Mcp: refuses a session too many when none is idle", async () => {
    const { handler } = start({ limits: { sessions: 2 } });
    const ids = [await initialize(handler), await initialize(handler)];
    const streams = ids.map((id) => {
      const headers = { "mcp-session-id": id, accept: "text/event-stream" };
      return handler.fetch(new Request(ENDPOINT, { headers }));
    });
    const [first] = await Promise.all(streams);
    const refused = await handler.fetch(post(INITIALIZE));
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "10"]);
    await first?.body?.cancel();
    await initialize(handler);
  });

  it("Mcp: forgets a session that has been idle for long enough, and none with a stream", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    const { handler } = start({ limits: { sessionIdleMs: 60 } });
    const [idle, held] = [await initialize(handler), await initialize(handler)];
    const stream = await handler.fetch(
      new Request(ENDPOINT, { headers: { "mcp-session-id": held, accept: "text/event-stream" } }),
    );
    await vi.advanceTimersByTimeAsync(250);
    const status = async (id: string) =>
      (await handler.fetch(post(call(2, "echo"), { "mcp-session-id": id }))).status;
    expect(await status(idle)).toBe(404);
    expect(await status(held)).toBe(200);
    await stream.body?.cancel();
  });

  it("Mcp: runs as many requests of a session as allowed, and no two under one id", async () => {
    const { handler, small } = start({ limits: { sessionRequests: 2 } });
    const session = { "mcp-session-id": await initialize(handler) };
    const slow = (id: number) => handler.fetch(post(call(id, "slow", { ms: 20_000 }), session));
    const first = await slow(2);
    await until(() => small.running === 1);
    expect((await slow(2)).status).toBe(400);
    const batch = [call(8, "echo"), call(8, "echo")];
    expect((await handler.fetch(post(batch, session))).status).toBe(400);
    await slow(3);
    const refused = await slow(4);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
    // Leaving is not cancelling: the call still runs, and still counts.
    await first.body?.cancel();
    expect((await slow(4)).status).toBe(429);
    await handler.fetch(post(cancelled(2), session));
    await until(() => small.aborted === 1);
    expect((await slow(4)).status).toBe(200);
  });

  it("Mcp: ends the stream of a request that was cancelled, and the call", async () => {
    const { handler, small } = start();
    const session = { "mcp-session-id": await initialize(handler) };
    const stream = await handler.fetch(post(call(2, "slow", { ms: 20_000 }), session));
    await until(() => small.running === 1);
    expect((await handler.fetch(post(cancelled(2), session))).status).toBe(202);
    expect(await stream.text()).toBe("");
    expect(small.aborted).toBe(1);
    const again = await handler.fetch(post(call(2, "echo", { text: "again" }), session));
    expect(await again.text()).toContain("again");
  });

  it("Mcp: stays as fast after a thousand cancelled requests", async () => {
    const { handler, small } = start();
    const session = { "mcp-session-id": await initialize(handler) };
    for (let id = 2; id < 1_002; id++) {
      const answer = handler.fetch(post(call(id, "slow", { ms: 20_000 }), session));
      await until(() => small.running === 1);
      await handler.fetch(post(cancelled(id), session));
      expect(await (await answer).text()).toBe("");
    }
    await until(() => small.aborted === small.running + small.aborted);
    expect(small.aborted).toBe(1_000);
    const text = await (await handler.fetch(post(call(5_000, "echo", { text: "x" }), session))).text();
    expect(text).toContain('"x"');
  });

  it("Mcp: refuses a client that accepts too little, and a revision nobody knows", async () => {
    const { handler } = start();
    expect((await handler.fetch(post(INITIALIZE, { accept: "application/json" }))).status).toBe(406);
    const session = { "mcp-session-id": await initialize(handler), "mcp-protocol-version": "1999-01-01" };
    expect((await handler.fetch(post(call(2, "echo"), session))).status).toBe(400);
  });
});
