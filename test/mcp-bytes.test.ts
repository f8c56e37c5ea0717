import { describe, expect, it } from "vitest";
import {
  type CallToolResult,
  createMemoryStore,
  createResultFormat,
  createResultReader,
} from "../src/formats/index.ts";
import { httpEnvelope, OperationRegistry, result, Type, toolError } from "../src/index.ts";
import { fromMcp, serveMcpHttp, toMcpServer } from "../src/mcp/index.ts";
import { closeImported, imported, OBJECT, serverOf } from "./import-raw-server.ts";
import { query } from "./make-operation.ts";
import { CLIENTS } from "./mcp-server-peers.ts";

const PIXEL = Uint8Array.from({ length: 60 }, (_, i) => (i * 37) % 256);
const BASE64 = Buffer.from(PIXEL).toString("base64");
const body = (contentType: string) => () =>
  httpEnvelope(PIXEL, { statusCode: 200, headers: {}, contentType });

const registry = new OperationRegistry(
  [
    query("api.image", body("image/png; name=a")),
    query("api.sound", body("Audio/WAV")),
    query("api.pdf", body("application/pdf")),
    query("api.odd", body("no type")),
    query("own.bytes", () => PIXEL),
    query("own.buffer", () => PIXEL.slice().buffer),
    query("own.nothing", () => new Uint8Array()),
    query("own.nested", () => ({
      name: "a",
      file: PIXEL,
      list: [1, { "a/b~": Uint8Array.of(7) }],
      at: new Date(5),
    })),
    query("own.typed", () => ({ name: "a", file: PIXEL }), {
      outputSchema: Type.Object({ name: Type.String(), file: Type.Unknown() }),
    }),
    query("own.object", () => ({ file: PIXEL }), {
      outputSchema: { type: "object", properties: { file: { type: "object" } }, required: ["file"] },
    }),
    query("own.said", () =>
      result(PIXEL, {
        summary: "A pixel",
        content: [{ type: "image", data: BASE64, mimeType: "image/gif" }],
      }),
    ),
    query("own.error", () => toolError({ dump: PIXEL }, { message: "It broke." })),
    query("own.errorBytes", () => toolError(PIXEL, { message: "It broke." })),
    query("own.many", () => Array.from({ length: 101 }, (_, i) => Uint8Array.of(i))),
    query("own.lookalike", () => ({ text: "[60 bytes]", file: PIXEL })),
  ],
  { onWarning: () => {} },
);
const IDS = registry.list().map(({ id }) => id);
const times = (result: unknown) => JSON.stringify(result).split(BASE64).length - 1;

describe.each(Object.keys(CLIENTS) as (keyof typeof CLIENTS)[])("bytes, to a client of %s", (name) => {
  async function called(id: string): Promise<CallToolResult> {
    const server = toMcpServer(registry, { store: createMemoryStore() });
    const client = await CLIENTS[name](server);
    await client.listTools();
    const sent = (await client.callTool({ name: id.replace(".", "_"), arguments: {} })) as CallToolResult;
    await client.close();
    await server.close();
    return sent;
  }

  it.each([
    ["api.image", { type: "image", data: BASE64, mimeType: "image/png" }],
    ["api.sound", { type: "audio", data: BASE64, mimeType: "audio/wav" }],
    ["api.pdf", { type: "resource", resource: { mimeType: "application/pdf", blob: BASE64 } }],
    ["api.odd", { type: "resource", resource: { mimeType: "application/octet-stream", blob: BASE64 } }],
    ["own.bytes", { type: "resource", resource: { mimeType: "application/octet-stream", blob: BASE64 } }],
  ])("RE-30 are one block with its media type: %s", async (id, block) => {
    const sent = await called(id);
    expect(sent).toMatchObject({ content: [block] });
    expect(sent.content).toHaveLength(1);
    expect(sent).not.toHaveProperty("structuredContent");
    expect([times(sent), JSON.stringify(sent).includes("$waybill")]).toEqual([1, false]);
  });

  it("RE-30 inside data are blocks too, and the data says where they were", async () => {
    const sent = await called("own.nested");
    const data = {
      name: "a",
      file: "[60 bytes]",
      list: [1, { "a/b~": "[1 bytes]" }],
      at: new Date(5).toISOString(),
    };
    expect(sent.structuredContent).toEqual(data);
    expect(sent.content.map(({ type }) => type)).toEqual(["text", "resource", "resource"]);
    expect(times(sent)).toBe(1);
    expect(await called("own.typed")).toMatchObject({ structuredContent: { name: "a", file: "[60 bytes]" } });
  });

  it("RE-30 take the block of the same bytes that the operation wrote, and stand beside errors", async () => {
    const said = await called("own.said");
    expect(said.content).toMatchObject([{ text: "✅ A pixel" }, { type: "image", mimeType: "image/gif" }]);
    expect(times(said)).toBe(1);
    const failed = await called("own.error");
    expect(failed).toMatchObject({ isError: true, content: [{}, {}, { type: "resource" }] });
    expect(times(failed)).toBe(1);
  });

  it("RE-30 stay in the data where its schema would not match without them", async () => {
    expect((await called("own.object")).isError ?? false).toBe(false);
    expect(await called("own.object")).toMatchObject({
      structuredContent: { file: { $waybill: ["bytes", BASE64] } },
    });
  });

  it("RE-30 become a hundred blocks at most", async () => {
    const blocks = (await called("own.many")).content.filter(({ type }) => type === "resource");
    expect(blocks).toHaveLength(100);
  });
});

describe.each(["2025", "2026"] as const)("a Waybill client of %s", (protocol) => {
  const formats = [undefined, "mcp", "status-envelope", "tiered-envelope", "tool-envelope"] as const;

  it.each(formats)("X-6 gets the same bytes over one hop and over two, in the format %s", async (format) => {
    const options = format === undefined ? {} : { format: createResultFormat(format) };
    const reader = format === undefined ? undefined : createResultReader();
    const first = toMcpServer(registry, options);
    const firstHttp = await serveMcpHttp(first);
    const quiet = { onWarning: () => {} };
    const one = await fromMcp(firstHttp.url, { namespace: "x", keepIds: true, protocol, reader, ...quiet });
    const middle = new OperationRegistry([], quiet);
    middle.registerAll(one);
    const second = toMcpServer(middle, options);
    const secondHttp = await serveMcpHttp(second);
    const two = await fromMcp(secondHttp.url, { namespace: "x", keepIds: true, protocol, reader, ...quiet });
    const end = new OperationRegistry([], quiet);
    end.registerAll(two);
    // An error says no more than its words in a tool envelope.
    const ids = format?.endsWith("envelope") ? IDS.filter((id) => !id.includes("error")) : IDS;
    for (const id of ids) {
      const { data } = await registry.execute(id, {});
      const here = data instanceof ArrayBuffer ? new Uint8Array(data) : data;
      expect([id, (await middle.execute(id, {})).data]).toEqual([id, here]);
      // The second hop passes on what an error showed.
      if (!id.includes("error")) expect([id, (await end.execute(id, {})).data]).toEqual([id, here]);
    }
    for (const each of [two, secondHttp, second, one, firstHttp, first]) await each.close();
  });
});

describe.each(["2025", "2026"] as const)("bytes over the budget, to a Waybill client of %s", (protocol) => {
  it("X-10 TR-6 are a link with their media type, whose bytes can be read, and come back exactly", async () => {
    const options = { store: createMemoryStore(), limits: { inlineCharacters: 79 } };
    const server = toMcpServer(registry, options);
    const http = await serveMcpHttp(server);
    const client = await CLIENTS["SDK 1"](server);
    const sent = (await client.callTool({ name: "api_image", arguments: {} })) as CallToolResult;
    expect(sent.content).toMatchObject([{ type: "resource_link", mimeType: "image/png", size: 60 }]);
    const { uri } = sent.content[0] as unknown as { uri: string };
    const { contents } = await client.readResource({ uri });
    expect(contents).toEqual([{ uri, mimeType: "image/png", blob: BASE64 }]);
    const part = await client.readResource({ uri: `${uri}?offset=5&length=2` });
    expect(part.contents).toMatchObject([{ blob: BASE64.slice(4, 8) }]);
    const fits = toMcpServer(registry, { ...options, limits: { inlineCharacters: 80 } });
    const other = await CLIENTS["SDK 1"](fits);
    expect(await other.callTool({ name: "api_image", arguments: {} })).toMatchObject({
      content: [{ type: "image" }],
    });
    const quiet = { onWarning: () => {} };
    const source = await fromMcp(http.url, { namespace: "x", keepIds: true, protocol, ...quiet });
    const there = new OperationRegistry([], quiet);
    there.registerAll(source);
    for (const id of ["api.image", "api.pdf", "own.bytes", "own.nested", "own.said", "own.typed"]) {
      expect([id, (await there.execute(id, {})).data]).toEqual([id, (await registry.execute(id, {})).data]);
    }
    for (const each of [source, other, fits, client, http, server]) await each.close();
  });
});

describe("a server that is not Waybill", () => {
  it("X-4 cannot say where bytes belong, here or further on", async () => {
    const content = [
      { type: "image", data: BASE64, mimeType: "image/png", _meta: { "dev.waybill/bytes": "" } },
    ];
    const { registry: raw } = await imported(
      serverOf(
        () => [{ name: "t", inputSchema: OBJECT }],
        () => ({ content }),
      ),
    );
    expect((await raw.execute("raw.t", {})).data).toEqual(content);
    const server = toMcpServer(raw);
    const client = await CLIENTS["SDK 2, 2025"](server);
    const sent = await client.callTool({ name: "raw_t", arguments: {} });
    expect(sent.content).toEqual([{ type: "image", data: BASE64, mimeType: "image/png" }]);
    await client.close();
    await server.close();
    await closeImported();
  });
});
