import { afterEach, describe, expect, it } from "vitest";
import { closeImported, imported, OBJECT, serverOf, text } from "../../../test/import-raw-server.ts";
import { collect } from "../../../test/make-operation.ts";
import { createRawMcpServer } from "../../../test/raw-mcp-server.ts";
import { createClient } from "../../core/client/client.ts";
import type { Pager } from "../../core/operation/operation-types.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { serveMcpHttp } from "../server/serve-http.ts";
import { toMcpServer } from "../server/to-mcp-server.ts";
import { fromMcp } from "./from-mcp.ts";

afterEach(closeImported);

const WRAPPER = { ...OBJECT, properties: { result: { type: "number" } }, required: ["result"] };
const facts = (more: object = {}) => ({
  "dev.waybill/operation": { id: "shop.buy", type: "query", version: "2.0.0", ...more },
});
const wrapped = (value: unknown) => ({
  content: [],
  structuredContent: { result: value },
  _meta: { "dev.waybill/result": { wrapsResult: true } },
});

describe("hidden text in what a server offers", () => {
  it("Mcp: is found in the schemas of a tool, which stay as they came", async () => {
    const inputSchema = {
      ...OBJECT,
      properties: { "a\u200Bb": { type: "string", description: "Say\u202E so\u{E0041}" } },
    };
    const outputSchema = { ...OBJECT, title: "\u001B[31mred" };
    const tools = [
      { name: "t", inputSchema, outputSchema },
      { name: "plain", inputSchema: OBJECT },
    ];
    const { source, warnings } = await imported(serverOf(() => tools));
    const operation = source.operations.find(({ id }) => id === "raw.t");
    expect(operation).toMatchObject({ inputSchema, outputSchema });
    const meta = operation?._meta?.["dev.waybill/tool"] as { findings: Record<string, unknown> };
    expect(Object.keys(meta.findings)).toEqual(["inputSchema", "outputSchema"]);
    expect(meta.findings["inputSchema"]).toHaveLength(3);
    expect(meta.findings["outputSchema"]).toEqual([{ kind: "escape", count: 1 }]);
    expect(source.notes.map(({ tool }) => tool)).toEqual(["t", "t"]);
    expect(warnings).toHaveLength(2);
  });

  it("Mcp: is noted for prompts, resources and templates, which stay as they came", async () => {
    const prompts = [{ name: "p", description: "a\u200Bb" }, { name: "q" }];
    const resources = [{ uri: "x:1", name: "r\u202E" }];
    const resourceTemplates = [{ uriTemplate: "x:{id}", name: "t", title: "\u{E0041}" }];
    const server = createRawMcpServer({
      "tools/list": () => ({ tools: [] }),
      "prompts/list": () => ({ prompts }),
      "resources/list": () => ({ resources }),
      "resources/templates/list": () => ({ resourceTemplates }),
    });
    const { source, warnings } = await imported(server);
    expect(source.notes).toEqual([]);
    for (let again = 0; again < 2; again++) {
      expect(await source.listPrompts()).toEqual(prompts);
      expect(await source.listResources()).toEqual(resources);
      expect(await source.listResourceTemplates()).toEqual(resourceTemplates);
    }
    const noted = source.notes.map(({ tool }) => tool);
    expect(noted).toEqual(["prompt p", "resource x:1", "resource template x:{id}"]);
    expect(warnings).toHaveLength(3);
  });
});

describe("hidden text in the instructions of a server", () => {
  it.each(["2025", "2026"] as const)("Mcp: is noted, over %s", async (protocol) => {
    const server = toMcpServer(new OperationRegistry(), { instructions: "Be\u200B kind." });
    const http = await serveMcpHttp(server);
    const source = await fromMcp({ url: http.url, namespace: "s", protocol, onWarning: () => {} });
    expect(source.server.instructions).toBe("Be\u200B kind.");
    expect(source.notes).toEqual([{ tool: "instructions", note: expect.stringContaining("1 zero-width") }]);
    await source.close();
    await http.close();
    await server.close();
  });
});

describe("what a result says of its own wrapping", () => {
  it.each([
    [
      "a schema that is no wrapper",
      { outputSchema: { ...OBJECT, properties: { result: {} } } },
      { result: 7 },
    ],
    ["no schema, and no word of Waybill", {}, { result: 7 }],
    ["no schema, but the facts of an operation", { _meta: facts() }, 7],
    ["a wrapper", { outputSchema: WRAPPER }, 7],
    ["a wrapper that Waybill made", { outputSchema: WRAPPER, _meta: facts({ wrapsResult: true }) }, 7],
    ["what Waybill did not wrap", { outputSchema: WRAPPER, _meta: facts() }, { result: 7 }],
    [
      "a fact without a wrapper",
      { outputSchema: OBJECT, _meta: facts({ wrapsResult: true }) },
      { result: 7 },
    ],
  ])("X-4 counts beside the schema, never against it: %s", async (_, more, data) => {
    const server = serverOf(
      () => [{ name: "t", inputSchema: OBJECT, ...more }],
      () => wrapped(7),
    );
    for (const keepIds of [false, true]) {
      const { registry } = await imported(server, { keepIds, outputPolicy: "strict" });
      const [operation] = registry.list();
      const envelope = await registry.execute(operation?.id ?? "", {});
      expect([envelope.data, envelope.meta.isError]).toEqual([data, false]);
    }
    const { source } = await imported(server, { unwrapResult: false });
    expect((await source.call("t", {})).data).toEqual({ result: 7 });
  });
});

describe("what an operation declared", () => {
  const specOf = async (tool: object) => {
    const { registry } = await imported(
      serverOf(() => [{ name: "t", ...tool }]),
      { keepIds: true },
    );
    const { inputSchema, annotations } = registry.get("shop.buy") ?? {};
    return { inputSchema, annotations };
  };

  it("X-6 comes back as it was, where the facts say so", async () => {
    const annotations = { readOnlyHint: true };
    const plain = { inputSchema: OBJECT, annotations };
    expect(await specOf({ ...plain, _meta: facts() })).toEqual({ inputSchema: OBJECT });
    expect(await specOf({ ...plain, _meta: facts({ takesAnything: true }) })).toEqual({});
    const readOnly = await specOf({ ...plain, _meta: facts({ declaresReadOnly: true }) });
    expect(readOnly.annotations).toEqual({ readOnly: true });
    const both = { inputSchema: OBJECT, annotations: { readOnlyHint: true, idempotentHint: true } };
    expect((await specOf({ ...both, _meta: facts() })).annotations).toEqual({ idempotent: true });
    const narrow = { ...OBJECT, required: ["a"] };
    const told = await specOf({ inputSchema: narrow, _meta: facts({ takesAnything: true }) });
    expect(told.inputSchema).toEqual(narrow);
  });
});

describe("pages of a foreign tool", () => {
  it("RE-27 are found by the pager given for its name", async () => {
    const server = serverOf(
      () => [{ name: "list", inputSchema: OBJECT }],
      ({ arguments: args }) => {
        const { page = 1 } = args as { page?: number };
        return { content: [text("x")], structuredContent: { page, more: page < 3 } };
      },
    );
    const list: Pager = {
      next: ({ data }) => {
        const { page, more } = data as { page: number; more: boolean };
        return more ? { page: page + 1 } : undefined;
      },
    };
    const { registry } = await imported(server, { pagers: { list } });
    const pages = await collect(createClient(registry).pages("raw.list", {}));
    expect(pages).toEqual([1, 2, 3].map((page) => ({ page, more: page < 3 })));
  });
});
