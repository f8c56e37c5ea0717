import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, InMemoryTransport } from "@modelcontextprotocol/server";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/server/validators/cf-worker";
import { describe, expect, it } from "vitest";
import { defineOperation, OperationRegistry, Type, toolError } from "../src/index.ts";
import { fromMcp, type McpServer, type McpTarget, serveMcpHttp, toMcpServer } from "../src/mcp/index.ts";
import { atEnd } from "./gateway-sources.ts";
import { sleep } from "./make-operation.ts";
import { listen, refuse } from "./mcp-servers/http-servers.ts";
import { matrixServed } from "./mcp-servers/matrix-served.js";
import { createFirst, createSecond, matrixAnswers } from "./mcp-servers/matrix-server.js";
import { HARDENED, HARDENED_FLAGS } from "./run-node.ts";

/** How a client and a server reach each other. */
type Way = "memory" | "http" | "sse" | "stdio";

/** An SDK: the packages of its ends, and the ways it has. */
interface Sdk {
  readonly name: string;
  /** Of the first generation: its one package. */
  readonly first?: string;
  /** Of the second: the revisions to speak. */
  readonly era?: "2025" | "2026";
  readonly revision: string;
  readonly ways: readonly Way[];
}

/**
 * Every SDK there is to talk to. The first had no HTTP but the old HTTP+SSE, which is not served here, so that only servers of SDKs are
 * tried over it; the newest revision is not spoken in memory by its SDK.
 */
const SDKS: readonly Sdk[] = [
  { name: "SDK 1.0", first: "sdk-1-0", revision: "2024-11-05", ways: ["memory", "sse", "stdio"] },
  { name: "SDK 1.10", first: "sdk-1-10", revision: "2024-11-05", ways: ["memory", "http", "sse", "stdio"] },
  { name: "SDK 1.20", first: "sdk-1-20", revision: "2025-06-18", ways: ["memory", "http", "sse", "stdio"] },
  {
    name: "SDK 1.32",
    first: "@modelcontextprotocol/sdk",
    revision: "2025-11-25",
    ways: ["memory", "http", "sse", "stdio"],
  },
  { name: "SDK 2.4 in 2025", era: "2025", revision: "2025-11-25", ways: ["memory", "http", "stdio"] },
  { name: "SDK 2.4 in 2026", era: "2026", revision: "2026-07-28", ways: ["http", "stdio"] },
];

/** Every SDK over every way it has. */
export const MATRIX = SDKS.flatMap((sdk) => sdk.ways.map((way) => ({ ...sdk, sdk: sdk.name, way })));

/** One SDK over one way. */
type Cell = (typeof MATRIX)[number];

/** What the two ends of every pair are tried on, whichever of them is ours. */
interface Caller {
  names(): Promise<readonly string[]>;
  call(tool: string, args?: object, options?: CallOptions): Promise<Called>;
  resources(): Promise<readonly string[]>;
  read(uri: string): Promise<unknown>;
  prompts(): Promise<readonly string[]>;
  prompt(name: string, args: Readonly<Record<string, string>>): Promise<unknown>;
}

interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: unknown) => void;
}

interface Called {
  readonly text: string;
  readonly isError: boolean;
}

/** What clients of all SDKs share. */
interface SdkClient {
  connect(transport: unknown): Promise<void>;
  close(): Promise<void>;
  listTools(): Promise<{ readonly tools: readonly { readonly name: string }[] }>;
  callTool(...args: readonly unknown[]): Promise<{ readonly content: unknown; readonly isError?: boolean }>;
  listResources(): Promise<{ readonly resources: readonly { readonly uri: string }[] }>;
  readResource(params: object): Promise<unknown>;
  listPrompts(): Promise<{ readonly prompts: readonly { readonly name: string }[] }>;
  getPrompt(params: object): Promise<unknown>;
}

type Made<T> = new (...args: readonly unknown[]) => T;
const pathOf = (name: string): string => fileURLToPath(new URL(`mcp-servers/${name}`, import.meta.url));
const program = (name: string, ...args: readonly string[]) => ({
  command: process.execPath,
  args: [...(HARDENED ? HARDENED_FLAGS : []), pathOf(name), ...args],
});

/** Loads a part of an SDK; by a variable, because the types of the older ones are not those of today's compiler. */
async function load<T>(module: string, name: string): Promise<Made<T>> {
  return ((await import(module)) as Record<string, Made<T>>)[name] as Made<T>;
}

/** A client of an SDK, connected to a server of ours, which ends with the test. */
async function sdkClient(cell: Cell): Promise<Caller> {
  const { first, era } = cell;
  const mode = era === "2026" ? { pin: "2026-07-28" } : "legacy";
  const Client = await load<SdkClient>(
    first === undefined ? "@modelcontextprotocol/client" : `${first}/client/index.js`,
    "Client",
  );
  const client = new Client(
    { name: "matrix", version: "1.0.0" },
    {
      capabilities: {},
      jsonSchemaValidator: new CfWorkerJsonSchemaValidator(),
      versionNegotiation: { mode },
    },
  );
  await client.connect(await clientTransport(cell));
  atEnd(() => client.close());
  const call: Caller["call"] = async (tool, args = {}, { signal, onProgress } = {}) => {
    const params = { name: `m_${tool}`, arguments: args };
    const options = { signal, onprogress: onProgress };
    const called = await (first === undefined
      ? client.callTool(params, options)
      : client.callTool(params, undefined, options));
    return { text: JSON.stringify(called.content), isError: called.isError === true };
  };
  return {
    names: async () => (await client.listTools()).tools.map(({ name }) => name.replace(/^m_/, "")),
    call,
    resources: async () => (await client.listResources()).resources.map(({ uri }) => uri),
    read: (uri) => client.readResource({ uri }),
    prompts: async () => (await client.listPrompts()).prompts.map(({ name }) => name),
    prompt: (name, args) => client.getPrompt({ name, arguments: args }),
  };
}

/** What a client of an SDK reaches a server of ours with. */
async function clientTransport({ first, way }: Cell): Promise<unknown> {
  if (way === "stdio") {
    const Stdio = await load(
      first === undefined ? "@modelcontextprotocol/client/stdio" : `${first}/client/stdio.js`,
      "StdioClientTransport",
    );
    return new Stdio(program("matrix-served.js"));
  }
  const server: McpServer = matrixServed({
    defineOperation,
    OperationRegistry,
    toMcpServer,
    toolError,
    Type,
  });
  atEnd(() => server.close());
  if (way === "memory") {
    const [here, there] = InMemoryTransport.createLinkedPair();
    await server.connect(there);
    return here;
  }
  const http = await serveMcpHttp(server, { port: 0 });
  atEnd(() => http.close());
  const module = first === undefined ? "@modelcontextprotocol/client" : `${first}/client/streamableHttp.js`;
  const Http = await load(module, "StreamableHTTPClientTransport");
  return new Http(new URL(http.url));
}

/** A client of ours, connected to a server of an SDK, which ends with the test. */
async function sdkServer(cell: Cell): Promise<Caller & { readonly revision: string }> {
  const protocol = cell.era ?? "auto";
  const source = await fromMcp(await serverOptions(cell), { namespace: "m", protocol, reconnect: false });
  atEnd(() => source.close());
  return {
    revision: source.server.protocolVersion,
    names: async () => source.operations.map(({ name }) => name),
    call: async (tool, args = {}, options = {}) => {
      const { meta } = await source.call(tool, args, options);
      return { text: JSON.stringify(meta.content), isError: meta.isError };
    },
    resources: async () => (await source.listResources()).map(({ uri }) => uri),
    read: (uri) => source.readResource(uri),
    prompts: async () => (await source.listPrompts()).map(({ name }) => name),
    prompt: (name, args) => source.getPrompt(name, args),
  };
}

/** How a server of an SDK is reached. */
async function serverOptions(cell: Cell): Promise<McpTarget> {
  const { first, way } = cell;
  if (way === "stdio") return program("matrix-server.js", first ?? "@modelcontextprotocol/server");
  const answers = matrixAnswers();
  const create = () => (first === undefined ? createSecond(answers) : createFirst(first, answers));
  if (way === "memory") {
    const transport = () => {
      const [here, there] = InMemoryTransport.createLinkedPair();
      void create().then((server) => server.connect(there));
      return here as never;
    };
    return { transport };
  }
  const { url, close } = await serveHttp(cell, create);
  atEnd(close);
  return { url };
}

/** Makes a server of an SDK, for one session. */
type Create = () => Promise<{ connect(transport: unknown): Promise<void> }>;

async function serveHttp({ first, way }: Pick<Cell, "first" | "way">, create: Create) {
  if (first === undefined) return await serveSecond(create);
  return way === "sse" ? await serveSse(first, create) : await serveFirst(first, create);
}

interface SseTransport {
  readonly sessionId: string;
  handlePostMessage(...args: readonly unknown[]): Promise<void>;
}

/** Serves the transport of 2024-11-05: events at one address, messages posted to another. */
async function serveSse(sdk: string, create: Create) {
  const Sse = await load<SseTransport>(`${sdk}/server/sse.js`, "SSEServerTransport");
  const sessions = new Map<string, SseTransport>();
  return await listen(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://localhost");
    if (request.method === "GET" && pathname === "/mcp") {
      const transport = new Sse("/messages", response);
      sessions.set(transport.sessionId, transport);
      return await (await create()).connect(transport);
    }
    const session = sessions.get(searchParams.get("sessionId") ?? "");
    if (request.method !== "POST" || session === undefined) return refuse(response, 405);
    await session.handlePostMessage(request, response);
  });
}

async function serveSecond(create: Create) {
  const serve = toNodeHandler(createMcpHandler(create as never));
  return await listen((request, response) => void serve(request as never, response));
}

interface FirstHttp {
  handleRequest(...args: readonly unknown[]): Promise<void>;
}

/** Serves sessions, each with a server of its own. */
async function serveFirst(sdk: string, create: Create) {
  const Http = await load<FirstHttp>(`${sdk}/server/streamableHttp.js`, "StreamableHTTPServerTransport");
  const sessions = new Map<string, FirstHttp>();
  return await listen(async (request, response) => {
    const known = sessions.get(String(request.headers["mcp-session-id"]));
    if (known !== undefined) return await known.handleRequest(request, response);
    const transport: FirstHttp = new Http({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id: string) => void sessions.set(id, transport),
    });
    await (await create()).connect(transport);
    await transport.handleRequest(request, response);
  });
}

/** Tries SDKs as clients and as servers. */
export function tryCells(cells: readonly Cell[]): void {
  describe.each(cells)("$sdk over $way", (cell) => {
    if (cell.way !== "sse") {
      it("RE-30 is a client of ours that lists, calls, hears progress, cancels and reads", async () => {
        await expectWorks(await sdkClient(cell));
      });
    }

    it("RE-22 is a server that ours lists, calls, hears progress of, cancels and reads", async () => {
      const server = await sdkServer(cell);
      expect(server.revision).toBe(cell.revision);
      await expectWorks(server);
    });
  });
}

/** Everything that every pair has to be able to do. */
async function expectWorks(caller: Caller): Promise<void> {
  expect([...(await caller.names())].sort()).toEqual([
    "cancelled",
    "echo",
    "fail",
    "hang",
    "release",
    "steps",
  ]);
  expect(await caller.call("echo", { text: "ä😀" })).toEqual({
    text: expect.stringContaining("echo ä😀"),
    isError: false,
  });
  expect(await caller.call("fail")).toEqual({ text: expect.stringContaining("It will not."), isError: true });
  await expectSteps(caller);
  await expectCancels(caller);
  expect(await caller.resources()).toEqual(["memo://one"]);
  expect(await caller.read("memo://one")).toMatchObject({
    contents: [{ uri: "memo://one", text: "the memo" }],
  });
  expect(await caller.prompts()).toEqual(["greet"]);
  expect(await caller.prompt("greet", { who: "Bo" })).toMatchObject({
    messages: [{ role: "user", content: { type: "text", text: "Greet Bo." } }],
  });
}

/** A call ends once its progress was seen: clients of SDKs drop what they read in one piece with the answer. */
async function expectSteps(caller: Caller): Promise<void> {
  const steps: unknown[] = [];
  const onProgress = (progress: unknown): void => {
    if (steps.push(progress) === 3) void caller.call("release");
  };
  const stepped = await caller.call("steps", {}, { onProgress });
  expect(stepped.text).toContain("three steps");
  expect(steps).toMatchObject([1, 2, 3].map((progress) => ({ progress, total: 3 })));
}

/** A call is cancelled once it runs, which the handler hears; the connection goes on. */
async function expectCancels(caller: Caller): Promise<void> {
  const stop = new AbortController();
  const hanging = caller.call("hang", {}, { signal: stop.signal, onProgress: () => stop.abort() });
  await expect(hanging).rejects.toThrow();
  const end = performance.now() + 25_000;
  while (!(await caller.call("cancelled")).text.includes("1")) {
    if (performance.now() > end) throw new Error("The handler never heard of it.");
    await sleep(2);
  }
}
