import { InMemoryTransport, type JSONRPCMessage } from "@modelcontextprotocol/client";
import { describe, expect, it } from "vitest";
import { rejection } from "../../../test/make-operation.ts";
import { openMcpConnection } from "../client/mcp-connection.ts";
import { writeCall } from "./messages.ts";
import { type RequestEnd, RpcPeer } from "./peer.ts";

const HANDSHAKE = {
  initialize: { protocolVersion: "2025-06-18", capabilities: {}, serverInfo: { name: "both", version: "1" } },
  "server/discover": {
    resultType: "complete",
    supportedVersions: ["2026-07-28"],
    capabilities: {},
    ttlMs: 0,
    cacheScope: "private",
  },
};
const ERROR = { code: 1, message: "no" };

/** Opens a connection to a server that puts `beside` next to the result of one method, and calls a tool of it. */
async function call(protocol: "2025" | "2026", method: string, beside: object): Promise<unknown> {
  const [here, there] = InMemoryTransport.createLinkedPair();
  there.onmessage = (message) => {
    const asked = message as { id?: number; method: string };
    if (asked.id === undefined) return;
    const result = HANDSHAKE[asked.method as "initialize"] ?? { resultType: "complete", content: [] };
    const extra = asked.method === method ? beside : {};
    void there.send({ jsonrpc: "2.0", id: asked.id, result, ...extra } as JSONRPCMessage);
  };
  const connection = await openMcpConnection({ transport: () => here, protocol, reconnect: false });
  try {
    return await connection.request("tools/call", { name: "t" });
  } finally {
    await connection.close();
  }
}

describe.each([
  ["2025", "initialize"],
  ["2026", "server/discover"],
] as const)("an answer of a server of %s with both an error and a result", (protocol, handshake) => {
  it("RE-23 has failed", async () => {
    const failure = await rejection(call(protocol, "tools/call", { error: ERROR }));
    expect(failure).toMatchObject({ code: "EXECUTION_ERROR", details: { rpcCode: 1 } });
  });

  it("RE-23 makes no connection", async () => {
    const failure = await rejection(call(protocol, handshake, { error: ERROR }));
    expect(failure).toMatchObject({ code: "UNAVAILABLE" });
  });

  it("RE-23 has succeeded where the error is null", async () => {
    for (const method of ["tools/call", handshake]) {
      expect(await call(protocol, method, { error: null })).toMatchObject({ content: [] });
    }
  });
});

/** A peer, what it sent, and what it told of. */
function createPeer() {
  const sent: unknown[] = [];
  const heard: unknown[] = [];
  const peer = new RpcPeer({
    answer: async ({ method }) => (method === "ping" ? "{}" : Promise.reject(new Error(method))),
    toError: () => ({ code: -32603, message: "no" }),
    send: (text) => sent.push(JSON.parse(text)),
    onNotification: ({ method }) => heard.push(["notification", method]),
    onFault: (message) => heard.push(message),
    onLateAnswer: (id) => heard.push(["answer", id]),
    onLateProgress: (id) => heard.push(["progress", id]),
  });
  const ask = (onProgress?: (progress: unknown) => void) => {
    const ends: RequestEnd[] = [];
    const id = peer.request("tools/call", { name: "t" }, { onEnd: (end) => ends.push(end), onProgress });
    return { id, ends };
  };
  return { peer, sent, heard, ask };
}

const answer = (id: unknown, members: object = { result: {} }) => ({ jsonrpc: "2.0", id, ...members });
const progress = (progressToken: unknown) => ({
  jsonrpc: "2.0",
  method: "notifications/progress",
  params: { progressToken, progress: 1 },
});

describe("a request to the other side", () => {
  it("Mcp: is heard of when it goes on and when it is answered after it was dropped, and others are not", () => {
    const { peer, heard, ask } = createPeer();
    const told: unknown[] = [];
    const { id, ends } = ask((value) => told.push(value));
    peer.receive(progress(id));
    expect([told, heard]).toEqual([[{ progress: 1 }], []]);
    expect(peer.drop(id)).toBe(true);
    for (const token of [id, String(id), id + 1, -1, "x", undefined, {}]) peer.receive(progress(token));
    expect([told.length, heard.splice(0)]).toEqual([
      1,
      [
        ["progress", id],
        ["progress", id],
      ],
    ]);
    peer.receive(answer(id));
    expect([heard, ends]).toEqual([[["answer", id]], []]);
  });

  it("Mcp: takes its answer from a list, under an id sent back as text, and with an error that is null", () => {
    const { peer, heard, ask } = createPeer();
    const all = [ask(), ask(), ask()];
    peer.receive([
      answer(String(all[0]?.id), { result: { a: 1 }, error: null }),
      answer(all[1]?.id, { error: { code: 5, message: "no", data: [1] } }),
      answer(all[2]?.id, { error: null }),
    ]);
    expect(all.map(({ ends }) => ends)).toEqual([
      [{ kind: "result", result: { a: 1 } }],
      [{ kind: "error", error: { code: 5, message: "no", data: [1] } }],
      [{ kind: "error", error: { code: -32603, message: "" } }],
    ]);
    peer.receive([7, answer(99), { jsonrpc: "2.0", id: 1 }]);
    expect(heard).toEqual([
      "A message is no JSON object.",
      "An answer belongs to no request.",
      "A message is neither a request nor an answer.",
    ]);
  });

  it("Mcp: ends once, with the connection at the latest, and is refused after that", () => {
    const { peer, ask } = createPeer();
    const { id, ends } = ask();
    const other = ask();
    expect([peer.fail(id, "lost"), peer.fail(id, "again"), peer.drop(id)]).toEqual([true, false, false]);
    peer.close();
    peer.receive(answer(other.id));
    expect(ends).toEqual([{ kind: "failure", failure: "lost" }]);
    expect(other.ends).toMatchObject([{ kind: "failure", failure: { code: "UNAVAILABLE" } }]);
    expect(() => ask()).toThrow("closed");
  });

  it("Mcp: sends nothing where its params cannot be written", () => {
    const { peer, sent } = createPeer();
    expect(() => peer.request("tools/call", { n: 1n }, { onEnd: () => {} })).toThrow("cannot be written");
    expect(sent).toEqual([]);
  });
});

describe("a request of the other side", () => {
  it("Mcp: is answered once, but not where it was cancelled, and not twice under one id", async () => {
    const { peer, sent, heard } = createPeer();
    const call = (id: unknown, method: string) => peer.receive({ jsonrpc: "2.0", id, method });
    call("a", "ping");
    call("a", "ping");
    call("b", "other");
    call("c", "ping");
    const cancel = (requestId: unknown) =>
      peer.receive({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } });
    cancel("c");
    cancel("d");
    await new Promise((resolve) => setImmediate(resolve));
    expect(sent).toEqual([
      { jsonrpc: "2.0", id: "a", error: { code: -32600, message: expect.any(String) } },
      { jsonrpc: "2.0", id: "a", result: {} },
      { jsonrpc: "2.0", id: "b", error: { code: -32603, message: "no" } },
    ]);
    expect(heard).toEqual([["notification", "notifications/cancelled"]]);
  });
});

describe("writing a request", () => {
  it.each([
    [undefined, '{"_meta":{"c":3}}'],
    [{}, '{"_meta":{"c":3}}'],
    [{ _meta: undefined }, '{"_meta":{"c":3}}'],
    [{ _meta: {} }, '{"_meta":{"c":3}}'],
    [{ _meta: { a: undefined }, b: 2 }, '{"b":2,"_meta":{"c":3}}'],
    [{ _meta: { a: 1 }, b: 2 }, '{"b":2,"_meta":{"a":1,"c":3}}'],
    [{ b: "}", _meta: { a: "{}" } }, '{"b":"}","_meta":{"a":"{}","c":3}}'],
    [{ _meta: "no object", b: 2 }, '{"b":2,"_meta":{"c":3}}'],
  ])("puts members of _meta behind those of %j", (params, written) => {
    expect(writeCall("m", params, 1, '"c":3')).toBe(
      `{"jsonrpc":"2.0","id":1,"method":"m","params":${written}}`,
    );
  });
});
