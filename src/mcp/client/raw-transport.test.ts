import { InMemoryTransport, type JSONRPCMessage } from "@modelcontextprotocol/client";
import { describe, expect, it } from "vitest";
import { rejection } from "../../../test/make-operation.ts";
import { CallError } from "../../core/errors/errors.ts";
import { openMcpConnection } from "./connect.ts";
import { RawRequest } from "./raw-request.ts";
import { RawTransport } from "./raw-transport.ts";

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

describe("a request that was dropped", () => {
  it("Mcp: is heard of when it goes on and when it is answered, and others are not", async () => {
    const [here, there] = InMemoryTransport.createLinkedPair();
    const heard: unknown[] = [];
    const ignore = () => {};
    const raw = new RawTransport(here, {
      onNotification: ignore,
      onServerRequest: () => false,
      onServerCancelled: ignore,
      onOddity: (message) => heard.push(message),
      onClose: ignore,
    });
    raw.onLateAnswer = (id) => heard.push(["answer", id]);
    raw.onLateProgress = (id) => heard.push(["progress", id]);
    await raw.start();
    await there.start();
    const progress = (progressToken: unknown) =>
      there.send({
        jsonrpc: "2.0",
        method: "notifications/progress",
        params: { progressToken, progress: 1 },
      } as JSONRPCMessage);
    const told: unknown[] = [];
    const request = new RawRequest("tools/call", (value) => told.push(value));
    const asked = raw.ask(request, { name: "slow" });
    const id = request.id as number;
    await progress(id);
    expect([told.length, heard]).toEqual([1, []]);
    request.fail(new CallError("ABORTED"));
    await asked;
    raw.forget(request);
    for (const token of [id, String(id), id + 1, -1, "x", undefined, {}]) await progress(token);
    expect([told.length, heard.splice(0)]).toEqual([
      1,
      [
        ["progress", id],
        ["progress", id],
      ],
    ]);
    await there.send({ jsonrpc: "2.0", id, result: {} });
    expect(heard).toEqual([["answer", id]]);
    await raw.close();
  });
});
