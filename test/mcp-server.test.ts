import { describe, expect, it } from "vitest";
import { createMemoryStore, createResultFormat } from "../src/formats/index.ts";
import { type CallToolResult, OperationRegistry } from "../src/index.ts";
import { toMcpServer } from "../src/mcp/index.ts";
import { query, rejection, sleep } from "./make-operation.ts";
import { facts, PAIR, registry } from "./mcp-server-operations.ts";
import { CLIENTS, legacyClient, modernClient } from "./mcp-server-peers.ts";

describe.each(Object.entries(CLIENTS))("a server seen by %s", (kind, connect) => {
  const isModern = kind.endsWith("2026");

  it("RE-30 lists what everybody may call, in the order of ids, each with its facts", async () => {
    const client = await connect(toMcpServer(registry));
    const { tools } = await client.listTools();
    expect(tools.map((tool) => tool.name)).toEqual([
      "math_add",
      "math_broken",
      "math_domain",
      "math_no",
      "math_shout",
      "math_when",
      "web_page",
    ]);
    const number = { type: "number" };
    expect(tools[0]).toMatchObject({
      title: "Add",
      description: "Adds.",
      inputSchema: PAIR,
      outputSchema: isModern
        ? number
        : { type: "object", properties: { result: number }, required: ["result"] },
      annotations: { readOnlyHint: true },
      _meta: { "dev.waybill/operation": { id: "math.add", type: "query", version: "1.0.0", tags: ["sum"] } },
    });
    await client.close();
  });

  it("RE-30 gives data as structured content and as text, scalars too", async () => {
    const client = await connect(toMcpServer(registry));
    await client.listTools();
    const result = await client.callTool({ name: "math_add", arguments: { a: 1, b: 2 } });
    expect(result.content).toEqual([{ type: "text", text: "3" }]);
    expect(result.structuredContent).toEqual(isModern ? 3 : { result: 3 });
    expect(facts(result)).toEqual(isModern ? undefined : { wrapsResult: true });
    await client.close();
  });

  it("RE-30 answers bad input with a tool error that names the places", async () => {
    const client = await connect(toMcpServer(registry));
    await client.listTools();
    const result = await client.callTool({ name: "math_add", arguments: { a: "x", b: 2 } });
    expect(result.isError).toBe(true);
    expect(JSON.stringify(result.content)).toContain("- a must be ");
    expect(facts(result)).toMatchObject({
      outcome: "call-error",
      code: "VALIDATION_ERROR",
      correctable: true,
      details: { issues: [{ pointer: "/a" }] },
    });
    await client.close();
  });

  it("X-4 keeps the outcome of a tool error where no client throws it away", async () => {
    const client = await connect(toMcpServer(registry));
    await client.listTools();
    const result = await client.callTool({ name: "math_no", arguments: {} });
    expect(result).toMatchObject({
      isError: true,
      content: [{ text: "Nothing left. [SOLD_OUT]" }, { text: '{"left":2}' }],
    });
    expect(result.structuredContent).toBeUndefined();
    expect(facts(result)).toMatchObject({ outcome: "tool-error", code: "SOLD_OUT", wire: { left: 2 } });
    await client.close();
  });

  it("RE-30 says why a call failed, and never in foreign words", async () => {
    const client = await connect(toMcpServer(registry));
    const broken = await client.callTool({ name: "math_broken" });
    expect(broken.isError).toBe(true);
    expect(JSON.stringify(broken)).not.toContain("hunter2");
    const domain = await client.callTool({ name: "math_domain" });
    expect(domain.content).toEqual([{ type: "text", text: 'Slow down. [RATE_LIMITED]\n{"seconds":3}' }]);
    expect(facts(domain)).toMatchObject({ code: "RATE_LIMITED", retryable: true, details: { seconds: 3 } });
    await client.close();
  });

  it.each(["math_nothing", "math_admin", "math_hidden", "", "__proto__", "x".repeat(10_000)])(
    "RE-30 knows no tool %.20s",
    async (name) => {
      const client = await connect(toMcpServer(registry));
      expect(await rejection(client.callTool({ name }))).toMatchObject({ code: -32602 });
      await client.close();
    },
  );

  it("RE-30 a tool one may not see is as unknown as one that is not there, whatever is wrong with the call", async () => {
    const client = await connect(toMcpServer(registry));
    const say = async (name: string) => {
      const asked = { method: "tools/call", params: { name, arguments: { input: 5, region: "eu" } } };
      const error = (await rejection(client.request(asked as never))) as Error;
      return error.message.replace(name, "it");
    };
    expect(await say("math_admin")).toBe(await say("math_nothing"));
    await client.close();
  });

  it("RE-30 shows and runs more for a caller who may do more", async () => {
    const identity = { subject: "ann", scopes: ["admin"] };
    const client = await connect(toMcpServer(registry), { identity });
    const { tools } = await client.listTools();
    expect(tools.map((tool) => tool.name)).toContain("math_admin");
    expect(await client.callTool({ name: "math_admin" })).toMatchObject({ content: [{ text: "ok" }] });
    await client.close();
  });

  it("RE-30 takes input that is no object as the member input", async () => {
    const client = await connect(toMcpServer(registry));
    const { tools } = await client.listTools();
    const shout = tools.find((tool) => tool.name === "math_shout");
    expect(shout?.inputSchema).toMatchObject({ properties: { input: { type: "string" } } });
    expect(shout?._meta?.["dev.waybill/operation"]).toMatchObject({ wrapsInput: true });
    const result = await client.callTool({ name: "math_shout", arguments: { input: "hey" } });
    expect(result.content).toEqual([{ type: "text", text: "hey!" }]);
    await client.close();
  });

  it("X-6 sends what JSON cannot hold in its wire form beside it", async () => {
    const client = await connect(toMcpServer(registry));
    const result = await client.callTool({ name: "math_when" });
    expect(result.content).toEqual([{ type: "text", text: "1970-01-01T00:00:00.000Z" }]);
    expect(JSON.stringify(facts(result))).toContain('"date"');
    await client.close();
  });

  it("RE-23 passes on what an MCP tool answered, except what only we may say", async () => {
    const client = await connect(toMcpServer(registry));
    const result = await client.callTool({ name: "web_page" });
    expect(result).toMatchObject({ content: [{ type: "image" }], structuredContent: { n: 1 } });
    expect(result._meta?.["x/y"]).toBe(1);
    expect(facts(result)).toBeUndefined();
    await client.close();
  });

  it("RE-30 writes the format a client asks for, and names those it knows", async () => {
    const tiered = createResultFormat({ format: "tiered-envelope" });
    const client = await connect(toMcpServer(registry, { formats: [tiered] }));
    const _meta = { "dev.waybill/format": tiered.name };
    const { tools } = await client.listTools({ _meta });
    expect(tools[0]?.outputSchema).toMatchObject({ required: expect.arrayContaining(["tier"]) });
    const result = await client.callTool({ name: "math_add", arguments: { a: 1, b: 2 }, _meta });
    expect(result.structuredContent).toMatchObject({ tier: "community", data: 3 });
    const bad = client.listTools({ _meta: { "dev.waybill/format": "nope" } });
    expect(await rejection(bad)).toMatchObject({ code: -32602, message: expect.stringContaining("plain") });
    await client.close();
  });
});

describe("toMcpServer", () => {
  it("RE-30 pages through many tools, one page of N and one more of one", async () => {
    const many = Array.from({ length: 5 }, (_, i) => query(`many.op${i}`, () => i));
    const server = toMcpServer(new OperationRegistry(many), { limits: { pageSize: 4 } });
    const client = await legacyClient(server);
    const list = async (cursor?: string) =>
      await client.request({ method: "tools/list", params: { ...(cursor && { cursor }) } });
    const first = await list();
    expect(first.tools).toHaveLength(4);
    const second = await list(first.nextCursor);
    expect(second.tools.map((tool) => tool.name)).toEqual(["many_op4"]);
    expect(second.nextCursor).toBeUndefined();
    expect(await rejection(list("junk"))).toMatchObject({ code: -32602 });
    await client.close();
  });

  it("RE-30 sends a long result as a preview and a link that can be read, whole and in parts", async () => {
    const text = "ä".repeat(5_000);
    const long = query("big.text", () => ({ text }));
    const typed = query("big.promised", () => ({ text }), { outputSchema: { type: "object" } });
    const store = createMemoryStore();
    const limit = JSON.stringify({ text }).length;
    const server = (inlineCharacters: number) =>
      toMcpServer(new OperationRegistry([long, typed]), { store, limits: { inlineCharacters } });
    const whole = await legacyClient(server(limit));
    expect((await whole.callTool({ name: "big_text" })).structuredContent).toEqual({ text });
    const client = await legacyClient(server(limit - 1));
    const result = (await client.callTool({ name: "big_text" })) as CallToolResult;
    expect(result.structuredContent).toBeUndefined();
    const link = result.content.find((block) => block.type === "resource_link");
    const uri = link?.uri ?? "";
    const { contents } = await client.readResource({ uri });
    expect(JSON.parse((contents[0] as { text: string }).text)).toEqual({ text });
    const part = await client.readResource({ uri: `${uri}?offset=2&length=4` });
    expect((part.contents[0] as { text: string }).text).toBe("text");
    await client.listTools();
    const promised = (await client.callTool({ name: "big_promised" })).structuredContent;
    expect(promised).toEqual({ text: expect.stringMatching(/^ä+…$/) });
    const gone = `${uri.slice(0, uri.lastIndexOf("/"))}/AAAAAAAAAAAAAAAAAAAAAA`;
    expect(await rejection(client.readResource({ uri: gone }))).toMatchObject({
      code: -32602,
      message: expect.stringContaining("expired"),
    });
  });

  it("RE-30 says once that tools changed, to peers that stay", async () => {
    const changing = new OperationRegistry([query("a.one", () => 1)]);
    const server = toMcpServer(changing);
    const client = await legacyClient(server);
    let heard = 0;
    client.setNotificationHandler("notifications/tools/list_changed", () => {
      heard += 1;
    });
    changing.register(query("a.two", () => 2));
    changing.register(query("a.three", () => 3));
    await expect.poll(() => heard, { timeout: 20_000 }).toBe(1);
    expect((await client.listTools()).tools).toHaveLength(3);
    await client.close();
    await server.close();
    changing.remove("a.two");
    await sleep(80);
    expect(heard).toBe(1);
  });

  it("RE-30 advertises exactly what is there", async () => {
    const bare = await legacyClient(toMcpServer(registry));
    expect(bare.getServerCapabilities()).toEqual({ tools: { listChanged: true }, logging: {} });
    const full = await modernClient(
      toMcpServer(registry, {
        name: "shop",
        instructions: "Be kind.",
        catalogue: true,
        resources: [{ uri: "x://a", name: "a", read: () => "a" }],
        prompts: [{ name: "p", get: () => "p" }],
      }),
    );
    expect(full.getServerCapabilities()).toEqual({
      tools: {},
      logging: {},
      resources: { subscribe: true },
      prompts: {},
    });
    expect(full.getInstructions()).toBe("Be kind.");
  });

  it("RE-30 answers with an error where a result cannot be written", async () => {
    const circle: Record<string, unknown> = {};
    circle["self"] = circle;
    const operations = [
      query("odd.circle", () => circle),
      query("odd.function", () => ({ f: () => 1, g: [() => 1] })),
    ];
    const client = await legacyClient(toMcpServer(new OperationRegistry(operations)));
    for (const name of ["odd_circle", "odd_function"]) {
      expect(await client.callTool({ name })).toMatchObject({
        isError: true,
        _meta: { "dev.waybill/result": { outcome: "call-error", code: "OUTPUT_INVALID" } },
      });
    }
  });

  it("RE-30 refuses bounds that are none", () => {
    expect(() => toMcpServer(registry, { limits: { pageSize: 0 } })).toThrow(TypeError);
    expect(() => toMcpServer(registry, { limits: { waitingMs: 2 ** 31 } })).toThrow(TypeError);
  });
});
