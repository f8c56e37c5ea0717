import { InMemoryTaskStore } from "@modelcontextprotocol/sdk/experimental/tasks";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/server/validators/cf-worker";
import { describe, expect, it } from "vitest";
import { OperationRegistry } from "../src/index.ts";
import { fromMcp, toMcpServer } from "../src/mcp/index.ts";
import { atEnd } from "./gateway-sources.ts";
import { OtherServer } from "./mcp-server-other.ts";
import { legacyClient } from "./mcp-server-peers.ts";
import { APP, APP_SERVERS, clientOf, PAGE, serveConfig, UI } from "./pass-through.ts";

const of = (...sources: readonly string[]): string =>
  `ui://${sources.map((source) => `waybill+${source}/`).join("")}board/view.html`;

/** Two servers with the same page, one of each SDK, behind one gateway, and that one behind another with a server of its own. */
async function serveHops() {
  const a = await APP_SERVERS["SDK 1"]({ label: "one" });
  const b = await APP_SERVERS["SDK 2"]({ label: "two" });
  const inner = await serveConfig({ mcpServers: { a: { url: a.url }, b_c: { url: b.url } } });
  const outer = await serveConfig({ mcpServers: { in: { url: inner }, a: { url: b.url } } });
  return { inner, outer };
}

const TASKS = "io.modelcontextprotocol/tasks";

describe.each([2025, 2026] as const)("what passes through to a client of %s", (era) => {
  it("Mcp: has pages of its own for each server, named the same by tools, results and resources", async () => {
    const { inner, outer } = await serveHops();
    const one = { sources: ["a"], label: "one" };
    const two = { sources: ["b_c"], label: "two" };
    const far = [one, two].map(({ sources, label }) => ({ sources: ["in", ...sources], label }));
    const places = [
      { url: inner, pages: [one, two] },
      { url: outer, pages: [{ sources: ["a"], label: "two" }, ...far] },
    ];
    for (const { url, pages } of places) {
      const client = await clientOf(url, era);
      const { tools } = await client.listTools();
      const { resources } = await client.listResources();
      const uris = pages.map(({ sources }) => of(...sources));
      expect(resources.map(({ uri }) => uri).sort()).toEqual(uris.sort());
      expect(resources[0]).toMatchObject({ mimeType: APP, _meta: { ui: { prefersBorder: true } } });
      for (const { sources, label } of pages) {
        const uri = of(...sources);
        const shown = tools.find(({ _meta }) => _meta?.["ui/resourceUri"] === uri);
        expect(shown?._meta).toMatchObject({
          ui: { resourceUri: uri, visibility: ["model", "app"] },
          other: "kept",
        });
        const { contents } = await client.readResource({ uri });
        const _meta = { ui: { csp: { connectDomains: ["https://example.com"] } } };
        expect(contents).toEqual([{ uri, mimeType: APP, text: `<p>${label}</p>`, _meta }]);
        const called = await client.callTool({ name: shown?.name ?? "", arguments: {} });
        expect(called.content).toEqual([
          { type: "text", text: `${label} shows ${PAGE}` },
          { type: "resource_link", uri, name: "view" },
          {
            type: "resource",
            resource: { uri, mimeType: APP, text: `<p>${label}</p>`, _meta: { "ui/resourceUri": uri } },
          },
        ]);
        expect(called._meta).toMatchObject({ ui: { resourceUri: uri }, by: label });
      }
    }
  });

  it("Mcp: leads back to the right server where tools keep their ids", async () => {
    const { inner } = await serveHops();
    const url = await serveConfig({ mcpServers: { in: { url: inner, keepIds: true } } });
    const client = await clientOf(url, era);
    const { tools } = await client.listTools();
    expect(tools.map(({ _meta }) => _meta?.["ui/resourceUri"])).toEqual([of("in", "a"), of("in", "b_c")]);
    const called = await client.callTool({ name: tools[1]?.name ?? "", arguments: {} });
    expect(called.content[1]).toMatchObject({ uri: of("in", "b_c") });
    const { contents } = await client.readResource({ uri: of("in", "b_c") });
    expect(contents).toMatchObject([{ uri: of("in", "b_c"), text: "<p>two</p>" }]);
  });

  it("Mcp: says of tools what tasks they are here, and not what they are at their own server", async () => {
    const inputSchema = { type: "object" };
    const tools = [
      { name: "long", inputSchema, execution: { taskSupport: "required" } },
      { name: "some", inputSchema, execution: { taskSupport: "optional", other: "kept" } },
    ];
    const { url } = await APP_SERVERS["SDK 2"]({ label: "one", tools });
    const client = await clientOf(await serveConfig({ mcpServers: { a: { url } } }), era);
    const listed = new Map((await client.listTools()).tools.map((tool) => [tool.name, tool]));
    for (const name of ["a_long", "a_some"]) {
      const { taskSupport } = (listed.get(name)?.execution ?? {}) as { readonly taskSupport?: unknown };
      expect(taskSupport).toBe(era === 2025 ? "optional" : undefined);
    }
    expect(Object.hasOwn(client.getServerCapabilities() ?? {}, "tasks")).toBe(era === 2025);
  });

  it("Mcp: tells what each source tells, under its name, to those who may use it", async () => {
    const one = await APP_SERVERS["SDK 1"]({
      label: "one",
      instructions: "# Boards\n\nAsk\u200b first.\n## b\nsecret-of-the-source-1",
    });
    const two = await APP_SERVERS["SDK 2"]({ label: "two", instructions: "Two boards." });
    const inner = await serveConfig({
      mcpServers: {
        a: { url: one.url, headers: { "x-api-key": "secret-of-the-source-1" } },
        b: { url: two.url, policy: { scopes: ["two"] } },
        c: { url: two.url, instructions: false },
        d: { url: two.url },
      },
      policies: { "d.*": { scopes: ["two"] } },
      serve: {
        mcp: { instructions: "Mind the boards." },
        auth: {
          tokens: { some: { token: "s".repeat(32) }, all: { token: "t".repeat(32), scopes: ["two"] } },
        },
      },
    });
    const ofA = "## a\n\n### Boards\n\nAsk first.\n#### b\n***";
    const some = await clientOf(inner, era, { token: "s".repeat(32) });
    expect(some.getInstructions()).toBe(`Mind the boards.\n\n${ofA}`);
    const all = await clientOf(inner, era, { token: "t".repeat(32) });
    const everything = `Mind the boards.\n\n${ofA}\n\n## b\n\nTwo boards.\n\n## d\n\nTwo boards.`;
    expect(all.getInstructions()).toBe(everything);
    const outer = await serveConfig({ mcpServers: { in: { url: inner, bearer: "t".repeat(32) } } });
    const far = await clientOf(outer, era);
    expect(far.getInstructions()).toBe(`## in\n\n${everything.replace(/^#/gm, "###")}`);
  });

  it("Mcp: announces the extensions that pass through, and no other, both ways", async () => {
    const extensions = { [UI]: { mimeTypes: [APP] } };
    const offered = {
      extensions: { [UI]: {}, [TASKS]: {}, "com.example/own": {} },
      tasks: { requests: { tools: { call: {} } } },
    };
    const pages = {
      name: "page-only",
      inputSchema: { type: "object" },
      _meta: { ui: { visibility: ["app"] } },
    };
    const one = await APP_SERVERS["SDK 1"]({ label: "one", capabilities: offered, tools: [pages] });
    const two = await APP_SERVERS["SDK 2"]({ label: "two" });
    const three = await serveConfig({ mcpServers: { b: { url: two.url, protocol: "2026" } } });
    const url = await serveConfig({ mcpServers: { a: { url: one.url }, three: { url: three } } });
    const knows = await clientOf(url, era, { extensions });
    const plain = await clientOf(url, era);
    for (const client of [knows, plain]) {
      expect(client.getServerCapabilities()).toMatchObject({ extensions: { [UI]: {} } });
      const named = Object.keys(client.getServerCapabilities()?.["extensions"] ?? {});
      // A gateway has tasks of its own, whatever its sources have.
      expect(named.filter((name) => name !== TASKS)).toEqual([UI]);
      expect(named.includes(TASKS)).toBe(era === 2026);
    }
    const without = await clientOf(three, era);
    const own = Object.keys(without.getServerCapabilities()?.["extensions"] ?? {});
    expect(own).toEqual(era === 2026 ? [TASKS] : []);
    const namesOf = async (client: typeof knows) => (await client.listTools()).tools.map(({ name }) => name);
    expect(await namesOf(knows)).toContain("a_page-only");
    expect(await namesOf(plain)).not.toContain("a_page-only");
    expect(one.told).toMatchObject([{ extensions }]);
    for (const client of [knows, plain]) {
      const tool = (await namesOf(client)).find((name) => name.startsWith("three_")) ?? "";
      await client.callTool({ name: tool, arguments: {} });
    }
    expect(two.told).toMatchObject([{ extensions }, {}]);
    expect(two.told[1]).not.toHaveProperty("extensions");
  });

  it("Mcp: finds a page by its plain address only where one server has it", async () => {
    const { inner } = await serveHops();
    const both = await clientOf(inner, era);
    await expect(both.readResource({ uri: PAGE })).rejects.toMatchObject({
      code: -32602,
      message: expect.stringContaining(`${of("a")} or ${of("b_c")}`),
    });
    await expect(both.readResource({ uri: of("nobody") })).rejects.toMatchObject({ code: -32602 });
    const { url } = await APP_SERVERS["SDK 1"]({ label: "only" });
    const one = await clientOf(await serveConfig({ mcpServers: { a: { url } } }), era);
    expect((await one.readResource({ uri: PAGE })).contents).toMatchObject([
      { uri: PAGE, text: "<p>only</p>" },
    ]);
    expect((await one.listTools()).tools[0]?._meta).toMatchObject({ ui: { resourceUri: of("a") } });
  });
});

it("Mcp: calls a tool of a server with tasks as a task where it must be one, and as any other where it may be one", async () => {
  const transport = () => {
    const server = new McpServer(
      { name: "slow", version: "1.0.0" },
      {
        capabilities: { tasks: { requests: { tools: { call: {} } } } },
        taskStore: new InMemoryTaskStore(),
        jsonSchemaValidator: new CfWorkerJsonSchemaValidator() as never,
      },
    );
    for (const taskSupport of ["required", "optional"] as const) {
      server.experimental.tasks.registerToolTask(
        taskSupport,
        { execution: { taskSupport } },
        {
          createTask: async ({ taskStore }) => {
            const task = await taskStore.createTask({ ttl: 60_000, pollInterval: 10 });
            await taskStore.storeTaskResult(task.taskId, "completed", {
              content: [{ type: "text", text: "done" }],
            });
            return { task };
          },
          getTask: async ({ taskStore, taskId }) => await taskStore.getTask(taskId),
          getTaskResult: async ({ taskStore, taskId }) => (await taskStore.getTaskResult(taskId)) as never,
        },
      );
    }
    const [here, there] = InMemoryTransport.createLinkedPair();
    void server.connect(there);
    return here as never;
  };
  const source = await fromMcp({ transport }, { namespace: "slow", protocol: "2025", reconnect: false });
  atEnd(() => source.close());
  expect(source.notes).toEqual([]);
  const registry = new OperationRegistry([...source]);
  for (const name of ["optional", "required"]) {
    const called = await registry.execute(`slow.${name}`, {});
    expect(called.data).toEqual([{ type: "text", text: "done" }]);
    expect(called.meta).toMatchObject({ isError: false });
  }
});

it("Mcp: passes on as many characters of instructions as it says, and no more", async () => {
  const [source, all] = [8_192, 32_768];
  const provider = (namespace: string, instructions: string) =>
    Object.assign(new OtherServer(namespace, {}), { instructions });
  const told = async (...providers: readonly OtherServer[]) => {
    const client = await legacyClient(toMcpServer(new OperationRegistry([]), { providers }));
    return client.getInstructions() ?? "";
  };
  expect(await told(provider("a", "x".repeat(source)))).toBe(`## a\n\n${"x".repeat(source)}`);
  expect(await told(provider("a", "x".repeat(source + 1)))).toBe(`## a\n\n${"x".repeat(source - 1)}…`);
  expect(await told(provider("a", " "), provider("b", "y"))).toBe("## b\n\ny");
  const full = Array.from({ length: all / source }, (_, i) => provider(`s${i}`, "x".repeat(source)));
  const whole = await told(...full);
  expect(whole.length).toBe(all + full.length * "## s0\n\n".length + (full.length - 1) * 2);
  expect(await told(...full, provider("late", "y"))).toBe(whole);
});
