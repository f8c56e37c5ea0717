import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { OperationRegistry, outcomeOf } from "../src/index.ts";
import { type FromMcpOptions, fromMcp, type McpSource, serveMcpHttp, toMcpServer } from "../src/mcp/index.ts";
import { ROOT } from "./run-node.ts";

const folder = mkdtempSync(join(tmpdir(), "waybill-peers-"));
writeFileSync(join(folder, "hello.txt"), "Hello, file.\n");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const modules = join(ROOT, "node_modules");
const node = (path: string, ...args: string[]) => ({
  command: process.execPath,
  args: [join(modules, path), ...args],
});

/** Servers from npm, of several SDKs, with a call that works and what is in its answer. */
const SERVERS = {
  everything: {
    ...node("@modelcontextprotocol/server-everything/dist/index.js", "stdio"),
    tools: 10,
    call: ["echo", { message: "hi" }, "Echo: hi"],
  },
  filesystem: {
    ...node("@modelcontextprotocol/server-filesystem/dist/index.js", folder),
    tools: 10,
    call: ["read_text_file", { path: join(folder, "hello.txt") }, "Hello, file."],
  },
  memory: {
    ...node("@modelcontextprotocol/server-memory/dist/index.js"),
    env: { MEMORY_FILE_PATH: join(folder, "memory.jsonl") },
    tools: 9,
    call: [
      "create_entities",
      { entities: [{ name: "Ada", entityType: "person", observations: ["counts"] }] },
      "Ada",
    ],
  },
  thinking: {
    ...node("@modelcontextprotocol/server-sequential-thinking/dist/index.js"),
    tools: 1,
    call: [
      "sequentialthinking",
      { thought: "one", nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 },
      "thoughtHistoryLength",
    ],
  },
  calculator: {
    ...node("@wrtnlabs/calculator-mcp/bin/index.js"),
    tools: 6,
    call: ["add", { a: 2, b: 3 }, "5"],
  },
  time: {
    ...node("time-mcp/dist/index.js"),
    tools: 6,
    call: ["days_in_month", { date: "2026-02-01" }, "28"],
  },
  libsql: {
    ...node("mcp-memory-libsql/dist/index.js"),
    env: { LIBSQL_URL: `file:${join(folder, "memory.db")}` },
    tools: 6,
    call: ["read_graph", {}, "entities"],
  },
  context7: { ...node("@upstash/context7-mcp/dist/index.js"), tools: 2, call: undefined },
} as const satisfies Record<string, unknown>;

type Name = keyof typeof SERVERS;

function open(name: Name, options: Partial<FromMcpOptions> = {}): Promise<McpSource> {
  const { command, args, ...rest } = SERVERS[name];
  const target = { command, args, ...("env" in rest && { env: rest.env }), cwd: folder };
  return fromMcp(target, { namespace: name, ...options });
}

describe.each(Object.keys(SERVERS) as Name[])("the server %s from npm", (name) => {
  const { tools, call } = SERVERS[name];

  it("RE-22 RE-23 RE-32 is imported whole, called, and leaves nothing behind", async () => {
    const warnings: string[] = [];
    const source = await open(name, { onWarning: (message) => warnings.push(message) });
    try {
      const registry = new OperationRegistry();
      registry.registerAll(source);
      expect(source.unusable).toEqual([]);
      expect(registry.size).toBeGreaterThanOrEqual(tools);
      if (call === undefined) return;
      const [tool, input, answer] = call;
      const envelope = await registry.execute(`${name}.${tool}`, input);
      expect(outcomeOf(envelope)).toBe("ok");
      expect(JSON.stringify(envelope)).toContain(answer);
      expect(envelope.meta.waybill?.violations).toBeUndefined();
    } finally {
      await source.close();
    }
  });
});

/** What a gateway in front of one source offers, asked as any client asks. */
async function throughGateway<T>(
  source: McpSource,
  protocol: "2025" | "2026",
  use: (gateway: McpSource) => Promise<T>,
): Promise<T> {
  const registry = new OperationRegistry();
  registry.registerAll(source);
  const server = toMcpServer(registry, { providers: [source], names: { prefix: false } });
  const http = await serveMcpHttp(server);
  const gateway = await fromMcp(http.url, { namespace: "everything", protocol });
  try {
    return await use(gateway);
  } finally {
    await gateway.close();
    await http.close();
    await server.close();
  }
}

/** server-everything writes the second it answers in into its resources; two calls may see two seconds. */
function withoutClock<T>(value: T): T {
  return JSON.parse(JSON.stringify(value ?? null).replace(/\b\d{1,2}:\d\d:\d\d(\s[AP]M)?/g, "TIME"));
}

describe.each(["2025", "2026"] as const)("server-everything through a gateway that speaks %s", (protocol) => {
  it("RE-30 reads the same: every resource, template, prompt, completion and tool", async () => {
    const direct = await open("everything");
    try {
      await throughGateway(direct, protocol, async (gateway) => {
        const resources = await direct.listResources();
        expect(resources.length).toBeGreaterThan(3);
        expect(await gateway.listResources()).toEqual(resources);
        for (const { uri } of resources) {
          expect(withoutClock((await gateway.readResource(uri)).contents)).toEqual(
            withoutClock((await direct.readResource(uri)).contents),
          );
        }
        const templates = await direct.listResourceTemplates();
        const byUri = (list: typeof templates) =>
          list.toSorted((a, b) => (a.uriTemplate < b.uriTemplate ? -1 : 1));
        expect(byUri(await gateway.listResourceTemplates())).toEqual(byUri(templates));
        const prompts = await direct.listPrompts();
        expect(prompts.length).toBeGreaterThan(2);
        const byName = (list: typeof prompts) => list.toSorted((a, b) => (a.name < b.name ? -1 : 1));
        expect(byName(await gateway.listPrompts())).toEqual(byName(prompts));
        for (const { name, arguments: wanted = [] } of prompts) {
          const args = Object.fromEntries(wanted.map((argument) => [argument.name, "1"]));
          // What a revision adds to every result is not the prompt's.
          const read = async (side: McpSource) => {
            const { resultType: _, _meta, ...prompt } = await side.getPrompt(name, args);
            return withoutClock(prompt);
          };
          const failed = (error: { code: string }) => error.code;
          expect(await read(gateway).catch(failed)).toEqual(await read(direct).catch(failed));
        }
        const tools = [...direct.operations].map(({ id }) => id).sort();
        expect([...gateway.operations].map(({ id }) => id).sort()).toEqual(tools);
      });
    } finally {
      await direct.close();
    }
  });

  it("RE-30 X-6 answers every recorded call the same", async () => {
    const direct = await open("everything");
    try {
      await throughGateway(direct, protocol, async (gateway) => {
        for (const [tool, input] of [
          ["echo", { message: "ü" }],
          ["get-sum", { a: 1, b: 2 }],
          ["get-tiny-image", {}],
          ["get-annotated-message", { messageType: "error", includeImage: true }],
          ["get-structured-content", { location: "Chicago" }],
          ["get-resource-links", { count: 3 }],
          ["get-resource-reference", { resourceType: "Text", resourceId: 1 }],
        ] as const) {
          const here = await direct.call(tool, input);
          const there = await gateway.call(tool, input);
          expect(withoutClock(there.data)).toEqual(withoutClock(here.data));
          if (here.meta.source !== "mcp" || there.meta.source !== "mcp") throw new Error("not over MCP");
          expect(withoutClock(there.meta.content)).toEqual(withoutClock(here.meta.content));
          expect(there.meta.isError).toBe(here.meta.isError);
        }
      });
    } finally {
      await direct.close();
    }
  });
});

describe("two servers with the same tools", () => {
  it("RE-22 never collide or shadow, in a registry or behind a gateway", async () => {
    const [first, second] = [
      await open("memory", { namespace: "a" }),
      await open("memory", { namespace: "b" }),
    ];
    try {
      const registry = new OperationRegistry();
      registry.registerAll(first);
      registry.registerAll(second);
      expect(registry.size).toBe(18);
      const server = toMcpServer(registry, { providers: [first, second], names: { prefix: false } });
      const http = await serveMcpHttp(server);
      const gateway = await fromMcp(http.url, { namespace: "g" });
      expect([...gateway.operations]).toHaveLength(18);
      await gateway.close();
      await http.close();
      await server.close();
    } finally {
      await first.close();
      await second.close();
    }
  });
});
