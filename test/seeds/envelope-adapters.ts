import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished } from "vitest";
import {
  createClient,
  httpEnvelope,
  type OperationRegistry,
  outcomeOf,
  ToolResultError,
  Type,
  toolError,
  withCursor,
} from "../../src/index.ts";
import { mapMCPContentBlocks, toMcpServer } from "../../src/mcp/index.ts";
import { createHttpHandler, fromOpenApi, toOpenApi } from "../../src/openapi/index.ts";
import { closeImported, imported, OBJECT, serverOf, text } from "../import-raw-server.ts";
import { collect, query, rejection, stream } from "../make-operation.ts";
import { CLIENTS } from "../mcp-server-peers.ts";
import { registryOf, type SeedDocument } from "./sentence.ts";

const COUNT = { type: "object", properties: { count: { type: "integer" } }, required: ["count"] };
const CONTENT = [text("Two.")];
const code = (expected: string) => expect.objectContaining({ code: expected });

/** One tool that answers with this result, imported. */
async function toolThat(result: object, tool: object = {}): Promise<OperationRegistry> {
  const server = serverOf(
    () => [{ name: "tool", inputSchema: OBJECT, ...tool }],
    () => result,
  );
  const { registry } = await imported(server);
  onTestFinished(closeImported);
  return registry;
}

const callTool = async (result: object, tool: object = {}) =>
  (await toolThat(result, tool)).execute("raw.tool", {});

/** One operation of an API that answers like this, imported; the schema is that of its JSON. */
async function apiThat(
  answer: (response: ServerResponse, url: string) => void,
  schema: object = {},
): Promise<OperationRegistry> {
  const server = createServer(({ url = "" }, response) => answer(response, url));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const parameters = [{ name: "page", in: "query", schema: { type: "integer" } }];
  const responses = { 200: { description: "", content: { "application/json": { schema } } } };
  const document = {
    openapi: "3.1.0",
    info: { title: "Api", version: "1" },
    paths: { "/thing": { get: { operationId: "read", parameters, responses } } },
  };
  const baseUrl = `http://127.0.0.1:${port}`;
  const source = await fromOpenApi(document, { namespace: "api", baseUrl, retry: false });
  onTestFinished(async () => {
    await source.close();
    await new Promise((resolve) => server.close(resolve));
  });
  const registry = registryOf([]);
  registry.registerAll(source);
  return registry;
}

const callApi = async (body: string | Uint8Array, contentType?: string, schema: object = {}) => {
  const registry = await apiThat((response) => {
    if (contentType !== undefined) response.setHeader("content-type", contentType);
    response.end(body);
  }, schema);
  return registry.execute("api.read", {});
};

const refusedApi = async (status: number) => {
  const registry = await apiThat((response) => response.writeHead(status).end());
  return rejection(registry.execute("api.read", {}));
};

const normalised = (data: unknown, outputSchema: object) =>
  registryOf([query("a.b", () => data, { outputSchema })]).execute("a.b", {});

const Named = {
  type: "object",
  properties: {
    name: { type: "string" },
    count: { type: "integer" },
    lang: { type: "string", default: "en" },
  },
  required: ["name", "count"],
};

/** The second half of the proposal: what comes from MCP servers and APIs, what becomes of data, and the open questions. */
export const envelopeAdapters: SeedDocument = {
  "MCP adapter": [
    [
      "RE-22 RE-23",
      "a tool with an outputSchema: the structured content is the data, and the schema that of the operation",
      async () => {
        const result = { content: CONTENT, structuredContent: { count: 2 } };
        const registry = await toolThat(result, { outputSchema: COUNT });
        expect(registry.get("raw.tool")?.outputSchema).toMatchObject(COUNT);
        const envelope = await registry.execute("raw.tool", {});
        expect(envelope.data).toEqual({ count: 2 });
        expect(envelope.meta).toMatchObject({ source: "mcp", structuredContent: { count: 2 } });
      },
    ],
    [
      "RE-22 RE-23",
      "a tool without one: no schema is known, and the blocks are the data",
      async () => {
        const registry = await toolThat({ content: CONTENT });
        expect(registry.get("raw.tool")?.outputSchema).toBeUndefined();
        expect((await registry.execute("raw.tool", {})).data).toEqual(CONTENT);
      },
    ],
    [
      "RE-23",
      "structured content is preferred where a tool without a schema has it too",
      async () => {
        const envelope = await callTool({ content: CONTENT, structuredContent: { any: 1 } });
        expect(envelope.data).toEqual({ any: 1 });
      },
    ],
    [
      "RE-4 RE-23",
      "the blocks are in meta.content in any case",
      async () => {
        for (const more of [{}, { structuredContent: { count: 2 } }, { isError: true }])
          expect((await callTool({ content: CONTENT, ...more })).meta).toMatchObject({ content: CONTENT });
      },
    ],
    [
      "RE-4",
      "a consumer tells by meta.source and meta.structuredContent which of the two it has",
      async () => {
        const { meta } = await callTool({ content: CONTENT });
        expect(meta.source).toBe("mcp");
        expect(meta).not.toHaveProperty("structuredContent");
      },
    ],
    [
      "RE-23",
      "null as structured content counts as none",
      async () => {
        for (const structuredContent of [null, 0, false, "", []]) {
          const envelope = await callTool({ content: CONTENT, structuredContent });
          expect(envelope.data).toEqual(structuredContent);
        }
      },
      "Presence, not truthiness",
    ],
    [
      "RE-4",
      "the _meta of a result goes along",
      async () => {
        const { meta } = await callTool({ content: CONTENT, _meta: { "com.example/x": 1 } });
        expect(meta).toMatchObject({ _meta: { "com.example/x": 1 } });
      },
    ],
    [
      "RE-12 RE-22",
      "the declared schema is what the data is held against",
      async () => {
        const { meta } = await callTool(
          { content: CONTENT, structuredContent: { count: "many" } },
          { outputSchema: COUNT },
        );
        expect(meta.waybill?.violations).toMatchObject([{ pointer: "/count" }]);
      },
    ],
    [
      "RE-13",
      "what a server adds beyond its schema is taken away, and defaults are filled in",
      async () => {
        const properties = { count: { type: "integer" }, unit: { type: "string", default: "kg" } };
        const { data, meta } = await callTool(
          { content: CONTENT, structuredContent: { count: 2, trace: "x" } },
          { outputSchema: { type: "object", properties } },
        );
        expect(data).toEqual({ count: 2, unit: "kg" });
        expect(meta.waybill?.normalization).toMatchObject({ stripped: ["/trace"], defaulted: ["/unit"] });
      },
    ],
    [
      "RE-13",
      "without a schema nothing is changed",
      async () => {
        const structuredContent = { count: "2", trace: "x" };
        const { data, meta } = await callTool({ content: CONTENT, structuredContent });
        expect(data).toEqual(structuredContent);
        expect(meta.waybill ?? {}).not.toHaveProperty("normalization");
      },
    ],
    [
      "RE-23",
      "isError: true does not throw: what the tool said is in the data and in meta.content",
      async () => {
        const envelope = await callTool({ content: CONTENT, isError: true });
        expect(outcomeOf(envelope)).toBe("tool_error");
        expect(envelope.data).toEqual(CONTENT);
        expect(envelope.meta).toMatchObject({ isError: true, content: CONTENT });
      },
    ],
    [
      "RE-23",
      "isError that is not there is false",
      async () => expect((await callTool({ content: CONTENT })).meta.isError).toBe(false),
    ],
    [
      "RE-23",
      "what goes wrong on the way throws a CallError: no such tool, no connection",
      async () => {
        const registry = await toolThat({ content: [] });
        expect(await rejection(registry.execute("raw.none", {}))).toEqual(code("OPERATION_NOT_FOUND"));
        const broken = serverOf(
          () => [{ name: "tool", inputSchema: OBJECT }],
          () => {
            throw { code: -32_602, message: "Unknown tool" };
          },
        );
        const gone = (await imported(broken)).registry;
        await expect(gone.execute("raw.tool", {})).rejects.toMatchObject({ name: "CallError" });
        await closeImported();
        await expect(gone.execute("raw.tool", {})).rejects.toMatchObject({ name: "CallError" });
      },
    ],
    [
      "RE-24",
      "blocks are mapped one to one, field by field",
      () => {
        const blocks = [
          { type: "text", text: "x", annotations: { priority: 1 } },
          { type: "image", data: "AAAA", mimeType: "image/png" },
          { type: "resource_link", uri: "a:b", name: "B" },
        ];
        expect(mapMCPContentBlocks(blocks)).toEqual(blocks);
      },
    ],
    [
      "RE-24",
      "a block of a kind that nobody knows yet becomes a text block with its JSON",
      () => {
        const block = { type: "hologram", beam: 3 };
        expect(mapMCPContentBlocks([block])).toEqual([text(JSON.stringify(block))]);
      },
    ],
  ],
  "OpenAPI adapter": [
    [
      "RE-25",
      "a status that says error throws a CallError",
      async () => {
        for (const status of [400, 401, 403, 404, 409, 429, 500, 503])
          expect(await refusedApi(status)).toMatchObject({ name: "CallError" });
      },
    ],
    [
      "RE-25 X-5",
      "the code of that error is EXECUTION_ERROR, whatever the status",
      async () => {
        expect(await refusedApi(404)).toEqual(code("NOT_FOUND"));
        expect(await refusedApi(403)).toEqual(code("ACCESS_DENIED"));
        expect(await refusedApi(500)).toEqual(code("EXECUTION_ERROR"));
      },
      "One error table holds every code",
    ],
    [
      "RE-25 RE-3",
      "a success has an envelope with status, headers and content type",
      async () => {
        const envelope = await callApi('{"id":1}', "application/json");
        expect(envelope.data).toEqual({ id: 1 });
        expect(envelope.meta).toMatchObject({
          source: "http",
          statusCode: 200,
          headers: { "content-type": "application/json" },
          contentType: "application/json",
        });
      },
    ],
    [
      "RE-3",
      "headers are a plain record, with the values of one name joined",
      async () => {
        const registry = await apiThat((response) => {
          response.setHeader("content-type", "application/json");
          response.setHeader("x-tag", ["a", "b"]).end("1");
        });
        const { meta } = await registry.execute("api.read", {});
        expect(meta).toMatchObject({ headers: { "x-tag": "a, b" } });
        expect(JSON.parse(JSON.stringify(meta))).toEqual(meta);
      },
    ],
    [
      "RE-3",
      "without the header the content type is an empty text",
      async () => expect((await callApi("")).meta).toMatchObject({ contentType: "" }),
    ],
    [
      "RE-26",
      "JSON is parsed, what is called +json too",
      async () => {
        for (const type of ["application/json; charset=utf-8", "application/problem+json"])
          expect((await callApi('{"id":1}', type)).data).toEqual({ id: 1 });
      },
    ],
    ["RE-26", "text is a string", async () => expect((await callApi("a,b", "text/csv")).data).toBe("a,b")],
    [
      "RE-26",
      "anything else is an ArrayBuffer",
      async () => {
        const { data } = await callApi(new Uint8Array([1, 255]), "application/octet-stream");
        expect(data).toEqual(new Uint8Array([1, 255]));
      },
      "the rest as a `Uint8Array`",
    ],
    [
      "RE-13",
      "the body is brought to the schema of the response",
      async () => {
        const { data } = await callApi('{"name":"x","count":2,"more":1}', "application/json", Named);
        expect(data).toEqual({ name: "x", count: 2, lang: "en" });
      },
    ],
    [
      "RE-6 RE-11",
      "adapters build envelopes with the factories: the registry lets them through, with their own meta",
      async () => {
        expect((await callApi("1", "application/json")).meta).not.toHaveProperty("operationId");
        expect((await callTool({ content: CONTENT })).meta).not.toHaveProperty("operationId");
      },
    ],
  ],
  "Normalisation of data": [
    [
      "RE-13",
      "properties that the schema does not have are taken away, and missing ones with a default are filled in",
      async () => {
        const { data } = await normalised({ name: "x", count: 1, more: 1 }, Named);
        expect(data).toEqual({ name: "x", count: 1, lang: "en" });
      },
    ],
    [
      "RE-13",
      "values are brought to the declared type",
      async () => {
        const { data, meta } = await normalised({ name: "x", count: "7", lang: "de" }, Named);
        expect(data).toEqual({ name: "x", count: 7, lang: "de" });
        expect(meta.waybill?.normalization).toMatchObject({ converted: ["/count"] });
      },
    ],
    [
      "RE-13",
      "what is missing without a default is filled in too, so that the data always fits",
      async () => {
        for (const data of [{}, null, { error: "down" }]) {
          const envelope = await normalised(data, Named);
          expect(envelope.data).toEqual(data);
          expect(envelope.meta.waybill?.violations?.length).toBeGreaterThan(0);
        }
      },
      "Never invent data",
    ],
    [
      "RE-12 RE-13",
      "data is checked as well as normalised: where both fail the warning stands",
      async () => {
        const wrong = await normalised({ name: [], count: 1, more: 1 }, Named);
        expect(wrong.meta.waybill?.violations).toMatchObject([{ pointer: "/name" }]);
        const strict = registryOf([query("a.b", () => ({ name: [] }), { outputSchema: Named })], {
          outputPolicy: "strict",
        });
        expect(await rejection(strict.execute("a.b", {}))).toEqual(code("OUTPUT_INVALID"));
      },
    ],
    [
      "RE-13",
      "a schema that says nothing changes nothing",
      async () => {
        const data = { a: "1" };
        for (const schema of [{}, Type.Unknown()]) expect((await normalised(data, schema)).data).toBe(data);
      },
    ],
    [
      "RE-12",
      "outputSchema is about the data; the envelope has a schema of its own, which no operation declares",
      async () => {
        const operation = query(
          "a.b",
          () => httpEnvelope({ name: "x", count: 1, lang: "en" }, { statusCode: 200, headers: {} }),
          {
            outputSchema: Named,
          },
        );
        const envelope = await registryOf([operation]).execute("a.b", {});
        expect(envelope.meta.waybill ?? {}).not.toHaveProperty("violations");
        expect(envelope.meta.source).toBe("http");
      },
    ],
  ],
  "Open questions": [
    [
      "RE-27",
      "a client that throws where a result is an error, with the envelope at hand",
      async () => {
        const client = createClient(
          registryOf([query("a.no", () => toolError({ why: 1 })), query("a.yes", () => 7)]),
        );
        expect(await client.call("a.yes")).toBe(7);
        const thrown = (await rejection(client.call("a.no"))) as ToolResultError;
        expect(thrown).toBeInstanceOf(ToolResultError);
        expect(thrown.envelope.data).toEqual({ why: 1 });
      },
    ],
    [
      "RE-27",
      "a client that finds the next page in headers of HTTP",
      async () => {
        const registry = await apiThat(
          (response, url) => {
            const page = Number(new URL(url, "http://x").searchParams.get("page") ?? 1);
            const [to, rel] = page < 3 ? [page + 1, "next"] : [page - 1, "prev"];
            response.setHeader("link", `</thing?page=${to}>; rel="${rel}"`);
            response.setHeader("content-type", "application/json").end(JSON.stringify([page]));
          },
          { type: "array", items: { type: "integer" } },
        );
        expect(await collect(createClient(registry).pages("api.read", {}))).toEqual([[1], [2], [3]]);
      },
    ],
    [
      "RE-28",
      "values of a subscription have a number, and may have a cursor",
      async () => {
        const values = async function* () {
          yield "a";
          yield withCursor("b", "after-b");
        };
        const found = await collect(registryOf([stream("a.s", values)]).subscribe("a.s"));
        expect(found.map(({ meta }) => meta.waybill?.sequence)).toEqual([0, 1]);
        expect(found.map(({ meta }) => meta.waybill?.cursor)).toEqual([undefined, "after-b"]);
      },
    ],
    [
      "RE-30",
      "operations served over MCP answer with content and structured content",
      async () => {
        const server = toMcpServer(registryOf([query("a.b", () => ({ n: 1 }))]));
        const client = await CLIENTS["SDK 2, 2025"](server);
        onTestFinished(async () => {
          await client.close();
          await server.close();
        });
        const result = await client.callTool({ name: "a_b", arguments: {} });
        expect(result).toMatchObject({ content: [text('{"n":1}')], structuredContent: { n: 1 } });
      },
    ],
    [
      "RE-30",
      "operations served over HTTP answer with a body, and a document describes them",
      async () => {
        const registry = registryOf([query("a.b", () => ({ n: 1 }))]);
        const handler = createHttpHandler(registry);
        const response = await handler.fetch(
          new Request("http://127.0.0.1/call", {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ operation: "a.b", input: {} }),
          }),
        );
        expect([response.status, await response.json()]).toEqual([200, { n: 1 }]);
        expect(JSON.stringify(toOpenApi(registry))).toContain("a.b");
        await handler.close();
      },
    ],
    [
      "RE-31",
      "JSON in a text block is data where the tool declares a schema that it fits, and said to be recovered",
      async () => {
        const content = [text('{"count":2}')];
        const declared = await callTool({ content }, { outputSchema: COUNT });
        expect([declared.data, declared.meta.waybill?.obtained]).toEqual([{ count: 2 }, "text-json"]);
        expect((await callTool({ content })).data).toEqual(content);
      },
    ],
    [
      "RE-32",
      "a schema with features that a conversion might not know becomes unknown",
      async () => {
        const outputSchema = {
          type: "object",
          properties: { node: { $ref: "#/$defs/node" } },
          patternProperties: { "^x-": { type: "integer" } },
          dependentRequired: { node: ["x-a"] },
          unevaluatedProperties: false,
          $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } } },
        };
        const right = { node: { next: { next: {} } }, "x-a": 1 };
        const result = { content: [], structuredContent: right };
        expect((await callTool(result, { outputSchema })).meta.waybill ?? {}).not.toHaveProperty(
          "violations",
        );
        const wrong = { content: [], structuredContent: { node: { next: 5 }, "x-a": "b" } };
        const { meta } = await callTool(wrong, { outputSchema });
        expect(meta.waybill?.violations?.map(({ pointer }) => pointer)).toEqual(
          expect.arrayContaining(["/node/next", "/x-a"]),
        );
      },
      "nothing silently becomes unknown",
    ],
  ],
};
