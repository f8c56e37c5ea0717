import { InMemoryTransport as FirstInMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { Server as FirstServer } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { type MCPResponseMeta, OperationRegistry } from "../src/index.ts";
import { type FromMcpOptions, fromMcp } from "../src/mcp/index.ts";
import { closeImported, type Extra, imported, OBJECT, serverOf, text } from "./import-raw-server.ts";
import { rejection } from "./make-operation.ts";
import { serveByHand } from "./mcp-servers/http-servers.ts";
import type { RawMcpServer } from "./raw-mcp-server.ts";

afterEach(closeImported);

describe("importing tools", () => {
  it("RE-22 every tool becomes an operation, whatever its name, and is called by its exact one", async () => {
    const names = [
      "echo",
      "add numbers!",
      "a.b/c-d",
      "日本",
      "x__abcdefghijklm",
      "__proto__",
      "x".repeat(300),
    ];
    const server = serverOf(
      () => names.map((name) => ({ name, inputSchema: OBJECT })),
      ({ name }) => ({ content: [], structuredContent: { name } }),
    );
    const { source, registry } = await imported(server);
    expect(source.operations).toHaveLength(names.length);
    const seen = [];
    for (const { id } of source) seen.push(((await registry.execute(id, {})).data as { name: string }).name);
    expect(seen.sort()).toEqual([...names].sort());
    for (const name of names) expect((await source.call(name, {})).data).toEqual({ name });
  });

  it("RE-22 takes over what a tool says, and keeps what operations have no field for", async () => {
    const icons = [{ src: "data:,", mimeType: "image/png" }];
    const tool = {
      name: "t",
      title: "T",
      description: "Does.",
      inputSchema: { ...OBJECT, properties: { a: { type: "integer" } } },
      outputSchema: OBJECT,
      annotations: {
        readOnlyHint: true,
        destructiveHint: false,
        idempotentHint: true,
        openWorldHint: false,
        title: "no",
      },
      icons,
      execution: { taskSupport: "optional" },
      _meta: { "x/y": 1 },
      tomorrow: true,
    };
    const { source } = await imported(serverOf(() => [tool, { name: "m", inputSchema: OBJECT }]));
    const [mutation, query] = source.operations;
    expect(mutation).toMatchObject({ id: "raw.m", type: "mutation", description: "", version: "1.2.3" });
    const { title: _t, description: _d, inputSchema, outputSchema, ...rest } = tool;
    expect(query).toMatchObject({
      id: "raw.t",
      type: "query",
      title: "T",
      description: "Does.",
      source: "mcp",
      inputSchema,
      outputSchema,
      annotations: { readOnly: true, destructive: false, idempotent: true, openWorld: false },
      _meta: { "dev.waybill/tool": rest },
    });
  });

  it("RE-22 one malformed tool never hides the others", async () => {
    const good = { name: "good", inputSchema: OBJECT };
    const deep = JSON.parse(`${'{"a":'.repeat(400)}1${"}".repeat(400)}`);
    const bad = [null, 7, "x", [], {}, { name: 7 }, { name: "" }, { name: "deep", inputSchema: deep }];
    const { source, registry } = await imported(serverOf(() => [...bad, good, { ...good, title: "again" }]));
    expect(source.operations.map(({ id }) => id)).toEqual(["raw.good"]);
    expect(source.unusable).toHaveLength(bad.length + 1);
    expect(source.unusable.at(-1)).toEqual({
      tool: "good",
      reason: "Another tool before it has the same name.",
    });
    expect(source.unusable[5]).toEqual({ tool: "#6", reason: "It has no name." });
    expect((await registry.execute("raw.good", {})).meta.isError).toBe(false);
  });

  it.each([600, 20_000])("RE-22 one tool that is nested %i deep hides no other over HTTP", async (levels) => {
    const deep = `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
    const tools = `[{"name":"deep","inputSchema":${deep}},{"name":"good","inputSchema":{"type":"object"}}]`;
    const server = await serveByHand(({ id }, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(`{"jsonrpc":"2.0","id":${id},"result":{"tools":${tools}}}`);
    });
    onTestFinished(() => server.close());
    const source = await fromMcp(server.url, { namespace: "raw", onWarning: () => {} });
    onTestFinished(() => source.close());
    expect(source.operations.map(({ id }) => id)).toEqual(["raw.good"]);
    const reason = "Its definition is nested more than 512 levels deep.";
    expect(source.unusable).toEqual([{ tool: "deep", reason }]);
  });

  it.each([
    [
      "draft-07",
      {
        $schema: "http://json-schema.org/draft-07/schema#",
        definitions: { n: { type: "integer" } },
        properties: { n: { $ref: "#/definitions/n" } },
      },
    ],
    [
      "2019-09",
      {
        $schema: "https://json-schema.org/draft/2019-09/schema",
        $defs: { n: { type: "integer" } },
        properties: { n: { $ref: "#/$defs/n" } },
      },
    ],
    [
      "2020-12",
      {
        $schema: "https://json-schema.org/draft/2020-12/schema",
        properties: { n: { type: "integer" } },
        required: ["n"],
      },
    ],
    ["no type", { anyOf: [{ properties: { n: { type: "integer" } } }] }],
  ])("RE-32 honours an output schema of %s", async (_, outputSchema) => {
    let n: unknown = 1;
    const server = serverOf(
      () => [{ name: "t", inputSchema: OBJECT, outputSchema }],
      () => ({ content: [], structuredContent: { n } }),
    );
    const { registry, source } = await imported(server);
    expect(source.notes).toEqual([]);
    expect((await registry.execute("raw.t", {})).meta.waybill).toEqual({ obtained: "structured-content" });
    n = "one";
    const { data, meta } = await registry.execute("raw.t", {});
    expect(data).toEqual({ n: "one" });
    expect(meta.waybill?.violations?.length).toBeGreaterThan(0);
  });

  it("RE-32 schemas that are refused leave the tool usable, and it is said", async () => {
    const loop = { $defs: { a: { $ref: "#/$defs/a" } }, $ref: "#/$defs/a" };
    const tools = [
      { name: "in", inputSchema: loop },
      { name: "out", inputSchema: true, outputSchema: loop },
      { name: "none" },
    ];
    const { source, registry, warnings } = await imported(
      serverOf(
        () => tools,
        () => ({ content: [text("ok")] }),
      ),
    );
    expect(source.unusable).toEqual([]);
    expect(source.notes.map(({ tool }) => tool)).toEqual(["in", "out", "none"]);
    expect(warnings).toHaveLength(3);
    for (const { name } of tools)
      expect((await registry.execute(`raw.${name}`, {})).data).toEqual([text("ok")]);
  });

  it("Mcp: cleans what people see, keeps the original, and says so", async () => {
    const tool = { name: "t", title: "T\u202E", description: "a\u200Bb\u001B[2J", inputSchema: OBJECT };
    const { source, warnings } = await imported(serverOf(() => [tool]));
    expect(source.operations[0]).toMatchObject({
      title: "T",
      description: "ab",
      _meta: {
        "dev.waybill/tool": {
          original: { title: "T\u202E", description: "a\u200Bb\u001B[2J" },
          findings: { title: [{ kind: "bidi", count: 1 }] },
        },
      },
    });
    expect(warnings).toHaveLength(2);
  });

  it("Mcp: holds each definition, and the number of tools, to their limits", async () => {
    const tool = { name: "t", inputSchema: OBJECT };
    const size = JSON.stringify(tool).length;
    const fits = await imported(
      serverOf(() => [tool]),
      { limits: { definitionBytes: size } } as Extra,
    );
    expect(fits.source.unusable).toEqual([]);
    const tight = await imported(
      serverOf(() => [tool]),
      { limits: { definitionBytes: size - 1 } } as Extra,
    );
    expect(tight.source.unusable[0]?.reason).toBe(`Its definition is larger than ${size - 1} bytes.`);
    const two = serverOf(() => [tool, { ...tool, name: "u" }]);
    expect((await imported(two, { limits: { tools: 2 } } as Extra)).warnings).toEqual([]);
    expect((await imported(two, { limits: { tools: 1 } } as Extra)).source.operations).toHaveLength(1);
    expect(String(await rejection(imported(two, { limits: { pages: 0 } } as Extra)))).toContain(
      "limits.pages",
    );
  });

  it("RE-22 two servers with the same tools do not collide, and a filter leaves tools out", async () => {
    const server = () =>
      serverOf(() => [
        { name: "a", inputSchema: OBJECT },
        { name: "b", inputSchema: OBJECT },
      ]);
    const first = await imported(server(), { filter: (name: string) => name === "a" });
    const second = await imported(server(), { namespace: "other" });
    const both = new OperationRegistry();
    both.registerAll(first.source);
    both.registerAll(second.source);
    expect(both.list().map(({ id }) => id)).toEqual(["other.a", "other.b", "raw.a"]);
    expect(await rejection(first.source.call("b", {}))).toMatchObject({ code: "OPERATION_NOT_FOUND" });
  });

  it("Mcp: refuses options that cannot work before anything is started", async () => {
    const { transport } = serverOf(() => []);
    for (const options of [{}, { namespace: "a.b" }, { keepIds: true, pin: { lockFile: "x" } }]) {
      expect(await rejection(fromMcp({ transport }, options as FromMcpOptions))).toBeInstanceOf(TypeError);
    }
  });
});

describe("servers of the first SDK", () => {
  it("RE-22 RE-23 are imported and called", async () => {
    const server = new FirstServer({ name: "first", version: "1.0.0" }, { capabilities: { tools: {} } });
    const outputSchema = { type: "object" as const, properties: { sum: { type: "number" } } };
    server.setRequestHandler(ListToolsRequestSchema, () => ({
      tools: [
        {
          name: "add",
          inputSchema: { type: "object" as const },
          outputSchema,
          annotations: { readOnlyHint: true },
        },
      ],
    }));
    server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
      const { a, b } = params.arguments as { a: number; b: number };
      return { content: [{ type: "text", text: String(a + b) }], structuredContent: { sum: a + b } };
    });
    const transport = () => {
      const [here, there] = FirstInMemoryTransport.createLinkedPair();
      void server.connect(there);
      return here as unknown as ReturnType<RawMcpServer["transport"]>;
    };
    const { registry } = await imported({ transport });
    const envelope = await registry.execute("raw.add", { a: 1, b: 2 });
    expect(envelope.data).toEqual({ sum: 3 });
    expect((envelope.meta as MCPResponseMeta).content).toEqual([text("3")]);
  });
});
