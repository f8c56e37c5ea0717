import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import {
  call,
  ENDPOINT,
  type HeaderFields,
  INITIALIZE,
  initialize,
  post,
  until,
} from "../../../test/mcp-requests.ts";
import { createSmallMcpServer } from "../../../test/small-mcp-server.ts";
import { createMcpHandler, type McpHandler } from "./http-handler.ts";
import { isEventId, readEventBounds, SessionEvents } from "./http-session-events.ts";

const note = (n: number): JSONRPCMessage => ({ jsonrpc: "2.0", method: "n", params: { n } });
const BYTES = JSON.stringify(note(0)).length;

async function replay(events: SessionEvents, after: string): Promise<unknown[]> {
  const sent: unknown[] = [];
  await events.replayEventsAfter(after, { send: async (_, message) => void sent.push(message) });
  return sent;
}

describe("SessionEvents", () => {
  it("Mcp: gives back what went over one stream after an event, in order", async () => {
    const ops = fc.array(fc.constantFrom("a", "b"), { minLength: 1, maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(ops, fc.nat(), async (streams, pick) => {
        const events = new SessionEvents(readEventBounds({}));
        const ids: string[] = [];
        for (const [n, stream] of streams.entries()) ids.push(await events.storeEvent(stream, note(n)));
        const at = pick % streams.length;
        const rest = streams.flatMap((stream, n) => (stream === streams[at] && n > at ? [note(n)] : []));
        expect(await replay(events, ids[at] ?? "")).toEqual(rest);
      }),
    );
  });

  it("Mcp: keeps as many messages as allowed, and one more makes the oldest go", async () => {
    const events = new SessionEvents({ events: 3, eventBytes: 1_000_000 });
    const first = await events.storeEvent("a", {} as JSONRPCMessage);
    for (let n = 0; n < 3; n++) await events.storeEvent("a", note(n));
    expect(await replay(events, first)).toEqual([note(0), note(1), note(2)]);
    await events.storeEvent("a", note(3));
    expect(await replay(events, first)).toEqual([note(1), note(2), note(3)]);
  });

  it("Mcp: keeps as many bytes as allowed, and one too few makes the oldest go", async () => {
    for (const [eventBytes, kept] of [
      [2 * BYTES, 2],
      [2 * BYTES - 1, 1],
      [BYTES - 1, 0],
    ] as const) {
      const events = new SessionEvents({ events: 10, eventBytes });
      await events.storeEvent("a", note(0));
      await events.storeEvent("a", note(1));
      expect(events.size).toBe(kept);
    }
  });

  it("Mcp: keeps a message as it was sent, whatever becomes of it", async () => {
    const events = new SessionEvents(readEventBounds({}));
    const params = { n: 1 };
    const id = await events.storeEvent("a", {} as JSONRPCMessage);
    await events.storeEvent("a", { jsonrpc: "2.0", method: "n", params });
    params.n = 2;
    expect(await replay(events, id)).toEqual([note(1)]);
  });

  it("Mcp: refuses limits that are none, and knows ids from anything else", () => {
    for (const bad of [{ events: 0 }, { eventBytes: 1.5 }, { events: Number.NaN }]) {
      expect(() => readEventBounds(bad)).toThrow(TypeError);
    }
    expect(isEventId("1:_GET_stream")).toBe(true);
    for (const text of ["", "1", ":a", "x:a", "1:", "1:a b", `${"9".repeat(16)}:a`, `1:${"a".repeat(65)}`]) {
      expect(isEventId(text)).toBe(false);
    }
  });
});

const open: McpHandler[] = [];
afterEach(async () => {
  for (const handler of open.splice(0)) await handler.close();
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
    expect(await firstOf(await slow(2, 20))).toMatch(/^id: \d+:[\w-]+\nretry: 1000\ndata: \n\n/);
  });

  it("Mcp: begins so for a client that named its revision only once", async () => {
    const { handler } = await start();
    const params = { ...INITIALIZE.params, protocolVersion: "2025-11-25" };
    const opened = await handler.fetch(post({ ...INITIALIZE, params }));
    await opened.text();
    const session = { "mcp-session-id": opened.headers.get("mcp-session-id") ?? "" };
    const answer = await handler.fetch(post(call(2, "slow", { ms: 20 }), session));
    expect(await answer.text()).toMatch(/^id: \d+:[\w-]+\nretry: 1000\ndata: \n\n/);
  });

  it("Mcp: gives the rest to a client that comes back while the call runs", async () => {
    const { slow, resume, small } = await start();
    const id = idOf(await firstOf(await slow(2, 150)));
    const text = await (await resume(id)).text();
    expect(text).toContain("notifications/progress");
    expect(text).toContain('"text":"done"');
    expect(small.aborted).toBe(0);
  });

  it("Mcp: gives the rest to a client that comes back when the call has ended", async () => {
    const { slow, resume, small } = await start();
    const id = idOf(await firstOf(await slow(2, 20)));
    await until(() => small.running === 0);
    const text = await (await resume(id)).text();
    expect(text).toContain('"text":"done"');
    expect(await (await resume(idOf(text.slice(text.lastIndexOf("id:"))))).text()).toBe("");
  });

  it("Mcp: takes over from a connection that nobody has seen breaking", async () => {
    const { slow, resume } = await start();
    const first = await slow(2, 150);
    const reader = (first.body as ReadableStream<Uint8Array>).getReader();
    const id = idOf(new TextDecoder().decode((await reader.read()).value));
    expect(await (await resume(id)).text()).toContain('"text":"done"');
  });

  it("Mcp: gives nothing for an id of nobody's, and refuses what is none", async () => {
    const { resume } = await start();
    expect(await (await resume("1:nobody")).text()).toBe("");
    expect((await resume("nonsense")).status).toBe(400);
  });

  it("Mcp: gives what was missed of the stream that stays open", async () => {
    const { small, handler, session, resume } = await start();
    small.emit({ kind: "tools_list_changed" });
    const stream = await handler.fetch(
      new Request(ENDPOINT, { headers: { ...session, accept: "text/event-stream" } }),
    );
    small.emit({ kind: "tools_list_changed" });
    const id = idOf(await firstOf(stream));
    expect(id).toBe("1:_GET_stream");
    small.emit({ kind: "tools_list_changed" });
    await new Promise((resolve) => setImmediate(resolve));
    expect(await firstOf(await resume(id))).toContain("id: 2:_GET_stream");
  });

  it("Mcp: keeps nothing of what was answered at once", async () => {
    const { handler, session } = await start();
    const text = await (await handler.fetch(post(call(2, "echo", { text: "x" }), session))).text();
    expect(text.match(/^id: /gm)).toHaveLength(1);
  });

  it("Mcp: ends calls whose client has left when the session has been idle for long enough", async () => {
    const { slow, small } = await start({ sessionIdleMs: 100 });
    await firstOf(await slow(2, 20_000));
    await new Promise((resolve) => setTimeout(resolve, 40));
    expect([small.running, small.aborted]).toEqual([1, 0]);
    await until(() => small.aborted === 1);
  });

  it("Mcp: makes room for others of sessions in which only such calls run", async () => {
    const { handler, slow, small } = await start({ sessions: 1 });
    await firstOf(await slow(2, 20_000));
    await initialize(handler);
    await until(() => small.aborted === 1);
  });
});
