import { InMemoryTaskStore } from "@modelcontextprotocol/sdk/experimental/tasks";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/server/validators/cf-worker";
import { describe, expect, it } from "vitest";
import { OperationRegistry } from "../src/index.ts";
import { fromMcp } from "../src/mcp/index.ts";
import { atEnd } from "./gateway-sources.ts";
import { APP, APP_SERVERS, clientOf, PAGE, serveConfig } from "./pass-through.ts";

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

  it("Mcp: shows how a tool runs without tasks, which nobody could honour", async () => {
    const inputSchema = { type: "object" };
    const tools = [
      { name: "long", inputSchema, execution: { taskSupport: "required" } },
      { name: "some", inputSchema, execution: { taskSupport: "optional", other: "kept" } },
    ];
    const { url } = await APP_SERVERS["SDK 2"]({ label: "one", tools });
    const client = await clientOf(await serveConfig({ mcpServers: { a: { url } } }), era);
    const listed = new Map((await client.listTools()).tools.map((tool) => [tool.name, tool]));
    expect(listed.get("a_long")).not.toHaveProperty("execution");
    expect(listed.get("a_some")?.execution ?? {}).not.toHaveProperty("taskSupport");
    expect(client.getServerCapabilities()).not.toHaveProperty("tasks");
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

it("Mcp: calls a tool of a server with tasks as any other, and notes one that cannot be called so", async () => {
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
  const source = await fromMcp({ transport, namespace: "slow", protocol: "2025", reconnect: false });
  atEnd(() => source.close());
  const note = "It runs only as a task, which is not supported: its server refuses calls of it.";
  expect(source.notes).toEqual([{ tool: "required", note }]);
  const registry = new OperationRegistry([...source]);
  const called = await registry.execute("slow.optional", {});
  expect(called.data).toEqual([{ type: "text", text: "done" }]);
  const refused = await registry.execute("slow.required", {});
  expect(refused.meta).toMatchObject({ isError: true });
});
