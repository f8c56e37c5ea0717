import { afterEach, describe, expect, it } from "vitest";
import { call, ENDPOINT, initialize, post, until } from "../../../test/mcp-requests.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { createMcpEndpoint, type McpEndpoint } from "../../mcp/server/http/mcp-endpoint.ts";
import { SealingKeys } from "../../mcp/server/sealing-keys.ts";
import { toSharedMcpServer } from "../../mcp/server/to-mcp-server.ts";
import { createLocalStateStore } from "../state/local-state-store.ts";
import { ReplicaLease } from "../state/replica-lease.ts";
import type { StateStore } from "../state/state-store.ts";
import { NOTE_BOUNDS, StateSessionNotes } from "./state-session-notes.ts";

const NEWS = "news://today";
const session = (id: string, owner = "ann") => ({ id, owner, expiresAt: Date.now() + 60_000 });
const notesOn = (store: StateStore) =>
  new StateSessionNotes(() => ({ store, lease: new ReplicaLease(store, { replica: "aaaaaaaa" }) }));

describe("notes of sessions", () => {
  const open: McpEndpoint[] = [];
  afterEach(async () => {
    for (const handler of open.splice(0)) await handler.close({ timeoutMs: 0 });
  });

  /** A replica with a resource that changes when it is told to. */
  const start = (store: StateStore, replica: string, sessions = 10) => {
    const listeners = new Set<() => void>();
    const news = {
      uri: NEWS,
      name: "news",
      read: () => "none",
      onUpdate: (listener: () => void) => {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
    };
    const share = { keys: new SealingKeys("the-key-of-all-replicas-00000000"), replica, leads: true };
    const server = toSharedMcpServer(new OperationRegistry([]), { resources: [news] }, share);
    const warnings: string[] = [];
    const options = { limits: { sessions }, onWarning: (message: string) => void warnings.push(message) };
    const handler = createMcpEndpoint(server, options, { notes: notesOn(store) });
    open.push(handler);
    const ask = async (id: string, method: string, params: object = {}) => {
      const message = { jsonrpc: "2.0", id: 2, method, params };
      const answer = await handler.fetch(post(message, { "mcp-session-id": id }));
      return [answer.status, (await answer.text()).includes('"result"')];
    };
    const end = (id: string) =>
      handler.fetch(new Request(ENDPOINT, { method: "DELETE", headers: { "mcp-session-id": id } }));
    const announce = (): void => {
      for (const tell of listeners) tell();
    };
    return { handler, ask, end, announce, warnings, listeners };
  };

  it("Mcp: tells of what was subscribed to at one replica over the stream at another, until that ends", async () => {
    const store = createLocalStateStore();
    const [one, two] = [start(store, "aaaaaaaa"), start(store, "bbbbbbbb")];
    const id = await initialize(one.handler);
    const headers = { "mcp-session-id": id, accept: "text/event-stream" };
    const stream = await two.handler.fetch(new Request(ENDPOINT, { headers }));
    const reader = (stream.body as ReadableStream<Uint8Array>).getReader();
    const next = async (): Promise<string> => new TextDecoder().decode((await reader.read()).value);
    expect(await one.ask(id, "resources/subscribe", { uri: NEWS })).toEqual([200, true]);
    await until(() => two.listeners.size === 1);
    const told = next();
    two.announce();
    expect(await told).toContain("notifications/resources/updated");
    expect(await one.ask(id, "resources/unsubscribe", { uri: NEWS })).toEqual([200, true]);
    await until(() => two.listeners.size === 0);
    await reader.cancel();
    expect([one.warnings, two.warnings]).toEqual([[], []]);
  });

  it("Mcp: bring subscriptions back where a session was dropped, and asked for again", async () => {
    const store = createLocalStateStore();
    const one = start(store, "aaaaaaaa", 1);
    const id = await initialize(one.handler);
    await one.ask(id, "resources/subscribe", { uri: NEWS });
    await initialize(one.handler);
    expect(one.listeners.size).toBe(0);
    expect(await one.ask(id, "ping")).toEqual([200, true]);
    expect(one.listeners.size).toBe(1);
  });

  it("Mcp: end a session at every replica, one that opens it later included, and no other", async () => {
    const store = createLocalStateStore();
    const [one, two] = [start(store, "aaaaaaaa"), start(store, "bbbbbbbb")];
    const [id, other] = [await initialize(one.handler), await initialize(one.handler)];
    expect(await two.ask(id, "ping")).toEqual([200, true]);
    expect((await one.end(id)).status).toBe(200);
    const three = start(store, "cccccccc");
    for (const { ask } of [one, two, three]) {
      expect([await ask(id, "ping"), await ask(other, "ping")]).toEqual([
        [404, false],
        [200, true],
      ]);
    }
  });

  it("Mcp: ask the store nothing for a session of which nothing is noted", async () => {
    const store = createLocalStateStore();
    let asked = 0;
    const { get } = store;
    store.get = (name) => {
      asked += 1;
      return get.call(store, name);
    };
    const [one, two] = [start(store, "aaaaaaaa"), start(store, "bbbbbbbb")];
    const id = await initialize(one.handler);
    for (const { handler } of [one, two]) {
      const answer = await handler.fetch(post(call(2, "nothing"), { "mcp-session-id": id }));
      expect(answer.status).toBe(200);
      await answer.text();
    }
    expect(asked).toBe(0);
    await one.ask(id, "resources/subscribe", { uri: NEWS });
    await until(() => asked > 0);
  });

  it("X-4 hold as many as allowed of one caller, and one more is refused", async () => {
    const notes = notesOn(createLocalStateStore());
    const { ownRecords } = NOTE_BOUNDS;
    for (let at = 0; at < ownRecords; at++) await notes.write(session(`s${at}`), { kind: "ended" });
    await expect(notes.write(session("more"), { kind: "ended" })).rejects.toThrow("no room");
    await notes.write(session("more", "ben"), { kind: "ended" });
    expect(await notes.read(session("more", "ben"))).toMatchObject({ isEnded: true });
    expect(notes.read(session("s1", "ben"))).toBeUndefined();
  });

  it("Mcp: keep what several replicas note at the same moment", async () => {
    const notes = notesOn(createLocalStateStore());
    const uris = Array.from({ length: 10 }, (_, at) => `news://${at}`);
    await Promise.all(uris.map((uri) => notes.write(session("s"), { kind: "subscribed", uri })));
    await notes.write(session("s"), { kind: "level", level: "error" });
    await notes.write(session("s"), { kind: "unsubscribed", uri: "news://3" });
    const note = await notes.read(session("s"));
    const left = uris.filter((uri) => uri !== "news://3");
    expect([note?.level, [...(note?.subscriptions ?? [])].sort()]).toEqual(["error", left]);
  });
});
