import { InMemoryTransport, Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/server/validators/cf-worker";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { closeImported, imported, OBJECT, serverOf, text } from "../../../test/import-raw-server.ts";
import { collect } from "../../../test/make-operation.ts";
import { serveSecondOf } from "../../../test/mcp-servers/http-servers.ts";
import { createRawMcpServer } from "../../../test/raw-mcp-server.ts";
import { createClient } from "../../core/client/client.ts";
import type { Pager } from "../../core/operation/operation-types.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { serveMcpHttp } from "../server/http/serve-mcp-http.ts";
import { toMcpServer } from "../server/to-mcp-server.ts";
import { fromMcp } from "./from-mcp.ts";
import { findHeaderFault } from "./import-tool.ts";

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
    const source = await fromMcp(http.url, { namespace: "s", protocol, onWarning: () => {} });
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

describe("an error that an operation declared", () => {
  const outcome = (code: string) => ({
    content: [text("The shelf is full.")],
    isError: true,
    _meta: {
      "dev.waybill/result": {
        outcome: "call-error",
        code,
        message: "The shelf is full.",
        details: { room: 3 },
      },
    },
  });
  const errors = [
    { code: "SHELF_FULL", description: "No\u200B room.", httpStatus: 507, schema: { type: "nothing" } },
    { code: "CONFLICT", httpStatus: 599 },
  ];
  const failing = (code: string, keepIds: boolean) =>
    imported(
      serverOf(
        () => [{ name: "t", inputSchema: OBJECT, _meta: facts({ errors }) }],
        () => outcome(code),
      ),
      { keepIds },
    );

  it("X-11 is thrown with its code and details where ids are not kept, its sentence as that of the server", async () => {
    const { registry } = await failing("SHELF_FULL", false);
    const [operation] = registry.list();
    expect(operation?.errors).toEqual([{ code: "SHELF_FULL", description: "No room.", httpStatus: 507 }]);
    await expect(registry.execute("raw.t", {})).rejects.toMatchObject({
      code: "SHELF_FULL",
      message: 'The tool "t" failed with SHELF_FULL, an error that it declares.',
      httpStatus: 507,
      details: { room: 3, said: "The shelf is full." },
    });
  });

  it("X-11 changes nothing about the codes of the table, and no other code is believed", async () => {
    const { registry } = await failing("CONFLICT", false);
    await expect(registry.execute("raw.t", {})).rejects.toMatchObject({ code: "CONFLICT", httpStatus: 409 });
    const other = await failing("SOLD_OUT", false);
    expect((await other.registry.execute("raw.t", {})).meta.isError).toBe(true);
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

const named = (name: unknown, type: unknown = "string") => ({ type, "x-mcp-header": name });
const input = (properties: object) => ({ type: "object", properties });

describe("the headers that an input schema names", () => {
  it.each([
    input({ a: named("Region"), b: named("Count", "integer"), c: named("Dry-Run", "boolean") }),
    input({ a: input({ b: named("Region") }) }),
    input({ "x-mcp-header": { type: "number" } }),
    {
      ...input({ a: { type: "string" } }),
      default: { "x-mcp-header": "" },
      examples: [{ "x-mcp-header": 1 }],
    },
    true,
    undefined,
    [],
  ])("Mcp: are right in %j", (schema) => {
    expect(findHeaderFault(schema)).toBeUndefined();
  });

  it.each(["", "a b", "a:b", "Ré", "a\r\nb", "a\u0000", "a/b", 1, null, {}])(
    "Mcp: are wrong where the name is %j",
    (name) => {
      expect(findHeaderFault(input({ a: named(name) }))).toMatch(
        /^The x-mcp-header of its property "a" is no name/,
      );
    },
  );

  it.each(["object", "array", "null", "number", undefined, ["string", "null"]])(
    "Mcp: are wrong where the type is %j",
    (type) => {
      const schema = input({ a: { "x-mcp-header": "A", ...(type !== undefined && { type }) } });
      expect(findHeaderFault(schema)).toMatch(/no string, integer or boolean/);
    },
  );

  it("Mcp: are wrong where two are the same, in whatever case and however deep", () => {
    expect(findHeaderFault(input({ a: named("Region"), b: input({ c: named("rEGION") }) }))).toBe(
      'The x-mcp-header of its property "b.c" is that of another property too.',
    );
  });

  it.each([
    named("A"),
    { items: named("A") },
    { additionalProperties: named("A") },
    { anyOf: [{}, named("A")] },
    { $defs: { d: named("A") } },
    { if: input({ a: named("A") }) },
    input({ a: { type: "array", items: input({ b: named("A") }) } }),
  ])("Mcp: are wrong where not every input has that place: %j", (schema) => {
    expect(findHeaderFault(schema)).toMatch(/stands where no property is/);
  });

  it("Mcp: are looked for in any JSON without harm", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (schema) => {
        expect(["string", "undefined"]).toContain(typeof findHeaderFault(schema));
      }),
    );
  });
});

const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close();
});

const tool = (name: string, a: Record<string, string>) => ({
  name,
  inputSchema: { type: "object" as const, properties: { a } },
});
const TOOLS = [
  tool("plain", { type: "string" }),
  tool("right", { type: "string", "x-mcp-header": "Region" }),
  tool("wrong", { type: "string", "x-mcp-header": "Two Words" }),
];

function createServer(): Server {
  const jsonSchemaValidator = new CfWorkerJsonSchemaValidator();
  const server = new Server(
    { name: "s", version: "1.0.0" },
    { capabilities: { tools: {} }, jsonSchemaValidator },
  );
  server.setRequestHandler("tools/list", () => ({ tools: TOOLS }));
  server.setRequestHandler("tools/call", () => ({ content: [{ type: "text", text: "done" }] }));
  return server;
}

async function importOverHttp(protocol: "2025" | "2026") {
  const { url, close } = await serveSecondOf(createServer);
  opened.push({ close });
  const warnings: string[] = [];
  const onWarning = (message: string) => void warnings.push(message);
  const source = await fromMcp(url, { protocol, namespace: "s", onWarning });
  opened.push(source);
  return { source, warnings };
}

const names = (operations: Iterable<{ readonly name: string }>) => Array.from(operations, ({ name }) => name);

describe("tools whose arguments go along in headers", () => {
  it("RE-22 over HTTP with the 2026-07-28 revision one with a wrong header is unusable, and the others stay", async () => {
    const { source, warnings } = await importOverHttp("2026");
    expect(names(source.operations)).toEqual(["plain", "right"]);
    expect(source.unusable).toEqual([
      { tool: "wrong", reason: 'The x-mcp-header of its property "a" is no name that a header can have.' },
    ]);
    expect(warnings).toHaveLength(1);
    expect((await source.call("right", { a: "é" })).data).toEqual(expect.anything());
  });

  it("RE-22 over HTTP with the 2025 revisions all are usable", async () => {
    const { source } = await importOverHttp("2025");
    expect(names(source.operations)).toEqual(["plain", "right", "wrong"]);
    expect(source.unusable).toEqual([]);
  });

  it("RE-22 over a transport without headers, and with the same revision, all are usable", async () => {
    const transport = () => {
      const [near, far] = InMemoryTransport.createLinkedPair();
      serveStdio(createServer, { transport: far });
      return near as never;
    };
    const source = await fromMcp({ transport }, { namespace: "s", protocol: "2026" });
    opened.push(source);
    expect(names(source.operations)).toEqual(["plain", "right", "wrong"]);
  });
});
