import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as FirstStdioTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { curlSuite } from "../curl-suite.ts";
import {
  CLIENT_KINDS,
  callTool,
  connectClient,
  eventually,
  findTool,
  type GatewayProcess,
  installedModule,
  type ServiceProcess,
  STDIO_SERVICE,
  service,
  startGateway,
  startService,
  type ToolAnswer,
  writeConfig,
} from "../gateway-process.ts";
import { CLI, waybill } from "../installed-command.ts";
import { runCommand } from "../run-node.ts";

const folder = mkdtempSync(join(tmpdir(), "waybill-gateway-peers-"));
writeFileSync(join(folder, "hello.txt"), "Hello, file.\n");

const npm = (path: string, ...args: string[]) => ({
  command: process.execPath,
  args: [installedModule(path), ...args],
});

/** Servers from npm, of several SDKs. */
const SERVERS = {
  everything: npm("@modelcontextprotocol/server-everything/dist/index.js", "stdio"),
  files: npm("@modelcontextprotocol/server-filesystem/dist/index.js", folder),
  memory: {
    ...npm("@modelcontextprotocol/server-memory/dist/index.js"),
    env: { MEMORY_FILE_PATH: join(folder, "memory.jsonl") },
  },
  thinking: npm("@modelcontextprotocol/server-sequential-thinking/dist/index.js"),
  calculator: npm("@wrtnlabs/calculator-mcp/bin/index.js"),
  time: npm("time-mcp/dist/index.js"),
  libsql: {
    ...npm("mcp-memory-libsql/dist/index.js"),
    env: { LIBSQL_URL: `file:${join(folder, "memory.db")}` },
  },
  context7: npm("@upstash/context7-mcp/dist/index.js"),
};

const THOUGHT = { thought: "one", nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 };

/** A call of every source that can be called without a network, and what is in its answer. */
const CALLS: readonly (readonly [string, object, string])[] = [
  ["everything.echo", { message: "hi" }, "Echo: hi"],
  ["files.read_text_file", { path: join(folder, "hello.txt") }, "Hello, file."],
  ["memory.read_graph", {}, "entities"],
  ["thinking.sequentialthinking", THOUGHT, "thoughtHistoryLength"],
  ["calculator.add", { a: 2, b: 3 }, "5"],
  ["time.days_in_month", { date: "2026-02-01" }, "28"],
  ["libsql.read_graph", {}, "entities"],
  ["depot.add", { a: 20, b: 22 }, "42"],
  ["depot.echo", { body: { message: "ü" } }, "ü"],
  ["office.local.add", { a: 20, b: 22 }, "42"],
  ["local.add", { a: 20, b: 22 }, "42"],
];

let depot: ServiceProcess;
let office: GatewayProcess;
let gateway: GatewayProcess;

beforeAll(async () => {
  [depot, office] = await Promise.all([
    startService("http-service.js"),
    startGateway({ name: "office", operations: service("operations.js") }),
  ]);
  gateway = await startGateway({
    mcpServers: SERVERS,
    openapi: {
      depot: { document: `${depot.url}/openapi.json` },
      office: { document: `${office.url}/openapi.json` },
    },
    operations: service("operations.js"),
  });
});

afterAll(async () => {
  const ended = [await gateway?.stop(), await office?.stop()];
  await depot?.kill();
  rmSync(folder, { recursive: true, force: true });
  expect(ended.map((end) => end?.code)).toEqual([0, 0]);
});

describe("a gateway over servers from npm and two HTTP APIs", () => {
  it("RE-30 mounts all of them", async () => {
    for (const [kind, names] of [
      ["mcp", Object.keys(SERVERS)],
      ["openapi", ["depot", "office"]],
    ] as const) {
      for (const name of names) {
        const labels = `{source="${name}",kind="${kind}"}`;
        expect([name, await gateway.metric(`waybill_source_up${labels}`)]).toEqual([name, 1]);
        expect(await gateway.metric(`waybill_source_operations${labels}`)).toBeGreaterThan(0);
      }
    }
  });

  describe.each(CLIENT_KINDS)("asked by a client of %s", (kind) => {
    it("RE-30 lists the tools of every source, and calls them", async () => {
      const client = await connectClient(kind, gateway);
      try {
        const names = (await client.listTools()).tools.map(({ name }) => name);
        expect(new Set(names).size).toBe(names.length);
        expect(names.filter((name) => name.startsWith("context7_")).length).toBeGreaterThan(0);
        for (const [operation, input, answer] of CALLS) {
          const tool = await findTool(client, operation);
          expect(names).toContain(tool);
          const answered = await callTool(client, tool, input);
          expect([operation, answered.isError ?? false]).toEqual([operation, false]);
          expect(JSON.stringify(answered)).toContain(answer);
        }
        const refused = await callTool(client, "calculator.add", { a: "two" });
        expect(refused.isError).toBe(true);
      } finally {
        await client.close();
      }
    });

    it("RE-30 passes on resources and prompts", async () => {
      const client = await connectClient(kind, gateway);
      try {
        const { resources } = await client.listResources();
        expect(resources.length).toBeGreaterThan(0);
        const [first] = resources;
        const { contents } = await client.readResource({ uri: first?.uri ?? "" });
        expect(contents.length).toBeGreaterThan(0);
        expect((await client.listPrompts()).prompts.length).toBeGreaterThan(0);
      } finally {
        await client.close();
      }
    });
  });

  it("RE-30 answers the same over HTTP, at the path of each operation and at /call", async () => {
    const document = (await (await fetch(`${gateway.url}/openapi.json`)).json()) as {
      paths: Record<string, { post?: unknown; get?: unknown }>;
    };
    for (const [operation, input, answer] of CALLS) {
      const { status, body } = await gateway.post(operation, input);
      expect([operation, status]).toEqual([operation, 200]);
      expect(JSON.stringify(body)).toContain(answer);
      const path = `/api/${operation.replace(".", "/")}`;
      expect(Object.keys(document.paths)).toContain(path);
      const isRead = document.paths[path]?.post === undefined;
      const query = new URLSearchParams(Object.entries(input).map(([key, value]) => [key, String(value)]));
      const response = isRead
        ? await fetch(`${gateway.url}${path}?${query}`)
        : await fetch(gateway.url + path, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify(input),
          });
      expect([operation, response.status]).toEqual([operation, 200]);
      await response.arrayBuffer();
    }
  });

  it("RE-30 streams subscriptions over HTTP", async () => {
    const response = await fetch(`${gateway.url}/api/local/ticks?to=3&ms=1`, {
      headers: { accept: "text/event-stream" },
    });
    expect(response.headers.get("content-type")).toContain("text/event-stream");
    const text = await response.text();
    expect([...text.matchAll(/^event: (\w+)$/gm)].map(([, name]) => name)).toEqual([
      "next",
      "next",
      "next",
      "done",
    ]);
  });

  it("RE-30 counts every call", async () => {
    const name = 'waybill_calls_total{operation="calculator.add",source="calculator",outcome="ok",code=""}';
    const before = (await gateway.metric(name)) ?? 0;
    await gateway.post("calculator.add", { a: 1, b: 1 });
    expect(await gateway.metric(name)).toBe(before + 1);
    expect(await gateway.metric("waybill_calls_in_flight")).toBe(0);
  });

  it("RE-30 lists and calls everything from a shell, by its address", async () => {
    const list = await waybill(["list", "--url", gateway.url, "--json"]);
    expect([list.code, list.stderr]).toEqual([0, ""]);
    const called = await waybill(["call", "calculator.add", "a=2", "b=3", "--url", gateway.url]);
    expect(called.code).toBe(0);
    expect(called.stdout).toContain("5");
    const missing = await waybill(["call", "calculator.ad", "--url", gateway.url]);
    expect(missing.code).toBe(3);
    expect(missing.stderr).toContain("calculator.add");
  });

  curlSuite("by curl", () => {
    const curl = async (...args: string[]) => {
      const ran = await runCommand("curl", ["-sS", "-w", "\n%{http_code}", ...args]);
      const at = ran.stdout.lastIndexOf("\n");
      return { status: Number(ran.stdout.slice(at + 1)), text: ran.stdout.slice(0, at), stderr: ran.stderr };
    };
    const JSON_TYPE = ["-H", "content-type: application/json"];

    it("RE-30 answers every source", async () => {
      for (const [operation, input, answer] of CALLS) {
        const body = JSON.stringify({ operation, input });
        const { status, text } = await curl(`${gateway.url}/call`, ...JSON_TYPE, "-d", body);
        expect([operation, status]).toEqual([operation, 200]);
        expect(text).toContain(answer);
      }
    });

    it("RE-30 says in a problem what is wrong", async () => {
      const body = JSON.stringify({ operation: "depot.ad", input: {} });
      const { status, text } = await curl(`${gateway.url}/call`, ...JSON_TYPE, "-d", body);
      expect(status).toBe(404);
      expect(JSON.parse(text)).toMatchObject({ status: 404, code: "OPERATION_NOT_FOUND" });
      expect((await curl(`${gateway.url}/call`, ...JSON_TYPE, "-d", "{")).status).toBe(400);
      expect((await curl(`${gateway.url}/api/depot/add?a=x&b=1`)).status).toBe(400);
      expect((await curl("-H", "host: evil.example", gateway.url)).status).toBe(403);
    });

    it("RE-28 speaks MCP to whoever writes it by hand", async () => {
      const message = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };
      const { status } = await curl(`${gateway.url}/mcp`, ...JSON_TYPE, "-d", JSON.stringify(message));
      // Neither a session nor the newer revision's headers: refused as the protocol says, and not a crash.
      expect(status).toBeGreaterThanOrEqual(400);
      expect(status).toBeLessThan(500);
      const initialize = {
        jsonrpc: "2.0",
        id: 1,
        method: "initialize",
        params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "c", version: "1" } },
      };
      const accept = ["-H", "accept: application/json, text/event-stream"];
      const begun = await curl(
        `${gateway.url}/mcp`,
        ...JSON_TYPE,
        ...accept,
        "-d",
        JSON.stringify(initialize),
      );
      expect(begun.status).toBe(200);
      expect(begun.text).toContain('"protocolVersion":"2025-06-18"');
    });
  });
});

describe("names that many sources have", () => {
  it("RE-22 RE-30 never collide: each reaches its own source", async () => {
    const many = await startGateway({
      mcpServers: { "my calc": STDIO_SERVICE, my_calc: SERVERS.calculator },
      openapi: { "my.calc": { document: `${depot.url}/openapi.json` } },
    });
    try {
      const answers: Record<string, unknown> = {};
      for (const source of ["my_calc", "my_calc_2", "my_calc_3"]) {
        answers[source] = (await many.post(`${source}.add`, { a: 1, b: 2 })).body;
      }
      expect(answers).toEqual({
        my_calc: { sum: 3 },
        my_calc_2: [{ type: "text", text: expect.stringContaining("3") }],
        my_calc_3: { sum: 3 },
      });
      const client = await connectClient("SDK 1", many);
      const names = (await client.listTools()).tools.map(({ name }) => name);
      expect(new Set(names).size).toBe(names.length);
      for (const [source, answer] of Object.entries(answers)) {
        const [name = "", ...others] = names.filter((one) => one.startsWith(`${source}_add`));
        expect(others).toEqual([]);
        const { content, structuredContent } = await callTool(client, name, { a: 1, b: 2 });
        expect(structuredContent ?? content).toEqual(answer);
      }
      await client.close();
    } finally {
      expect((await many.stop()).code).toBe(0);
    }
  });
});

describe("a gateway that a host starts over stdio", () => {
  const config = () => ({
    mcpServers: { calculator: SERVERS.calculator, down: { command: "no-such-command" } },
    openapi: {
      depot: { document: `${depot.url}/openapi.json` },
      office: { document: `${office.url}/openapi.json` },
    },
  });
  const options = { jsonSchemaValidator: new CfWorkerJsonSchemaValidator() };
  const PINNED = { versionNegotiation: { mode: { pin: "2026-07-28" } } } as const;
  const connect: Record<string, (path: string, state: string) => Promise<Client>> = {
    "SDK 1": async (path, state) => {
      const client = new FirstClient({ name: "host", version: "1" }, options);
      await client.connect(new FirstStdioTransport(parameters(path, state)) as never);
      return client as unknown as Client;
    },
    "SDK 2": async (path, state) => {
      const client = new Client({ name: "host", version: "1" }, options);
      await client.connect(new StdioClientTransport(parameters(path, state)));
      return client;
    },
    "SDK 2, 2026": async (path, state) => {
      const client = new Client({ name: "host", version: "1" }, { ...options, ...PINNED });
      await client.connect(new StdioClientTransport(parameters(path, state)));
      return client;
    },
  };

  function parameters(cwd: string, state: string) {
    const env = { PATH: process.env["PATH"] ?? "", HOME: state, WAYBILL_STATE_DIR: state };
    const stderr = "ignore" as const;
    return { command: process.execPath, args: [CLI, "serve", "--stdio"], cwd, env, stderr };
  }

  const isUnknown = (thrown: unknown): ToolAnswer => {
    if (!String(thrown).includes("Unknown tool")) throw thrown;
    return { isError: true, content: [] };
  };

  it.each(Object.keys(connect))("RE-30 serves %s", async (kind) => {
    const written = writeConfig(config());
    const client = await connect[kind]?.(written.path, written.state);
    if (client === undefined) throw new Error(kind);
    try {
      for (const [operation, input, answer] of CALLS.filter(([id]) =>
        /^(calculator|depot|office)/.test(id),
      )) {
        const call = async () => callTool(client, await findTool(client, operation), input).catch(isUnknown);
        // Sources may still be starting when a client comes.
        const answered = await eventually(`a call of ${operation}`, call, ({ isError }) => isError !== true);
        expect(JSON.stringify(answered)).toContain(answer);
      }
      const isDown = ({ content }: ToolAnswer) => content[0]?.text?.includes("is down") === true;
      const down = await eventually("a reason", () => callTool(client, "down.anything"), isDown);
      expect(down.isError).toBe(true);
      expect(down.content[0]?.text).toContain('The source "down" is down');
    } finally {
      await client.close();
      written.remove();
    }
  });
});
