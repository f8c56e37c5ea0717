import { describe, expect, it } from "vitest";
import { query, rejection } from "../../../../test/make-operation.ts";
import { CLIENTS, legacyClient } from "../../../../test/mcp-server-peers.ts";
import { OperationRegistry } from "../../../core/registry/registry.ts";
import type { ResultFormat } from "../../../core/result/result-reader.ts";
import type { ResultEntry, ResultStore } from "../../../core/result/result-store.ts";
import type { CallToolResult } from "../../../core/result/tool-result.ts";
import { compileSchema } from "../../../core/schema/compile-schema.ts";
import type { JsonSchema } from "../../../core/schema/json-schema.ts";
import { toMcpServer } from "../to-mcp-server.ts";

const TREE = { anyOf: [{ type: "string" }, { type: "array", items: { $ref: "#" } }] };
const registry = new OperationRegistry([
  query("text.shout", (input) => `${input}!`, {
    inputSchema: { type: "string" },
    outputSchema: { type: "string" },
  }),
  query("text.depth", (input) => JSON.stringify(input), { inputSchema: TREE }),
  query("text.long", () => ({ text: "x".repeat(5_000) })),
  query("text.secret", () => "hunter2", { access: { scopes: { allOf: ["admin"] } } }),
  query("text.inner", () => "hunter2", { visibility: "internal" }),
]);

const shouting: ResultFormat = {
  name: "wrapped",
  write: () => ({ content: [], structuredContent: { said: 1 } }),
  outputSchema: () => ({ type: "object", properties: { said: { type: "number" } }, required: ["said"] }),
};

interface Described {
  readonly inputSchema: JsonSchema;
  readonly outputSchema: JsonSchema;
}

describe.each(Object.entries(CLIENTS))("a catalogue seen by %s", (_, connect) => {
  const open = () => connect(toMcpServer(registry, { catalogue: true, formats: [shouting] }));

  it("RE-30 describes input as call takes it, whatever its kind", async () => {
    const client = await open();
    for (const [id, input] of [
      ["text.shout", "hey"],
      ["text.depth", ["a", ["b"]]],
    ] as const) {
      const { structuredContent } = await client.callTool({ name: "describe", arguments: { id } });
      const [described] = (structuredContent as { operations: Described[] }).operations;
      const schema = compileSchema(described?.inputSchema ?? false);
      expect([schema.check(input), schema.check({ input }), schema.check([1])]).toEqual([true, false, false]);
      expect(JSON.stringify(described)).not.toContain("wrapsInput");
      const result = await client.callTool({ name: "call", arguments: { id, input } });
      expect(result.isError).toBeUndefined();
    }
    await client.close();
  });

  it("RE-30 describes output as it is then sent, in the format asked for", async () => {
    const client = await open();
    for (const _meta of [{}, { "dev.waybill/format": "wrapped" }]) {
      const id = "text.shout";
      const { structuredContent } = await client.callTool({ name: "describe", arguments: { id }, _meta });
      const [described] = (structuredContent as { operations: Described[] }).operations;
      const sent = await client.callTool({ name: "call", arguments: { id, input: "hey" }, _meta });
      expect(compileSchema(described?.outputSchema ?? false).check(sent.structuredContent)).toBe(true);
    }
    await client.close();
  });

  it("RE-30 refuses cursors it did not give and formats nobody offers", async () => {
    const client = await open();
    const _meta = { "dev.waybill/format": "nope" };
    const list = (params: Record<string, unknown>) => client.request({ method: "tools/list", params });
    expect(await rejection(list({ cursor: "junk" }))).toMatchObject({ code: -32602 });
    expect(await rejection(list({ _meta }))).toMatchObject({ code: -32602 });
    for (const name of ["search", "describe", "call", "batch"]) {
      expect(await rejection(client.callTool({ name, arguments: {}, _meta }))).toMatchObject({
        code: -32602,
      });
    }
    await client.close();
  });

  it("RE-30 reaches nothing that is hidden or internal", async () => {
    const client = await open();
    for (const id of ["text.secret", "text.inner", "text.none", "__proto__"]) {
      const ask = async (name: string, args: object) =>
        JSON.stringify(await client.callTool({ name, arguments: { ...args } }));
      expect(await ask("search", { query: id })).not.toContain(`"${id}"`);
      expect(await ask("describe", { id })).toContain('"operations":[],"unknown"');
      expect(await ask("call", { id })).toContain("OPERATION_NOT_FOUND");
      expect(await ask("batch", { calls: [{ id }] })).toContain("OPERATION_NOT_FOUND");
    }
    await client.close();
  });
});

describe("a catalogue", () => {
  it("RE-30 is paged like any list", async () => {
    const client = await legacyClient(toMcpServer(registry, { catalogue: true, limits: { pageSize: 3 } }));
    const list = (cursor?: string) =>
      client.request({ method: "tools/list", params: { ...(cursor && { cursor }) } });
    const first = await list();
    const second = await list(first.nextCursor);
    expect([first, second].map(({ tools }) => tools.map(({ name }) => name))).toEqual([
      ["search", "describe", "call"],
      ["batch"],
    ]);
    expect(second.nextCursor).toBeUndefined();
  });

  it("RE-30 sends no more at once than a plain call: N characters whole, N + 1 as a link", async () => {
    const kept: ResultEntry[] = [];
    const store: ResultStore = {
      put: (entry) => {
        kept.push(entry);
        const characters = entry.text.length;
        return { uri: "kept://1", name: "kept", mimeType: entry.mimeType, size: characters, characters };
      },
      read: () => undefined,
    };
    const asked = [
      { name: "call", arguments: { id: "text.long" } },
      { name: "batch", arguments: { calls: [{ id: "text.long" }, { id: "text.long" }, 7] } },
      { name: "describe", arguments: { ids: ["text.shout", "text.depth"] } },
      { name: "search", arguments: { query: "text" } },
    ];
    for (const params of asked) {
      const connect = (inlineCharacters: number) =>
        legacyClient(toMcpServer(registry, { catalogue: true, store, limits: { inlineCharacters } }));
      const whole = (await (await connect(1_000_000)).callTool(params)) as CallToolResult;
      const size = JSON.stringify(whole.structuredContent).length;
      expect((await (await connect(size)).callTool(params)).structuredContent).toEqual(
        whole.structuredContent,
      );
      expect(kept).toEqual([]);
      const cut = (await (await connect(size - 1)).callTool(params)) as CallToolResult;
      expect(cut.structuredContent).toBeUndefined();
      expect(cut.content.at(-1)).toMatchObject({ type: "resource_link", uri: "kept://1" });
      expect(JSON.parse(kept.pop()?.text ?? "")).toEqual(whole.structuredContent);
    }
  });

  it("RE-30 answers each call of a batch in its place, malformed ones too", async () => {
    const client = await legacyClient(toMcpServer(registry, { catalogue: true }));
    const calls = [7, { id: "text.shout", input: "a" }, { id: "text.shout" }, null];
    const { structuredContent } = await client.callTool({ name: "batch", arguments: { calls } });
    expect(structuredContent).toMatchObject({
      results: [
        { outcome: "call-error", error: { code: "OPERATION_NOT_FOUND" } },
        { outcome: "ok", data: "a!" },
        { outcome: "call-error", error: { code: "VALIDATION_ERROR" } },
        { outcome: "call-error" },
      ],
    });
  });
});
