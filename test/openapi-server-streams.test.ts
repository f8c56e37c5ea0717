import { afterEach, describe, expect, it, vi } from "vitest";
import { CallError, fromWire, OperationRegistry, Type, toolError, withCursor } from "../src/index.ts";
import type { HttpHandlerOptions } from "../src/openapi/index.ts";
import { LiveStream } from "../src/openapi/server/live-stream.ts";
import { type OpenApi, type OpenEvents, readEvent, WAYS } from "./http-requests.ts";
import { query, sleep, stream, until } from "./make-operation.ts";

const open: OpenApi[] = [];
afterEach(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  await Promise.all(open.splice(0).map((api) => api.close()));
});

let pulled = 0;
let ended = 0;
let waiting: (() => void)[] = [];

function registry(): OperationRegistry {
  pulled = 0;
  ended = 0;
  waiting = [];
  return new OperationRegistry([
    stream(
      "tick.count",
      async function* ({ to }: { to: number }) {
        try {
          for (let n = 0; n < to; n += 1) {
            pulled += 1;
            yield withCursor({ n }, `c${n}`);
          }
        } finally {
          ended += 1;
        }
      },
      { inputSchema: Type.Object({ to: Type.Number() }) },
    ),
    stream("tick.odd", async function* () {
      yield { at: new Date(5), list: [1] };
      yield 5n;
      yield undefined;
      yield toolError({ a: 1 }, { code: "NO", message: "No." });
    }),
    stream("tick.slow", async function* () {
      try {
        yield 0;
        for (let n = 1; ; n += 1) {
          await new Promise<void>((resolve) => waiting.push(resolve));
          yield n;
        }
      } finally {
        ended += 1;
      }
    }),
    stream("tick.big", async function* () {
      for (;;) {
        pulled += 1;
        yield "x".repeat(100_000);
      }
    }),
    stream("fail.first", async function* () {
      if (pulled >= 0) throw new CallError("CONFLICT", "Not now.");
      yield 1;
    }),
    stream("fail.second", async function* () {
      yield 1;
      throw new CallError("CONFLICT", "Not now.", { details: { a: 1 } });
    }),
    stream(
      "closed.one",
      async function* () {
        yield 1;
      },
      { access: {} },
    ),
    query("plain.one", () => 1),
  ]);
}

async function nextEvent(events: OpenEvents): Promise<{ id: string; event: string; data: unknown }> {
  for (;;) {
    const block = await events.next();
    if (block === undefined) return { id: "", event: "end", data: undefined };
    if (block.includes("data:")) return readEvent(block);
  }
}

describe.each(WAYS)("subscriptions over %s", (_, openWay) => {
  const start = async (options?: HttpHandlerOptions): Promise<OpenApi> => {
    const api = await openWay(registry(), options);
    open.push(api);
    return api;
  };

  it("RE-28 RE-30 answers with events that have ids and cursors, and an end", async () => {
    const api = await start();
    const events = await api.events("/api/tick/count?to=2");
    expect(events.status).toBe(200);
    expect(events.headers).toMatchObject({
      "content-type": "text/event-stream",
      "cache-control": "no-store",
    });
    expect(await events.next()).toBe("retry: 1000");
    const [first, second, last] = [await nextEvent(events), await nextEvent(events), await nextEvent(events)];
    expect(first).toMatchObject({ event: "next", data: { data: { n: 0 }, cursor: "c0" } });
    expect(first.id).toMatch(/^[\w-]{24}:0$/);
    expect(second).toMatchObject({ event: "next", data: { data: { n: 1 }, cursor: "c1" } });
    expect(last).toMatchObject({ event: "done" });
    expect((await nextEvent(events)).event).toBe("end");
    expect(ended).toBe(1);
  });

  it("X-6 gives each value as JSON makes it and as it is, and yields that say no", async () => {
    const api = await start();
    const events = await api.events("/api/tick/odd", { method: "POST" });
    const first = (await nextEvent(events)).data as { data: unknown; wire: unknown };
    expect(first.data).toEqual({ at: "1970-01-01T00:00:00.005Z", list: [1] });
    expect(fromWire(first.wire)).toEqual({ at: new Date(5), list: [1] });
    const second = (await nextEvent(events)).data as { wire: unknown };
    expect([Object.keys(second), fromWire(second.wire)]).toEqual([["wire"], 5n]);
    expect(fromWire(((await nextEvent(events)).data as { wire: unknown }).wire)).toBeUndefined();
    expect((await nextEvent(events)).data).toEqual({
      data: { a: 1 },
      isError: true,
      code: "NO",
      message: "No.",
    });
  });

  it("X-5 answers with a problem where nothing came before it, and with an event after", async () => {
    const api = await start();
    const got = await api.send("/api/fail/first", { method: "POST" });
    expect([got.status, got.json]).toMatchObject([409, { code: "CONFLICT", detail: "Not now." }]);
    expect((await api.send("/api/closed/one", { method: "POST" })).status).toBe(401);
    expect((await api.send("/api/tick/count?to=x")).status).toBe(400);
    const events = await api.events("/api/fail/second", { method: "POST" });
    expect((await nextEvent(events)).event).toBe("next");
    expect(await nextEvent(events)).toMatchObject({
      event: "error",
      data: { code: "CONFLICT", details: { a: 1 }, waybill: { outcome: "call-error" } },
    });
    expect((await nextEvent(events)).event).toBe("end");
  });

  it("RE-30 also starts by the generic call, by no method but the documented one, and for nobody who takes no events", async () => {
    const api = await start();
    const events = await api.events("/call", { body: { operation: "tick.count", input: { to: 1 } } });
    expect(await nextEvent(events)).toMatchObject({ event: "next", data: { data: { n: 0 } } });
    const posted = await api.send("/api/tick/count", { body: { to: 1 } });
    expect([posted.status, posted.headers["allow"]]).toEqual([405, "GET, HEAD, OPTIONS"]);
    expect((await api.send("/api/tick/count?to=1", { headers: { accept: "application/json" } })).status).toBe(
      406,
    );
    const head = await api.send("/api/tick/count?to=1", { method: "HEAD" });
    expect([head.status, head.headers["content-type"]]).toEqual([200, "text/event-stream"]);
  });

  it("RE-28 goes on after the last event a client saw, by header or query", async () => {
    const api = await start();
    const events = await api.events("/api/tick/count?to=5");
    await nextEvent(events);
    const { id } = await nextEvent(events);
    await events.leave();
    const again = await api.events("/api/tick/count?to=5", { headers: { "last-event-id": id } });
    expect(await nextEvent(again)).toMatchObject({ data: { data: { n: 2 } } });
    const { id: third } = await nextEvent(again);
    await again.leave();
    const last = await api.events(`/api/tick/count?to=5&waybill-last-event-id=${encodeURIComponent(third)}`);
    expect(await nextEvent(last)).toMatchObject({ data: { data: { n: 4 } } });
    const done = await nextEvent(last);
    expect(done.event).toBe("done");
    const over = await api.send("/api/tick/count?to=5", { headers: { "last-event-id": done.id } });
    expect([over.status, pulled]).toEqual([204, 5]);
  });

  it("RE-28 waits for its client, and ends when that does not come", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const api = await start({ limits: { resumeMs: 400 } });
    const events = await api.events("/api/tick/slow", { method: "POST" });
    const { id } = await nextEvent(events);
    await events.leave();
    const again = await api.events("/api/tick/slow", { method: "POST", headers: { "last-event-id": id } });
    const next = nextEvent(again);
    await vi.advanceTimersByTimeAsync(500);
    expect(ended).toBe(0);
    for (const go of waiting) go();
    expect(await next).toMatchObject({ data: { data: 1 } });
    await again.leave();
    while (ended === 0) {
      for (const go of waiting.splice(0)) go();
      await vi.advanceTimersByTimeAsync(400);
    }
    const late = await api.send("/api/tick/slow", { method: "POST", headers: { "last-event-id": id } });
    expect([late.status, ended]).toEqual([410, 1]);
  });

  it("RE-28 keeps so many events, and says when that was too few", async () => {
    const api = await start({ limits: { streamEvents: 2 } });
    const events = await api.events("/api/tick/slow", { method: "POST" });
    const seen = [await nextEvent(events)];
    for (let n = 1; n < 4; n += 1) {
      const next = nextEvent(events);
      await until(() => waiting.length > 0);
      for (const go of waiting.splice(0)) go();
      seen.push(await next);
    }
    await events.leave();
    const resume = (at: number) =>
      api.events("/api/tick/slow", { method: "POST", headers: { "last-event-id": seen[at]?.id ?? "" } });
    expect((await resume(0)).status).toBe(409);
    const near = await resume(1);
    expect([(await nextEvent(near)).data, (await nextEvent(near)).data]).toEqual([{ data: 2 }, { data: 3 }]);
  });

  it("RE-28 keeps so many bytes of events", async () => {
    const sizes = [] as number[];
    for (const streamBytes of [100, 100_000]) {
      const api = await start({ limits: { streamBytes } });
      const events = await api.events("/api/tick/count?to=9");
      const { id } = await nextEvent(events);
      for (let n = 0; n < 3; n += 1) await nextEvent(events);
      await events.leave();
      sizes.push((await api.events("/api/tick/count?to=9", { headers: { "last-event-id": id } })).status);
    }
    expect(sizes).toEqual([409, 200]);
  });

  it("RE-29 gives a subscription to whoever started it, and nobody else", async () => {
    const api = await start({
      authenticate: (request) => ({ subject: request.headers.get("x-who") ?? "none" }),
    });
    const events = await api.events("/api/tick/count?to=9", { headers: { "x-who": "ann" } });
    const { id } = await nextEvent(events);
    const as = (who: string, path = "/api/tick/count?to=9", lastEvent = id) =>
      api.events(path, {
        headers: { "x-who": who, "last-event-id": lastEvent },
        ...(path.includes("slow") && { method: "POST" }),
      });
    expect((await as("bob")).status).toBe(410);
    expect((await as("ann", "/api/tick/slow")).status).toBe(410);
    expect((await as("ann", undefined, "nonsense")).status).toBe(410);
    expect((await as("ann", undefined, `${"a".repeat(24)}:0`)).status).toBe(410);
    expect((await as("ann")).status).toBe(200);
  });

  it("RE-28 gives the place of a reader to the one that comes after it", async () => {
    const api = await start();
    const events = await api.events("/api/tick/slow", { method: "POST" });
    const { id } = await nextEvent(events);
    const end = nextEvent(events);
    const again = await api.events("/api/tick/slow", { method: "POST", headers: { "last-event-id": id } });
    expect((await end).event).toBe("end");
    for (const go of waiting) go();
    expect(await nextEvent(again)).toMatchObject({ data: { data: 1 } });
  });

  it("RE-28 asks the handler for no more than the client reads", async () => {
    const api = await start();
    const events = await api.events("/api/tick/big", { method: "POST" });
    await nextEvent(events);
    let before = 0;
    while (before < pulled && pulled < 200) {
      before = pulled;
      await sleep(200);
    }
    expect(pulled).toBeLessThan(200);
    for (let n = 0; n < 100; n += 1) await nextEvent(events);
    expect(pulled).toBeGreaterThan(before);
    await events.leave();
  });

  it("RE-28 opens so many subscriptions, of which one that is over gives way", async () => {
    const api = await start({ limits: { streams: 2 } });
    const slow = () => api.events("/api/tick/slow", { method: "POST" });
    const first = await slow();
    expect([first.status, (await slow()).status]).toEqual([200, 200]);
    const refused = await api.send("/api/tick/slow", { method: "POST" });
    expect([refused.status, refused.json]).toMatchObject([503, { code: "RESOURCE_EXHAUSTED" }]);
    const other = await start({ limits: { streams: 1 } });
    for (let n = 0; n < 2; n += 1) {
      const events = await other.events("/api/tick/count?to=1");
      expect([(await nextEvent(events)).event, (await nextEvent(events)).event]).toEqual(["next", "done"]);
    }
  });

  it("RE-28 lets one whose reader has left give way to a new one, the longest left first", async () => {
    const { mock } = vi.spyOn(LiveStream.prototype, "leave");
    const countLeft = () =>
      new Set((mock.contexts as LiveStream[]).filter(({ leftAt }) => leftAt !== undefined)).size;
    const api = await start({ limits: { streams: 2 } });
    const slow = () => api.events("/api/tick/slow", { method: "POST" });
    const [first, second] = [await slow(), await slow()];
    const ids = [(await nextEvent(first)).id, (await nextEvent(second)).id];
    await second.leave();
    await until(() => countLeft() === 1);
    await first.leave();
    await until(() => countLeft() === 2);
    expect((await slow()).status).toBe(200);
    const resume = async (id = "") =>
      (await api.events("/api/tick/slow", { method: "POST", headers: { "last-event-id": id } })).status;
    expect([await resume(ids[1]), await resume(ids[0])]).toEqual([410, 200]);
    expect((await api.send("/api/tick/slow", { method: "POST" })).status).toBe(503);
  });

  it("RE-29 gives a subscription to nobody whose rights have changed", async () => {
    const api = await start({
      authenticate: (request) => ({ subject: "ann", scopes: [request.headers.get("x-scope") ?? "all"] }),
    });
    const events = await api.events("/api/tick/count?to=9");
    const { id } = await nextEvent(events);
    const resume = async (headers: Record<string, string>) =>
      (await api.events("/api/tick/count?to=9", { headers: { "last-event-id": id, ...headers } })).status;
    expect([await resume({ "x-scope": "less" }), await resume({})]).toEqual([410, 200]);
  });

  it("RE-30 ends subscriptions with a reason when it closes", async () => {
    const api = await start();
    const events = await api.events("/api/tick/slow", { method: "POST" });
    await nextEvent(events);
    const last = nextEvent(events);
    await api.close({ timeoutMs: 60_000 });
    expect(await last).toMatchObject({ event: "error", data: { code: "UNAVAILABLE" } });
    expect((await nextEvent(events)).event).toBe("end");
  });
});
