import { InMemoryTransport, type JSONRPCMessage } from "@modelcontextprotocol/client";
import { describe, expect, it } from "vitest";
import { rejection } from "../../../test/make-operation.ts";
import { openMcpConnection } from "./connect.ts";

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
