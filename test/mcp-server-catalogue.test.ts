import { describe, expect, it } from "vitest";
import { OperationRegistry } from "../src/index.ts";
import { toMcpServer } from "../src/mcp/index.ts";
import { cpuMs } from "./cpu-ms.ts";
import { query, rejection } from "./make-operation.ts";
import { PAIR, registry } from "./mcp-server-operations.ts";
import { legacyClient } from "./mcp-server-peers.ts";

describe("a catalogue instead of a tool per operation", () => {
  it("RE-30 serves a catalogue of four tools instead of thousands", async () => {
    const client = await legacyClient(toMcpServer(registry, { catalogue: true }));
    const { tools } = await client.listTools();
    expect(tools.map((tool) => tool.name)).toEqual(["search", "describe", "call", "batch"]);
    const search = await client.callTool({ name: "search", arguments: { query: "SUM", limit: 1 } });
    expect(search.structuredContent).toMatchObject({ operations: [{ id: "math.add" }] });
    const ids = ["math.add", "math.admin"];
    const described = await client.callTool({ name: "describe", arguments: { ids } });
    expect(described.structuredContent).toMatchObject({
      operations: [{ id: "math.add", inputSchema: PAIR }],
      unknown: ["math.admin"],
    });
    const call = { id: "math.add", input: { a: 1, b: 2 } };
    expect(await client.callTool({ name: "call", arguments: call })).toMatchObject({
      content: [{ text: "3" }],
    });
    const calls = [call, { id: "math.admin" }, { id: "math.no" }];
    const batch = await client.callTool({ name: "batch", arguments: { calls } });
    expect(batch.structuredContent).toMatchObject({
      results: [
        { id: "math.add", outcome: "ok", data: 3 },
        { outcome: "call-error", error: { code: "OPERATION_NOT_FOUND" } },
        { outcome: "tool-error", data: { left: 2 }, error: { code: "SOLD_OUT" } },
      ],
    });
    const fits = await client.callTool({ name: "batch", arguments: { calls: Array(50).fill(call) } });
    expect(fits.isError).toBeUndefined();
    const tooMany = await client.callTool({ name: "batch", arguments: { calls: Array(51).fill(call) } });
    expect(tooMany.isError).toBe(true);
    expect(await rejection(client.callTool({ name: "math_add" }))).toMatchObject({ code: -32602 });
  });

  it("RE-30 finds its way among 10,000 operations in a moment", async () => {
    const many = Array.from({ length: 10_000 }, (_, i) =>
      query(`many.op${i}`, () => i, { description: `Number ${i}.` }),
    );
    const client = await legacyClient(toMcpServer(new OperationRegistry(many), { catalogue: true }));
    await client.callTool({ name: "search", arguments: { query: "warm" } });
    const started = cpuMs();
    const found = await client.callTool({ name: "search", arguments: { query: "op9999" } });
    for (let i = 1; i < 10; i++) await client.callTool({ name: "search", arguments: { query: `op${i}` } });
    expect(cpuMs() - started).toBeLessThan(2_000);
    expect(found.structuredContent).toMatchObject({ operations: [{ id: "many.op9999" }] });
  });
});
