import { describe, expect, it } from "vitest";
import {
  combineFormats,
  createMemoryStore,
  createResultFormat,
  decodeToolResult,
} from "../src/formats/index.ts";
import { type CallToolResult, OperationRegistry } from "../src/index.ts";
import { toMcpServer } from "../src/mcp/index.ts";
import { query, rejection, stream } from "./make-operation.ts";
import { CLIENTS, legacyClient } from "./mcp-server-peers.ts";

const ROWS = Array.from({ length: 500 }, (_, i) => ({ i, at: new Date(0) }));
const rows = query("big.rows", () => ({ rows: ROWS }), {
  outputSchema: { type: "object", properties: { rows: { type: "array" } }, required: ["rows"] },
});
const bare = query("big.bare", () => ({ rows: ROWS }));
const ticks = stream(
  "big.ticks",
  async function* () {
    for (let i = 10; i < 20; i++) yield { i };
  },
  { outputSchema: { type: "object", properties: { i: { type: "integer" } } } },
);
const registry = new OperationRegistry([rows, bare, ticks]);

const linkOf = ({ content }: CallToolResult): string =>
  content.find((block) => block.type === "resource_link")?.uri ?? "";
const call = async (client: Awaited<ReturnType<typeof legacyClient>>, name: string) =>
  (await client.callTool({ name })) as CallToolResult;

/** What the text of a tool envelope holds. */
function envelopeOf({ content }: CallToolResult): string {
  const mark = "__ENVELOPE_V1__:";
  const block = content
    .map((one) => (one.type === "text" ? one.text : undefined))
    .find((text) => text?.startsWith(mark));
  return Buffer.from(block?.slice(mark.length) ?? "", "base64").toString("utf8");
}

describe.each(Object.entries(CLIENTS))("a big result seen by %s", (_, connect) => {
  it("TR-6 is a preview in a status envelope, whose link leads to the whole", async () => {
    const store = createMemoryStore();
    const format = createResultFormat({
      format: "status-envelope",
      preview: { store, maxCharacters: 1_000 },
    });
    const client = await connect(toMcpServer(registry, { format, store }));
    await client.listTools();
    const result = await call(client, "big_rows");
    const { meta, data } = result.structuredContent as { meta: object; data: { rows: unknown[] } };
    expect(meta).toMatchObject({ status: "ok", truncated: true });
    expect(data.rows.length).toBeGreaterThan(0);
    expect(data.rows.length).toBeLessThan(ROWS.length);
    expect(JSON.stringify(result).length).toBeLessThan(5_000);
    const uri = linkOf(result);
    const { contents } = await client.readResource({ uri });
    expect(JSON.parse((contents[0] as { text: string }).text).data.rows).toHaveLength(ROWS.length);
    const gone = `${uri.slice(0, uri.lastIndexOf("/"))}/AAAAAAAAAAAAAAAAAAAAAA`;
    expect(await rejection(client.readResource({ uri: gone }))).toMatchObject({
      message: expect.stringContaining("expired"),
    });
    await client.close();
  });

  it("RE-30 of a subscription keeps its schema and as many values as fit", async () => {
    const whole = {
      items: Array.from({ length: 10 }, (_, i) => ({ i: i + 10 })),
      count: 10,
      truncated: false,
    };
    const fits = JSON.stringify(whole).length;
    for (const inlineCharacters of [fits, fits - 1]) {
      const store = createMemoryStore();
      const client = await connect(toMcpServer(registry, { store, limits: { inlineCharacters } }));
      await client.listTools();
      const result = await call(client, "big_ticks");
      if (inlineCharacters === fits) expect(result.structuredContent).toEqual(whole);
      else {
        expect(result.structuredContent).toEqual({
          ...whole,
          items: whole.items.slice(0, 9),
          truncated: true,
        });
        const { contents } = await client.readResource({ uri: linkOf(result) });
        expect(JSON.parse((contents[0] as { text: string }).text)).toEqual(whole);
      }
      await client.close();
    }
  });
});

describe("big results", () => {
  it("TR-6 previews the one result of a subscription by the schema of that result", async () => {
    const store = createMemoryStore();
    const format = createResultFormat({ format: "status-envelope", preview: { store, maxCharacters: 100 } });
    const client = await legacyClient(toMcpServer(registry, { format, store }));
    await client.listTools();
    const { structuredContent } = await call(client, "big_ticks");
    expect(structuredContent).toMatchObject({ data: { count: 10, truncated: true } });
    expect(JSON.stringify(structuredContent?.["data"]).length).toBeLessThanOrEqual(100);
  });

  it("RE-30 are cut in the format mcp as in the plain one, and travel in no other way", async () => {
    for (const format of [undefined, createResultFormat("mcp")]) {
      const store = createMemoryStore();
      const client = await legacyClient(
        toMcpServer(registry, { ...(format && { format }), store, limits: { inlineCharacters: 500 } }),
      );
      const result = await call(client, "big_bare");
      expect(result.structuredContent).toBeUndefined();
      expect(JSON.stringify(result).length).toBeLessThan(2_000);
      const { contents } = await client.readResource({ uri: linkOf(result) });
      expect(JSON.parse((contents[0] as { text: string }).text).rows).toHaveLength(ROWS.length);
    }
  });

  it("RE-30 go whole in a tool envelope beside a preview", async () => {
    const store = createMemoryStore();
    const status = createResultFormat({ format: "status-envelope", preview: { store } });
    const format = combineFormats(status, createResultFormat("tool-envelope"));
    const client = await legacyClient(
      toMcpServer(registry, { format, store, limits: { inlineCharacters: 500 } }),
    );
    const result = await call(client, "big_rows");
    expect(envelopeOf(result)).toContain('"i":499');
    expect(JSON.stringify(result.structuredContent)).not.toContain('"i":499');
  });

  it("RE-30 go whole in every format where there is no store", async () => {
    for (const name of ["mcp", "tool-envelope", "tiered-envelope", "status-envelope"] as const) {
      const format = createResultFormat(name);
      const client = await legacyClient(toMcpServer(registry, { format, limits: { inlineCharacters: 500 } }));
      const { data } = decodeToolResult(await call(client, "big_rows"));
      expect((data as { rows: unknown[] }).rows).toHaveLength(ROWS.length);
    }
  });

  it("X-4 that a program keeps itself, without saying whose they are, are read by whoever knows the address", async () => {
    const store = createMemoryStore();
    const server = toMcpServer(registry, { store });
    const { uri } = await store.put({ text: "for everybody", mimeType: "text/plain" });
    for (const identity of [{ subject: "ann" }, { subject: "bob" }, undefined]) {
      const client = await legacyClient(server, identity && { identity });
      expect((await client.readResource({ uri })).contents).toMatchObject([{ text: "for everybody" }]);
    }
  });

  it("RE-30 that a store does not take are failed calls", async () => {
    const store = createMemoryStore({ maxEntryCharacters: 1_000 });
    const status = createResultFormat({ format: "status-envelope", preview: { store } });
    for (const format of [undefined, status, createResultFormat("tiered-envelope")]) {
      const client = await legacyClient(
        toMcpServer(registry, { ...(format && { format }), store, limits: { inlineCharacters: 500 } }),
      );
      expect(await call(client, "big_bare")).toMatchObject({ isError: true });
    }
  });
});
