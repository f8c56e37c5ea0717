import { afterEach, describe, expect, it, vi } from "vitest";
import {
  call,
  ENDPOINT,
  type HeaderFields,
  INITIALIZE,
  initialize,
  post,
  until,
} from "../../../../test/mcp-requests.ts";
import { createSmallMcpServer } from "../../../../test/small-mcp-server.ts";
import { createMcpHandler, type McpHandler } from "./mcp-endpoint.ts";

const open: McpHandler[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const handler of open.splice(0)) await handler.close({ timeoutMs: 0 });
});

async function start(options?: Parameters<typeof createMcpHandler>[1]) {
  const small = createSmallMcpServer();
  const handler = createMcpHandler(small, options);
  open.push(handler);
  const session: HeaderFields = {
    "mcp-session-id": await initialize(handler),
    "mcp-protocol-version": "2025-11-25",
  };
  const slow = (id: number, ms: number) => {
    const message = call(id, "slow", { ms });
    const params = { ...message.params, _meta: { progressToken: id } };
    return handler.fetch(post({ ...message, params }, session));
  };
  const resume = (last: string) =>
    handler.fetch(
      new Request(ENDPOINT, {
        headers: { ...session, accept: "text/event-stream", "last-event-id": last },
      }),
    );
  return { small, handler, session, slow, resume };
}

/** Reads one piece of a stream, and leaves. */
async function firstOf(response: Response): Promise<string> {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return new TextDecoder().decode(value);
}
const idOf = (text: string): string => /^id: (.*)$/m.exec(text)?.[1] ?? "";

describe("a stream that broke", () => {
  it("Mcp: begins with an event to come back to, and says when", async () => {
    const { slow } = await start();
    expect(await firstOf(await slow(2, 20_000))).toMatch(/^id: \d+:[\w-]+\nretry: 1000\ndata: \n\n/);
  });

  it("Mcp: begins so for a client that named its revision only once", async () => {
    const { handler, small } = await start();
    const params = { ...INITIALIZE.params, protocolVersion: "2025-11-25" };
    const opened = await handler.fetch(post({ ...INITIALIZE, params }));
    await opened.text();
    const session = { "mcp-session-id": opened.headers.get("mcp-session-id") ?? "" };
    const answer = await handler.fetch(post(call(2, "slow", { ms: 20_000 }), session));
    await until(() => small.running === 1);
    small.finish();
    expect(await answer.text()).toMatch(/^id: \d+:[\w-]+\nretry: 1000\ndata: \n\n/);
  });

  it("Mcp: gives the rest to a client that comes back while the call runs", async () => {
    const { slow, resume, small } = await start();
    const id = idOf(await firstOf(await slow(2, 20_000)));
    const rest = await resume(id);
    expect(small.running).toBe(1);
    small.finish();
    const text = await rest.text();
    expect(text).toContain("notifications/progress");
    expect(text).toContain('"text":"done"');
    expect(small.aborted).toBe(0);
  });

  it("Mcp: gives the rest to a client that comes back when the call has ended", async () => {
    const { slow, resume, small } = await start();
    const id = idOf(await firstOf(await slow(2, 20_000)));
    small.finish();
    await until(() => small.running === 0);
    const text = await (await resume(id)).text();
    expect(text).toContain('"text":"done"');
    expect(await (await resume(idOf(text.slice(text.lastIndexOf("id:"))))).text()).toBe("");
  });

  it("Mcp: takes over from a connection that nobody has seen breaking", async () => {
    const { slow, resume, small } = await start();
    const first = await slow(2, 20_000);
    const reader = (first.body as ReadableStream<Uint8Array>).getReader();
    const id = idOf(new TextDecoder().decode((await reader.read()).value));
    const rest = await resume(id);
    small.finish();
    expect(await rest.text()).toContain('"text":"done"');
  });

  it("Mcp: gives the whole of an answer that was given at once and cut on its way, if it is too large for one write", async () => {
    const { handler, session, resume } = await start();
    const big = async (id: number, size: number) => handler.fetch(post(call(id, "big", { size }), session));
    const bare = (await (await big(2, 0)).text()).length;
    const whole = await big(3, 16_384 - bare);
    expect(whole.headers.get("content-type")).toBe("application/json");
    expect(await whole.text()).toHaveLength(16_384);
    for (const [id, size] of [
      [4, 16_385 - bare],
      [5, 1_000_000],
    ] as const) {
      const last = idOf(await firstOf(await big(id, size)));
      expect(await (await resume(last)).text()).toContain(`"${"x".repeat(size)}"`);
    }
  });

  it("Mcp: refuses an id that is none of the session's", async () => {
    const { handler, slow, resume } = await start();
    expect((await resume("nonsense")).status).toBe(400);
    expect((await resume("0:_GET_stream")).status).toBe(400);
    const id = idOf(await firstOf(await slow(2, 20_000)));
    expect((await resume(`0:${id.slice(2).replace(/.$/, "x")}`)).status).toBe(400);
    const other = { "mcp-session-id": await initialize(handler), accept: "text/event-stream" };
    const stolen = await handler.fetch(new Request(ENDPOINT, { headers: { ...other, "last-event-id": id } }));
    expect(stolen.status).toBe(400);
    expect((await resume(id)).status).toBe(200);
  });

  it("Mcp: lets a client read eight streams at a time, and take any of them over", async () => {
    const { slow, resume } = await start();
    const ids: string[] = [];
    for (let n = 2; n < 11; n++) ids.push(idOf(await firstOf(await slow(n, 20_000))));
    const readers = await Promise.all(ids.slice(0, 8).map(resume));
    expect(readers.map(({ status }) => status)).toEqual(Array(8).fill(200));
    const refused = await resume(ids[8] ?? "");
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
    expect((await resume(ids[0] ?? "")).status).toBe(200);
    expect((await resume(ids[8] ?? "")).status).toBe(429);
    await readers[1]?.body?.cancel();
    expect((await resume(ids[8] ?? "")).status).toBe(200);
  });

  it("Mcp: shares out what is kept among all sessions, and gives it back when one ends", async () => {
    const { handler, session, resume } = await start({ limits: { allEventBytes: 50_000 } });
    const big = async (headers: HeaderFields, id: number) =>
      idOf(await firstOf(await handler.fetch(post(call(id, "big", { size: 40_000 }), headers))));
    const kept = async (id: string) => (await (await resume(id)).text()).length > 40_000;
    const first = await big(session, 2);
    expect(await kept(first)).toBe(true);
    const other = { ...session, "mcp-session-id": await initialize(handler) };
    await big(other, 2);
    expect(await kept(first)).toBe(false);
    await handler.fetch(new Request(ENDPOINT, { method: "DELETE", headers: other }));
    expect(await kept(await big(session, 3))).toBe(true);
  });

  it("Mcp: gives what was missed of the stream that stays open", async () => {
    const { small, handler, session, resume } = await start();
    const stream = await handler.fetch(
      new Request(ENDPOINT, { headers: { ...session, accept: "text/event-stream" } }),
    );
    small.change();
    const id = idOf(await firstOf(stream));
    expect(id).toBe("1:_GET_stream");
    small.change();
    expect(await firstOf(await resume(id))).toContain("id: 2:_GET_stream");
  });

  it("Mcp: keeps nothing of what was answered at once", async () => {
    const { handler, session } = await start();
    const answer = await handler.fetch(post(call(2, "echo", { text: "x" }), session));
    expect(answer.headers.get("content-type")).toBe("application/json");
    expect(await answer.json()).toMatchObject({ id: 2, result: { content: [{ text: "x" }] } });
  });

  it("Mcp: ends calls whose client has left when the session has been idle for long enough", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    const { slow, small } = await start({ limits: { sessionIdleMs: 100 } });
    await firstOf(await slow(2, 20_000));
    await vi.advanceTimersByTimeAsync(99);
    expect([small.running, small.aborted]).toEqual([1, 0]);
    await vi.advanceTimersByTimeAsync(26);
    expect(small.aborted).toBe(1);
  });

  it("Mcp: makes room for others of sessions in which only such calls run", async () => {
    const { handler, slow, small } = await start({ limits: { sessions: 1 } });
    await firstOf(await slow(2, 20_000));
    await initialize(handler);
    await until(() => small.aborted === 1);
  });
});
