import { InMemoryTransport } from "@modelcontextprotocol/server";
import { describe, expect, it } from "vitest";
import { type CallToolResult, decodeEnvelope, OperationRegistry } from "../src/index.ts";
import { toMcpServer } from "../src/mcp/index.ts";
import { query, rejection, stream, until } from "./make-operation.ts";
import { CLIENTS, legacyClient, modernClient } from "./mcp-server-peers.ts";

describe.each(Object.entries(CLIENTS))("a call seen by %s while it runs", (kind, connect) => {
  it("RE-30 tells progress that goes up, and cancels what is called off", async () => {
    let stopped = false;
    const slow = query("slow.work", async (_, { progress, signal }) => {
      progress({ progress: 0, total: 100 });
      progress({ progress: 50, total: 100, message: "half" });
      progress(20);
      progress("nearly");
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      stopped = true;
    });
    const client = await connect(toMcpServer(new OperationRegistry([slow])));
    const seen: unknown[] = [];
    const abort = new AbortController();
    const options = { onprogress: (value: unknown) => seen.push(value), signal: abort.signal };
    const call = isFirst(kind)
      ? (client.callTool as (...args: unknown[]) => Promise<unknown>).call(
          client,
          { name: "slow_work" },
          undefined,
          options,
        )
      : client.callTool({ name: "slow_work" }, options);
    const called = rejection(call);
    await until(() => seen.length === 3);
    abort.abort();
    await called;
    await expect.poll(() => stopped, { timeout: 20_000 }).toBe(true);
    expect(seen).toEqual([
      { progress: 0, total: 100 },
      { progress: 50, total: 100, message: "half" },
      { progress: 51, message: "nearly" },
    ]);
    await client.close();
  });

  it("RE-30 streams a subscription as progress and ends with its values", async () => {
    const ticks = stream(
      "clock.ticks",
      async function* () {
        for (let i = 0; i < 4; i++) yield { i };
      },
      { outputSchema: { type: "object", properties: { i: { type: "integer" } }, required: ["i"] } },
    );
    const server = toMcpServer(new OperationRegistry([ticks]), { limits: { streamItems: 3 } });
    const client = await connect(server);
    const { tools } = await client.listTools();
    expect(tools[0]?.outputSchema).toMatchObject({ required: ["items", "count", "truncated"] });
    const seen: { readonly message?: string | undefined }[] = [];
    const options = { onprogress: (value: { readonly message?: string | undefined }) => seen.push(value) };
    const result = isFirst(kind)
      ? await (client.callTool as (...args: unknown[]) => Promise<CallToolResult>).call(
          client,
          { name: "clock_ticks" },
          undefined,
          options,
        )
      : await client.callTool({ name: "clock_ticks" }, options);
    expect(result.structuredContent).toEqual({
      items: [{ i: 0 }, { i: 1 }, { i: 2 }],
      count: 4,
      truncated: true,
    });
    expect(seen.map(({ message }) => message)).toEqual(['{"i":0}', '{"i":1}', '{"i":2}', '{"i":3}']);
    await client.close();
  });
});

function isFirst(kind: string): boolean {
  return kind === "SDK 1";
}

describe("a call of a served operation that runs", () => {
  it("RE-28 sends each value of a subscription whole, in its envelope", async () => {
    const ticks = stream("clock.days", async function* () {
      yield new Date(0);
      yield "x".repeat(2_000);
    });
    const [here, there] = InMemoryTransport.createLinkedPair();
    await toMcpServer(new OperationRegistry([ticks])).connect(there);
    const sent: { readonly params?: { readonly message: string; readonly _meta: Record<string, string> } }[] =
      [];
    here.onmessage = (message) => void sent.push(message as never);
    const params = { name: "clock_days", _meta: { progressToken: 1 } };
    await here.send({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
    await expect.poll(() => sent.length, { timeout: 20_000 }).toBe(3);
    const [first, second] = sent.map((message) => message.params);
    expect(decodeEnvelope(first?._meta["dev.waybill/yield"] ?? "")).toMatchObject({
      data: new Date(0),
      meta: { source: "local", operationId: "clock.days", waybill: { sequence: 0 } },
    });
    expect(second?.message).toHaveLength(1_000);
    expect(decodeEnvelope(second?._meta["dev.waybill/yield"] ?? "").data).toHaveLength(2_000);
  });

  it("RE-30 tells logs at the level a client asked for", async () => {
    const talks = query("log.talks", (_, { log }) => {
      log("debug", "quiet");
      log("warn", "loud", { n: 1 });
      return 1;
    });
    const server = toMcpServer(new OperationRegistry([talks]));
    const legacy = await legacyClient(server);
    const heard: unknown[] = [];
    legacy.setNotificationHandler("notifications/message", ({ params }) => {
      heard.push(params);
    });
    await legacy.callTool({ name: "log_talks" });
    expect(heard).toHaveLength(2);
    await legacy.setLoggingLevel("warning");
    await legacy.callTool({ name: "log_talks" });
    expect(heard.slice(2)).toEqual([
      { level: "warning", logger: "log.talks", data: { message: "loud", data: { n: 1 } } },
    ]);
    const modern = await modernClient(server);
    const told: unknown[] = [];
    modern.setNotificationHandler("notifications/message", ({ params }) => {
      told.push(params);
    });
    await modern.callTool({ name: "log_talks" });
    expect(told).toEqual([]);
  });
});
