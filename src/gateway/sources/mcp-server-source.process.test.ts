import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer as createTcpServer } from "node:net";
import { join, resolve } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { freePort } from "../../../test/free-port.ts";
import { atEnd, loadedConfig, makeFolder, makeSource, reasonOf } from "../../../test/gateway-sources.ts";
import { rejection, sleep, until } from "../../../test/make-operation.ts";
import { listen, serveFirstHttp } from "../../../test/mcp-servers/http-servers.ts";
import { scriptedOptions } from "../../../test/mcp-servers/scripted-connection.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { SecretMask } from "../../core/secrets/secret-mask.ts";
import { approveTools, fromMcp } from "../../mcp/index.ts";
import type { McpServerConfig } from "../config/gateway-config.ts";
import { createPolicies } from "../policy/policies.ts";

const FILES = resolve("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
const EVERYTHING = resolve("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
const SECOND = resolve("test/mcp-servers/second-stdio.js");

function mcp(server: McpServerConfig, extra: Parameters<typeof loadedConfig>[1] = {}) {
  return makeSource(loadedConfig({ mcpServers: { up: server } }, extra));
}

/** A real server whose processes can be seen. */
function watched() {
  const note =
    'import { appendFileSync } from "node:fs"; appendFileSync(process.env.STARTS, `${process.pid}\\n`);';
  const folder = makeFolder({ "note.mjs": note, starts: "" });
  const starts = join(folder, "starts");
  const options: McpServerConfig = {
    command: process.execPath,
    args: ["--import", join(folder, "note.mjs"), SECOND],
    env: { STARTS: starts },
  };
  const pids = () => readFileSync(starts, "utf8").split("\n").filter(Boolean).map(Number);
  return { options, pids };
}

/** A server that tells its process, and has a call that ends when it may. */
const PATIENT = `
import { appendFileSync, existsSync } from "node:fs";
import { createInterface } from "node:readline";
createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = (result) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...result }) + "\\n");
  const inputSchema = { type: "object" };
  if (method === "initialize")
    return answer({ result: { protocolVersion: params.protocolVersion, capabilities: { tools: {}, resources: {} }, serverInfo: { name: "s", version: "1" } } });
  if (method === "tools/list") return answer({ result: { tools: ["pid", "wait"].map((name) => ({ name, inputSchema })) } });
  if (method !== "tools/call") return answer({ error: { code: -32601, message: "no" } });
  if (params.name === "wait") {
    appendFileSync("started", process.pid + "\\n");
    while (!existsSync("released")) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  answer({ result: { content: [], structuredContent: { pid: process.pid } } });
});
`;

function patient() {
  const folder = makeFolder({ "patient.mjs": PATIENT, started: "" });
  const warnings: string[] = [];
  const server = { command: process.execPath, args: ["patient.mjs"] };
  const loaded = loadedConfig({ mcpServers: { up: server } }, { baseDir: folder });
  const made = makeSource(loaded, { onWarning: (message) => warnings.push(message) });
  const started = () => readFileSync(join(folder, "started"), "utf8").split("\n").filter(Boolean).map(Number);
  return {
    ...made,
    warnings,
    started,
    release: () => writeFileSync(join(folder, "released"), ""),
    breakServer: () => writeFileSync(join(folder, "patient.mjs"), "process.exit(1);"),
  };
}

/** A server with tools whose schemas take long to look through, and one at the end that is warned of. */
const LABORIOUS = `
import { writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
const anyOf = Array.from({ length: 5_000 }, (_, at) => ({ required: ["k" + at] }));
const tools = Array.from({ length: 60 }, (_, at) => ({ name: "t" + at, inputSchema: { type: "object", anyOf } }));
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = (result, done) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n", done);
  if (method === "initialize")
    return answer({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } });
  answer({ tools: [...tools, { name: "last" }] }, () => writeFileSync("listed", ""));
});
`;

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe("an MCP server as a source", () => {
  it("is closed while its tools are imported, without importing the rest of them", async () => {
    const folder = makeFolder({ "laborious.mjs": LABORIOUS });
    const warnings: string[] = [];
    const server = { command: process.execPath, args: ["laborious.mjs"] };
    const loaded = loadedConfig({ mcpServers: { up: server } }, { baseDir: folder });
    const { source, states } = makeSource(loaded, { onWarning: (message) => warnings.push(message) });
    const started = source.start();
    await vi.waitUntil(() => existsSync(join(folder, "listed")), { timeout: 20_000, interval: 1 });
    // The list has been read by now, and its tools take seconds.
    await sleep(200);
    await source.close();
    await started;
    expect(states.map(({ status }) => status)).toEqual(["closed"]);
    expect(warnings).toEqual([]);
  });

  it("RE-30 is up with the tools of a real server, which are called like any operation", async () => {
    const folder = makeFolder({ "a.txt": "hello" });
    const { source, states } = mcp({ command: process.execPath, args: [FILES, folder] });
    const changes = vi.fn();
    source.onChange(changes);
    expect(source.state).toEqual({ status: "connecting" });
    await source.start();
    expect(states.map(({ status }) => status)).toEqual(["up"]);
    expect(changes).toHaveBeenCalledOnce();
    const registry = new OperationRegistry();
    registry.registerAll(source);
    const result = await registry.execute("up.read_text_file", { path: join(folder, "a.txt") });
    expect(JSON.stringify(result.data)).toContain("hello");
    const { startMs, ...report } = source.report();
    expect(startMs).toBeGreaterThan(0);
    expect(report).toMatchObject({
      name: "up",
      kind: "mcp",
      unusable: [],
      title: "secure-filesystem-server",
    });
    expect(report.operations).toBe(source.operations.length);
    expect(report.protocol).toMatch(/^20/);
    await source.close();
    expect(source.state).toEqual({ status: "closed" });
    expect(await rejection(registry.execute("up.list_allowed_directories", {}))).toMatchObject({
      code: "UNAVAILABLE",
    });
  });

  it("RE-30 is down when its process is killed, says why to callers, and comes back with the same operations", async () => {
    const { options, pids } = watched();
    // Whoever calls first after a loss has it made again at once.
    const reconnect = { delayMs: 60_000, maxDelayMs: 60_000 };
    const { source, states } = makeSource(loadedConfig({ mcpServers: { up: options } }), { reconnect });
    await source.start();
    const before = source.operations;
    const registry = new OperationRegistry();
    registry.registerAll(source);
    const [pid] = pids();
    process.kill(pid as number, "SIGKILL");
    await vi.waitFor(() => expect(states.at(-1)?.status).toBe("down"), { timeout: 20_000, interval: 1 });
    expect(states.at(-1)).toMatchObject({ reason: "Its process was ended by SIGKILL." });
    expect(source.operations).toEqual(before);
    const error = await rejection(registry.execute("up.greet", {}));
    expect(error).toMatchObject({ code: "UNAVAILABLE" });
    expect(String(error)).toContain("its process was ended by SIGKILL");
    await vi.waitFor(() => expect(source.state.status).toBe("up"), 20_000);
    expect(source.operations).toEqual(before);
    expect(source.operations[0]).toBe(before[0]);
    expect((await registry.execute("up.greet", {})).data).toEqual([{ type: "text", text: "Hello." }]);
    expect(pids()).toHaveLength(2);
    await source.close();
    expect(pids().filter(isRunning)).toEqual([]);
  });

  it("RE-30 starts down where nothing listens, and comes up once the server does", async () => {
    const port = await freePort();
    const { source, states } = mcp({ url: `http://127.0.0.1:${port}/mcp` });
    await source.start();
    expect(reasonOf(source)).toContain("nothing listens there; check that the server runs");
    expect(source.state).toHaveProperty("retryAt");
    expect(source.operations).toEqual([]);
    await vi.waitFor(() => expect(states.length).toBeGreaterThanOrEqual(3), 20_000);
    expect(new Set(states.map(({ status }) => status))).toEqual(new Set(["down"]));
    const server = await serveFirstHttp();
    atEnd(() => server.close());
    // The same server, under the port that was dead.
    const proxy = createTcpServer((socket) => {
      const upstream = new URL(server.url);
      import("node:net").then(({ connect }) => {
        const other = connect(Number(upstream.port), "127.0.0.1");
        socket.pipe(other).pipe(socket);
        for (const end of [socket, other]) end.on("error", () => {});
      });
    });
    await new Promise<void>((done) => proxy.listen(port, "127.0.0.1", done));
    atEnd(() => new Promise((done) => proxy.close(done)));
    await vi.waitFor(() => expect(source.state.status).toBe("up"), 20_000);
    expect(source.operations.map(({ id }) => id)).toEqual(["up.echo"]);
    await source.close();
  });

  it.each<[string, McpServerConfig, RegExp]>([
    ["a command that is not there", { command: "no-such-command-at-all" }, /there is no such command/],
    [
      "a process that ends",
      {
        command: process.execPath,
        args: ["-e", 'console.error("\\u001b[31mMY KEY my-secret-value is bad"); process.exit(3)'],
      },
      /exited with code 3; it last said: MY KEY \*\*\* is bad\.$/,
    ],
    [
      "a process that says nothing",
      { command: process.execPath, args: ["-e", "setTimeout(() => {}, 9e6)"], connectTimeoutMs: 300 },
      /in time; .*connectTimeoutMs/,
    ],
  ])(
    "RE-30 says what is wrong with %s, without secrets and fit for a terminal",
    async (_, server, wanted) => {
      const secrets = new SecretMask();
      secrets.add("my-secret-value");
      const { source } = mcp(server, { secrets });
      await source.start();
      const reason = reasonOf(source);
      expect(reason).toMatch(wanted);
      expect(reason.length).toBeLessThanOrEqual(300);
      expect(reason).not.toMatch(/\p{Cc}/u);
      expect(source.report().target).not.toContain("my-secret-value");
    },
  );

  it("RE-30 says that a server wants a token, and how to give one", async () => {
    const server = await listen((_, response) => response.writeHead(401).end());
    atEnd(() => server.close());
    const { source } = mcp({ url: server.url });
    await source.start();
    expect(reasonOf(source)).toMatch(
      /HTTP status 401; set bearer or headers for it, or run "npx --no waybill login up"\.$/,
    );
  });

  it.each<[McpServerConfig, RegExp]>([
    [{ url: "http://h.example/mcp" }, /use https, or set allowHttp: true\.$/],
    [
      { url: "https://h.example/mcp", oauth: { clientId: "a", clientSecret: "my-secret" } },
      /needs the issuer/,
    ],
    [{}, /neither a command nor a url/],
  ])("RE-30 is not tried again where only another config can help: %j", async (server, wanted) => {
    const { source, states } = mcp(server);
    await source.start();
    expect(reasonOf(source)).toMatch(wanted);
    expect(source.state).not.toHaveProperty("retryAt");
    await new Promise((done) => setTimeout(done, 200));
    expect(states).toHaveLength(1);
  });

  it("RE-30 leaves no process behind when it is closed while it connects, and is closed at once", async () => {
    const { options, pids } = scriptedOptions("deaf");
    const { source } = mcp({ ...options, connectTimeoutMs: 3_600_000 });
    const started = source.start();
    await vi.waitFor(() => expect(pids()).toHaveLength(1), 20_000);
    await source.close();
    await started;
    expect(pids().filter(isRunning)).toEqual([]);
    await source.retry();
    expect(pids()).toHaveLength(1);
  });

  it("RE-30 is tried at once when asked to, as the same source with the same provider", async () => {
    const { options, pids } = watched();
    const slow = { delayMs: 60_000, maxDelayMs: 60_000 };
    const loaded = loadedConfig({ mcpServers: { up: options } });
    const { source } = makeSource(loaded, { reconnect: slow });
    await source.start();
    const { provider } = source;
    const ids = source.operations.map(({ id }) => id);
    process.kill(pids()[0] as number, "SIGKILL");
    await vi.waitFor(() => expect(source.state.status).toBe("down"), 20_000);
    await source.retry();
    expect(source.state.status).toBe("up");
    expect(source.provider).toBe(provider);
    expect(source.operations.map(({ id }) => id)).toEqual(ids);
    const registry = new OperationRegistry();
    registry.registerAll(source);
    await registry.execute("up.greet", {});
    await source.close();
    expect(pids().filter(isRunning)).toEqual([]);
    await source.retry();
    expect(pids()).toHaveLength(2);
  });

  it("RE-30 leaks nothing over many restarts", async () => {
    const descriptors = () => readdirSync("/proc/self/fd").length;
    const { options, pids } = watched();
    const round = async () => {
      const { source } = mcp(options);
      await source.start();
      process.kill(pids().at(-1) as number, "SIGKILL");
      await vi.waitFor(() => expect(source.state.status).toBe("down"), { timeout: 20_000, interval: 1 });
      await source.retry();
      await source.close();
    };
    await round();
    const before = { files: descriptors(), handles: process.getActiveResourcesInfo().length };
    for (let n = 0; n < 8; n++) await round();
    expect(pids().filter(isRunning)).toEqual([]);
    await until(() => descriptors() <= before.files + 1);
    await until(() => process.getActiveResourcesInfo().length <= before.handles + 3);
  });

  it("RE-30 lets calls under way end before it closes, for as long as it is given", async () => {
    const server = await serveFirstHttp();
    atEnd(() => server.close());
    const { source } = mcp({ url: server.url });
    await source.start();
    const registry = new OperationRegistry();
    registry.registerAll(source);
    const slow = registry.execute("up.echo", { n: 1 });
    await source.close({ timeoutMs: 60_000 });
    expect(JSON.stringify((await slow).data)).toContain("1");
  });

  it("RE-30 refuses tools that are not as approved, and lists them", async () => {
    const folder = makeFolder();
    const { options } = watched();
    const { source } = makeSource(
      loadedConfig({ mcpServers: { up: options }, lock: "other.lock.json" }, { baseDir: folder }),
    );
    await source.start();
    const { changed } = source.report();
    expect([changed?.length === 0, source.operations]).toEqual([false, []]);
    expect(changed?.every(({ kind }) => kind === "new")).toBe(true);
    expect(changed?.find(({ tool }) => tool === "greet")?.diff).toContainEqual({
      path: "/inputSchema",
      after: expect.stringContaining('"type":"object"'),
    });
    const registry = new OperationRegistry();
    registry.registerAll(source);
    expect(await rejection(registry.execute("up.greet", {}))).toMatchObject({ code: "OPERATION_NOT_FOUND" });
    const { command = "", args = [], env = {} } = options;
    const pin = { lockFile: join(folder, "other.lock.json") };
    const approving = await fromMcp({ command, args, env }, { namespace: "up", pin });
    await approveTools(approving);
    await approving.close();
    await source.retry();
    expect(source.report().changed).toEqual([]);
    expect(registry.get("up.greet")).toBeDefined();
    const unlocked = mcp({ ...options, lock: false });
    await unlocked.source.start();
    expect(unlocked.source.report().changed).toBeUndefined();
  });

  it("RE-30 is connected to anew when it is asked to while it is up, and calls under way end on the old connection", async () => {
    const { source, states, started, release } = patient();
    await source.start();
    const { provider } = source;
    const registry = new OperationRegistry();
    registry.registerAll(source);
    const pidOf = async () => (await registry.execute("up.pid", {})).data as { pid: number };
    const { pid: old } = await pidOf();
    const waiting = registry.execute("up.wait", {});
    await vi.waitFor(() => expect(started()).toEqual([old]), 20_000);
    source.onChange((changes) => {
      for (const { operation } of changes) registry.register(operation, { replace: true });
    });
    await source.retry();
    expect(states.map(({ status }) => status)).toEqual(["up", "up"]);
    const { pid: fresh } = await pidOf();
    expect([fresh === old, isRunning(old), source.provider === provider]).toEqual([false, true, true]);
    expect(provider?.capabilities.resources).toBe(true);
    release();
    expect((await waiting).data).toEqual({ pid: old });
    await vi.waitFor(() => expect(isRunning(old)).toBe(false), 20_000);
    // What the old one leaves behind is not the new one's.
    expect(provider?.capabilities.resources).toBe(true);
    expect((await pidOf()).pid).toBe(fresh);
    await source.close();
    expect(isRunning(fresh)).toBe(false);
  });

  it("RE-30 answers calls that wait for their turn while it is connected to anew by the new connection", async () => {
    const { source, started, release } = patient();
    await source.start();
    const registry = new OperationRegistry();
    registry.registerAll(source);
    const rules = { sourceOf: () => "up", sources: new Map([["up", { concurrency: 1 }]]) };
    const policies = createPolicies({ rules });
    atEnd(() => policies.close());
    registry.use(policies.hooks);
    const running = registry.execute("up.wait", {});
    await vi.waitFor(() => expect(started()).toHaveLength(1), 20_000);
    const waiting = ["up.pid", "up.pid", "up.wait"].map((id) => registry.execute(id, {}));
    await source.retry();
    release();
    const [old] = started();
    expect((await running).data).toEqual({ pid: old });
    const answers = await Promise.all(waiting);
    const [{ data } = { data: undefined }] = answers;
    expect(answers.map((answer) => answer.data)).toEqual([data, data, data]);
    expect(data).toEqual({ pid: expect.any(Number) });
    expect(data).not.toEqual({ pid: old });
  });

  it("RE-30 leaves nothing running when it closes while calls end on a connection it has left", async () => {
    const { source, started } = patient();
    await source.start();
    const registry = new OperationRegistry();
    registry.registerAll(source);
    const waiting = rejection(registry.execute("up.wait", {}));
    await vi.waitFor(() => expect(started()).toHaveLength(1), 20_000);
    await source.retry();
    await source.close({ timeoutMs: 100 });
    expect(await waiting).toMatchObject({ code: "UNAVAILABLE" });
    expect(started().filter(isRunning)).toEqual([]);
  });

  it("RE-30 keeps the connection it has where a new one cannot be made, and says so", async () => {
    const { source, states, breakServer, warnings } = patient();
    await source.start();
    const registry = new OperationRegistry();
    registry.registerAll(source);
    const before = (await registry.execute("up.pid", {})).data;
    breakServer();
    await source.retry();
    expect(states.map(({ status }) => status)).toEqual(["up"]);
    expect((await registry.execute("up.pid", {})).data).toEqual(before);
    const note = expect.stringMatching(/^It could not be connected to anew, and stays as it was: /);
    expect(source.report().notes).toContainEqual({ name: "up", note });
    expect(warnings.join()).toContain("It could not be connected to anew");
  });

  it("RE-30 starts processes in the folder of the config, and says nothing on our own stderr", async () => {
    const folder = makeFolder();
    const said = vi.spyOn(process.stderr, "write");
    try {
      const { source } = mcp({ command: process.execPath, args: [EVERYTHING] }, { baseDir: folder });
      await source.start();
      expect(source.state.status).toBe("up");
      await source.close();
      expect(said).not.toHaveBeenCalled();
    } finally {
      said.mockRestore();
    }
  });
});
