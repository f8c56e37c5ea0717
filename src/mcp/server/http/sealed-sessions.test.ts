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
import { OperationRegistry } from "../../../core/registry/registry.ts";
import { SealingKeys } from "../sealing-keys.ts";
import { createMcpEndpoint, createMcpHandler, type McpHandler } from "./mcp-endpoint.ts";
import { SealedSessions } from "./sealed-sessions.ts";
import type { McpHandlerOptions } from "./serve-mcp-http.ts";
import { MemoryEventLog } from "./session-event-log.ts";

const KEY = "the-key-of-all-replicas-00000000";
const OTHER_KEY = "another-key-of-all-replicas-0000";
const open: McpHandler[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const handler of open.splice(0)) await handler.close({ timeoutMs: 0 });
});

/** A replica that takes `x-user` for the caller. */
function start(sessionKey: string | readonly string[] | null = KEY, options: McpHandlerOptions = {}) {
  const small = createSmallMcpServer({ sessionKey: sessionKey ?? undefined });
  const authenticate = (request: Request) => {
    const subject = request.headers.get("x-user");
    return subject === null ? undefined : { subject };
  };
  const handler = createMcpHandler(small, { authenticate, ...options });
  open.push(handler);
  const send = (id: string, body: object, headers: HeaderFields = {}) =>
    handler.fetch(post(body, { "mcp-session-id": id, ...headers }));
  const status = async (id: string, headers: HeaderFields = {}, method = "POST") => {
    const asked = { "mcp-session-id": id, accept: "application/json, text/event-stream", ...headers };
    const request =
      method === "POST" ? post(call(2, "echo"), asked) : new Request(ENDPOINT, { method, headers: asked });
    const response = await handler.fetch(request);
    await response.body?.cancel();
    return response.status;
  };
  return { small, handler, send, status };
}

const FIRST_ONLY = { ...INITIALIZE, params: { ...INITIALIZE.params, capabilities: { elicitation: {} } } };
async function openWith(handler: McpHandler, message: object): Promise<string> {
  const response = await handler.fetch(post(message));
  await response.text();
  return response.headers.get("mcp-session-id") ?? "";
}

describe("a session of a sealed id", () => {
  it("Mcp: is served by every replica with the key, in its revision, without a word between them", async () => {
    const [one, two] = [start(), start()];
    const id = await initialize(one.handler);
    expect(id.length).toBeLessThan(400);
    const answer = await two.send(id, call(2, "echo", { text: "there" }));
    expect(await answer.text()).toContain("there");
    const initialized = { jsonrpc: "2.0", method: "notifications/initialized" };
    expect((await two.send(id, initialized)).status).toBe(202);
    const again = await two.send(id, { ...INITIALIZE, id: 9 });
    expect(again.headers.get("mcp-session-id")).not.toBe(id);
    expect(await one.status(id)).toBe(200);
    expect(await two.status(id, { "mcp-protocol-version": "1999-01-01" })).toBe(400);
  });

  it("Mcp: says nothing that can be read", async () => {
    const id = await openWith(start().handler, {
      ...INITIALIZE,
      params: { ...INITIALIZE.params, clientInfo: { name: "name-of-client", version: "1" } },
    });
    expect(Buffer.from(id, "base64url").toString("latin1")).not.toContain("name-of-client");
  });

  it("Mcp: tells what its client can be asked, which answers where it was asked and nowhere else", async () => {
    const [one, two] = [start(), start()];
    const id = await openWith(one.handler, FIRST_ONLY);
    const asking = await two.send(id, call(2, "ask"));
    const reader = (asking.body as ReadableStream<Uint8Array>).getReader();
    const text = new TextDecoder().decode((await reader.read()).value);
    const question = JSON.parse(/^data: (\{.*)$/m.exec(text)?.[1] ?? "{}") as { id: number; method: string };
    expect(question.method).toBe("elicitation/create");
    const given = {
      jsonrpc: "2.0",
      id: question.id,
      result: { action: "accept", content: { colour: "blue" } },
    };
    const wrong = await one.send(id, given);
    expect(wrong.headers.get("retry-after")).toBe("1");
    expect(await errorOf(wrong)).toEqual({ status: 503, code: -32_003, id: null });
    expect((await two.send(id, given)).status).toBe(202);
    expect(new TextDecoder().decode((await reader.read()).value)).toContain("blue");
    // What was answered already is not somebody else's.
    expect((await two.send(id, given)).status).toBe(202);
  });

  it("X-4 is that of its caller at every replica: another caller hears what any unknown id hears", async () => {
    const [one, two] = [start(), start()];
    const ann = { "x-user": "ann" };
    const id = await initialize(one.handler, ann);
    for (const { status, send } of [one, two]) {
      for (const headers of [{ "x-user": "bob" }, {}]) {
        for (const method of ["POST", "GET", "DELETE"]) expect(await status(id, headers, method)).toBe(404);
        const said = await (await send(id, call(2, "echo"), headers)).text();
        expect(said).toBe(await (await send("nonsense", call(2, "echo"), headers)).text());
      }
      expect(await status(id, ann)).toBe(200);
    }
    const anonymous = await initialize(one.handler);
    expect([await two.status(anonymous, ann), await two.status(anonymous)]).toEqual([404, 200]);
  });

  it.each<[string, (id: string) => string]>([
    ["changed", (id) => id.slice(0, 40) + (id[40] === "A" ? "B" : "A") + id.slice(41)],
    ["cut", (id) => id.slice(0, -4)],
    ["too long", (id) => id + "A".repeat(10_000)],
    ["of another version", (id) => Buffer.from(id, "base64url").fill(2, 0, 1).toString("base64url")],
    ["sealed for something else", () => new SealingKeys(KEY).seal("request-state", "[]") as string],
    ["of other words", () => new SealingKeys(KEY).seal("session", '["id",1,2,3,4]') as string],
    ["of words of a later version", () => new SealingKeys(KEY).seal("session", '{"id":"x"}') as string],
    ["no JSON", () => new SealingKeys(KEY).seal("session", "words") as string],
  ])("Mcp: is not there when its id is %s", async (_, change) => {
    const [one, two] = [start(), start()];
    const id = change(await initialize(one.handler));
    expect([await one.status(id), await two.status(id)]).toEqual([404, 404]);
  });

  it("Mcp: is that of a process alone without a key, and of those with the same key", async () => {
    const [alone, shared, other] = [start(null), start(KEY), start(OTHER_KEY)];
    const [own, id] = [await initialize(alone.handler), await initialize(shared.handler)];
    expect(own).toMatch(/^[0-9a-f-]{36}$/);
    expect([await shared.status(own), await alone.status(id), await other.status(id)]).toEqual([
      404, 404, 404,
    ]);
  });

  it("Mcp: outlives its key where that is still known, as replicas change to another one after the other", async () => {
    const [before, during, after] = [start([KEY, OTHER_KEY]), start([OTHER_KEY, KEY]), start(OTHER_KEY)];
    const old = await initialize(before.handler);
    const newer = await initialize(during.handler);
    expect([await before.status(newer), await during.status(old), await after.status(newer)]).toEqual([
      200, 200, 200,
    ]);
    expect(await after.status(old)).toBe(404);
  });

  it("Mcp: ends at every replica when its time is over, in use or not", async () => {
    const [one, two] = [start(KEY, { limits: { sessionLifetimeMs: 60_000 } }), start()];
    vi.useFakeTimers({ toFake: ["Date"] });
    const id = await initialize(one.handler);
    vi.setSystemTime(Date.now() + 59_999);
    expect([await one.status(id), await two.status(id)]).toEqual([200, 200]);
    vi.setSystemTime(Date.now() + 1);
    expect([await one.status(id), await two.status(id), await start().status(id)]).toEqual([404, 404, 404]);
  });

  it("Mcp: ends where it is told to, and is taken up again by others", async () => {
    const [one, two] = [start(), start()];
    const id = await initialize(one.handler);
    expect(await two.status(id, {}, "DELETE")).toBe(200);
    expect([await two.status(id), await two.status(id, {}, "DELETE"), await one.status(id)]).toEqual([
      404, 404, 200,
    ]);
  });

  it("Mcp: makes room like any other, and is taken up again when it is needed", async () => {
    const [one, two] = [start(), start(KEY, { limits: { sessions: 2 } })];
    const ids = [await initialize(one.handler), await initialize(one.handler), await initialize(one.handler)];
    for (let round = 0; round < 3; round++) {
      for (const id of ids) expect(await two.status(id)).toBe(200);
    }
    const streams = ids.slice(0, 2).map((id) => {
      const headers = { "mcp-session-id": id, accept: "text/event-stream" };
      return two.handler.fetch(new Request(ENDPOINT, { headers }));
    });
    const [first] = await Promise.all(streams);
    const full = await two.send(ids[2] ?? "", call(2, "echo"));
    expect([full.status, full.headers.get("retry-after")]).toEqual([503, "10"]);
    await first?.body?.cancel();
    expect(await two.status(ids[2] ?? "")).toBe(200);
  });

  it("Mcp: is refused where it was dropped with subscriptions, so that its client subscribes anew", async () => {
    const news = { uri: "news://today", name: "news", read: () => "none", onUpdate: () => () => {} };
    const handler = createMcpHandler(new OperationRegistry([]), {
      sessionKey: KEY,
      resources: [news],
      limits: { sessions: 1 },
    });
    open.push(handler);
    const ask = async (id: string, method: string, params: object = {}) => {
      const message = { jsonrpc: "2.0", id: 2, method, params };
      const response = await handler.fetch(post(message, { "mcp-session-id": id }));
      return [response.status, (await response.text()).includes('"result"')];
    };
    const id = await initialize(handler);
    expect(await ask(id, "resources/subscribe", { uri: news.uri })).toEqual([200, true]);
    expect(await ask(id, "ping")).toEqual([200, true]);
    const other = await initialize(handler);
    expect(await ask(id, "ping")).toEqual([404, false]);
    await initialize(handler);
    expect(await ask(other, "ping")).toEqual([200, true]);
  });

  it("Mcp: resumes a stream where it began, and says elsewhere that it began elsewhere", async () => {
    const [one, two] = [start(), start()];
    const id = await initialize(one.handler);
    const headers = { "mcp-protocol-version": "2025-11-25" };
    const slow = { ...call(2, "slow", { ms: 20_000 }) };
    const params = { ...slow.params, _meta: { progressToken: 2 } };
    const stream = await one.send(id, { ...slow, params }, headers);
    const reader = (stream.body as ReadableStream<Uint8Array>).getReader();
    const last = /^id: (.*)$/m.exec(new TextDecoder().decode((await reader.read()).value))?.[1] ?? "";
    await reader.cancel();
    const resume = ({ handler }: typeof one, event: string) => {
      const asked = { "mcp-session-id": id, accept: "text/event-stream", "last-event-id": event, ...headers };
      return handler.fetch(new Request(ENDPOINT, { headers: asked }));
    };
    const elsewhere = await resume(two, last);
    expect(elsewhere.headers.get("retry-after")).toBe("1");
    expect(await errorOf(elsewhere)).toEqual({ status: 503, code: -32_003, id: null });
    expect((await resume(two, "nonsense")).status).toBe(400);
    expect((await resume(one, `${last.slice(0, -1)}!`)).status).toBe(400);
    one.small.finish();
    await until(() => one.small.running === 0);
    expect(await (await resume(one, last)).text()).toContain('"text":"done"');
  });

  it("Mcp: is of one replica alone where its client says too much of itself for an id", async () => {
    const [one, two] = [start(), start()];
    const named = (length: number) => ({
      ...INITIALIZE,
      params: { ...INITIALIZE.params, clientInfo: { name: "n".repeat(length), version: "1" } },
    });
    const [fits, not] = [
      await openWith(one.handler, named(1_200)),
      await openWith(one.handler, named(1_600)),
    ];
    expect([await one.status(fits), await two.status(fits)]).toEqual([200, 200]);
    expect([await one.status(not), await two.status(not)]).toEqual([200, 404]);
  });
});

describe("a stream of a session whose replicas share a log", () => {
  const VERSION = { "mcp-protocol-version": "2025-11-25" };

  /** Two replicas, and a stream of the first one that its client has left, as other replicas may be asked for it. */
  async function startShared() {
    const log = new MemoryEventLog();
    const warnings: string[] = [];
    const replica = () => {
      const small = createSmallMcpServer({ sessionKey: KEY });
      const onWarning = (message: string) => void warnings.push(message);
      const handler = createMcpEndpoint(small, { onWarning }, { log });
      open.push(handler);
      return { small, handler };
    };
    const [one, two] = [replica(), replica()];
    const id = await initialize(one.handler);
    const slow = call(2, "slow", { ms: 20_000 });
    const params = { ...slow.params, _meta: { progressToken: 2 } };
    const headers = { "mcp-session-id": id, ...VERSION };
    const stream = await one.handler.fetch(post({ ...slow, params }, headers));
    const reader = (stream.body as ReadableStream<Uint8Array>).getReader();
    const first = /^id: (.*)$/m.exec(new TextDecoder().decode((await reader.read()).value))?.[1] ?? "";
    await reader.cancel();
    const resume = ({ handler }: typeof one, event: string) =>
      handler.fetch(
        new Request(ENDPOINT, {
          headers: { ...headers, accept: "text/event-stream", "last-event-id": event },
        }),
      );
    return { log, warnings, one, two, first, resume };
  }

  it("Mcp: is resumed at another replica while its call runs, and again from any event on", async () => {
    const { one, two, first, resume } = await startShared();
    const rest = (await resume(two, first)).text();
    await until(() => one.small.running === 1);
    one.small.finish();
    const text = await rest;
    expect(text).toContain("notifications/progress");
    expect(text).toContain('"text":"done"');
    expect(await (await resume(two, first)).text()).toBe(text);
    expect(await (await resume(one, first)).text()).toBe(text);
    const ids = [...text.matchAll(/^id: (.*)$/gm)].map(([, event = ""]) => event);
    expect(ids).toHaveLength(2);
    const answer = await (await resume(two, ids[0] ?? "")).text();
    expect([answer.includes("notifications/progress"), answer.includes('"text":"done"')]).toEqual([
      false,
      true,
    ]);
    expect(await (await resume(two, ids[1] ?? "")).text()).toBe("");
    expect([one.small.aborted, two.small.running]).toEqual([0, 0]);
  });

  it("Mcp: is taken over by whoever comes back last", async () => {
    const { one, two, first, resume } = await startShared();
    const before = await resume(two, first);
    const after = (await resume(two, first)).text();
    expect(await before.text()).toContain("notifications/progress");
    one.small.finish();
    expect(await after).toContain('"text":"done"');
  });

  it("Mcp: answers with an error what was asked, where the rest is lost", async () => {
    const { log, warnings, two, first, resume } = await startShared();
    const rest = await resume(two, first);
    await log.close();
    const text = await rest.text();
    const last = JSON.parse(
      /^data: (.*)$/m.exec(text.slice(text.lastIndexOf("event:")))?.[1] ?? "",
    ) as object;
    expect(last).toMatchObject({ id: 2, error: { code: -32_603, data: { reason: "replica_lost" } } });
    expect(warnings).toContain("The rest of a stream of another replica is lost.");
    expect((await resume(two, first)).status).toBe(503);
  });

  it("X-4 is no stream of another session", async () => {
    const { two, first } = await startShared();
    const other = { "mcp-session-id": await initialize(two.handler), ...VERSION };
    const headers = { ...other, accept: "text/event-stream", "last-event-id": first };
    expect((await two.handler.fetch(new Request(ENDPOINT, { headers }))).status).toBe(503);
  });
});

describe("SealedSessions", () => {
  const create = () => new SealedSessions(new SealingKeys(KEY), 60_000);

  it("Mcp: remembers as many ended sessions as allowed, and forgets the oldest of who ended most", () => {
    const sessions = create();
    const made = (owner: string) => sessions.create({ protocolVersion: "2025-06-18" }, owner);
    const bobs = made("bob");
    if (bobs !== undefined) sessions.end(bobs.facts);
    const anns = Array.from({ length: 10_000 }, () => made("ann"));
    for (const one of anns) if (one !== undefined) sessions.end(one.facts);
    const isKnown = (one: typeof bobs, owner: string) => sessions.read(one?.text ?? "", owner) !== undefined;
    expect(isKnown(bobs, "bob")).toBe(false);
    expect([isKnown(anns[0], "ann"), isKnown(anns[1], "ann"), isKnown(anns.at(-1), "ann")]).toEqual([
      true,
      false,
      false,
    ]);
  });
});
