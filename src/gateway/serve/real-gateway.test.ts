import { describe, expect, it } from "vitest";
import { query } from "../../../test/make-operation.ts";
import { loadedConfig } from "../../../test/served-gateway.ts";
import { createGateway } from "../gateway.ts";
import type { CallRecord } from "./observe/call-record.ts";
import { createObserver } from "./observe/observer.ts";
import { serveGateway } from "./serve-gateway.ts";

describe("a gateway made from a config", () => {
  it("RE-30 is served whole, with what policies did in the record of each call", async () => {
    const observer = createObserver();
    const records: CallRecord[] = [];
    observer.listen({ end: (record) => void records.push(record) });
    const inputSchema = { type: "object", properties: {}, additionalProperties: false } as const;
    const greet = query("desk.greet", () => ({ hello: 1 }), { inputSchema });
    const loaded = {
      ...loadedConfig({
        policies: { "desk.*": { cacheMs: 60_000 } },
        mcpServers: { files: { command: "/nowhere/at/all" } },
      }),
      localOperations: [greet],
    };
    const gateway = await createGateway(loaded, { observers: [observer] });
    await gateway.ready;
    const server = await serveGateway(gateway, loaded);
    try {
      for (let i = 0; i < 2; i++) {
        expect(await (await fetch(`${server.url}/api/desk/greet`)).json()).toEqual({ hello: 1 });
      }
      const body = JSON.stringify({ operation: "files.read", input: {} });
      const headers = { "content-type": "application/json" };
      const missing = await fetch(`${server.url}/call`, { method: "POST", headers, body });
      expect(missing.status).toBe(503);
      expect(await missing.json()).toMatchObject({
        detail: 'The source "files" is down: its program cannot be started.',
      });
      const atPath = await fetch(`${server.url}/api/files/read?x=1`);
      expect([atPath.status, (await atPath.json()).detail]).toEqual([
        503,
        expect.stringContaining('The source "files" is'),
      ]);
      expect((await fetch(`${server.url}/api/other/read`)).status).toBe(404);
    } finally {
      await server.close({ timeoutMs: 0 });
      await gateway.close();
    }
    expect(records).toMatchObject([
      { operation: "desk.greet", entry: "http", outcome: "ok" },
      { operation: "desk.greet", cached: true },
      { operation: "files.read", outcome: "call_error", code: "UNAVAILABLE" },
    ]);
  });
});
