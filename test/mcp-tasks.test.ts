import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { CallToolResultSchema, ElicitRequestSchema, ResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { afterEach, describe, expect, it } from "vitest";
import {
  defineOperation,
  type Identity,
  OperationRegistry,
  Tasks,
  type TasksOptions,
  toolError,
} from "../src/index.ts";
import { createMcpHandler, type McpServer, type McpServerOptions, toMcpServer } from "../src/mcp/index.ts";
import { until } from "./make-operation.ts";
import { post } from "./mcp-requests.ts";

const open: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

/** What came over a wire; a test that reads it wrongly fails. */
// biome-ignore lint/suspicious/noExplicitAny: its members are what is tested
type Json = any;

const FORM = {
  message: "Which colour?",
  requestedSchema: { type: "object", properties: { colour: { type: "string" } }, required: ["colour"] },
} as const;

/** Operations that end when the test says so. */
function createJobs() {
  const ends: ((value: unknown) => void)[] = [];
  const aborted: unknown[] = [];
  const wait = (signal: AbortSignal): Promise<unknown> =>
    new Promise((resolve, reject) => {
      ends.push(resolve);
      signal.addEventListener("abort", () => {
        aborted.push(signal.reason);
        reject(signal.reason);
      });
    });
  const operation = (name: string, rest: object) =>
    defineOperation({ namespace: "job", name, inputSchema: { type: "object" }, ...rest } as never);
  const registry = new OperationRegistry([
    operation("long", {
      durable: true,
      handler: async (
        _: unknown,
        { signal, progress }: { signal: AbortSignal; progress(value: unknown): void },
      ) => {
        progress({ done: 1, of: 3, message: "Looking." });
        return await wait(signal);
      },
    }),
    operation("quick", { handler: () => ({ at: "once" }) }),
    operation("slow", {
      handler: async (_: unknown, { signal }: { signal: AbortSignal }) => await wait(signal),
    }),
    operation("no", { durable: true, handler: () => toolError(null, { message: "No." }) }),
    operation("asks", {
      durable: true,
      handler: async (_: unknown, { elicit }: { elicit(form: object): Promise<object> }) =>
        await elicit(FORM),
    }),
    operation("secret", {
      durable: true,
      access: { scopes: { allOf: ["secrets"] } },
      handler: () => ({ deep: true }),
    }),
  ] as never);
  return { registry, ends, aborted };
}

interface Served extends ReturnType<typeof createJobs> {
  readonly server: McpServer;
  readonly tasks: Tasks;
}

function serve(options: McpServerOptions = {}, taskOptions: TasksOptions = {}): Served {
  const jobs = createJobs();
  const tasks = new Tasks(taskOptions);
  const server = toMcpServer(jobs.registry, { tasks, names: { prefix: false }, ...options });
  open.push(tasks, server);
  return { ...jobs, server, tasks };
}

const CAPABILITIES = { elicitation: { form: {} }, extensions: { "io.modelcontextprotocol/tasks": {} } };

const GREEN = { action: "accept", content: { colour: "green" } };

/** A client of 2026-07-28 that says what it sends. */
function modernPeer(server: McpServer, identity?: Identity, clientCapabilities: object = CAPABILITIES) {
  const handler = createMcpHandler(server);
  const send = async (method: string, params: Record<string, unknown> = {}): Promise<Response> => {
    const named = params["name"] ?? params["taskId"];
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": clientCapabilities,
    };
    const headers = {
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...(typeof named === "string" && { "mcp-name": named }),
    };
    const body = { jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } };
    return await handler.fetch(post(body, headers), identity && { identity });
  };
  const ask = async (method: string, params?: Record<string, unknown>): Promise<Json> => {
    const response = await send(method, params);
    const { result, error } = (await response.json()) as { result?: unknown; error?: unknown };
    return result ?? { error };
  };
  const settled = async (taskId: string): Promise<Json> => {
    for (;;) {
      const task = await ask("tasks/get", { taskId });
      if (task.status !== "working" && task.status !== "input_required") return task;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  return {
    send,
    ask,
    settled,
    call: (name: string, args = {}) => ask("tools/call", { name, arguments: args }),
  };
}

/** A client of 2025-11-25 that knows tasks: the official SDK's. */
async function legacyPeer(
  server: McpServer,
  identity?: Identity,
  elicit: ((signal: AbortSignal) => Promise<object>) | "none" = async () => GREEN,
): Promise<Client> {
  const [here, there] = InMemoryTransport.createLinkedPair();
  const client = new Client(
    { name: "test", version: "1" },
    { capabilities: { ...(elicit !== "none" && { elicitation: { form: {} } }), tasks: {} } },
  );
  if (elicit !== "none")
    client.setRequestHandler(ElicitRequestSchema, async (_, { signal }) => (await elicit(signal)) as never);
  await server.connect(there as never, { identity });
  await client.connect(here);
  open.push(client);
  return client;
}

describe("tasks of 2026-07-28", () => {
  it("are what durable operations answer with to clients that take them, and nobody else", async () => {
    const { server, ends } = serve();
    const peer = modernPeer(server);
    const { capabilities } = await peer.ask("server/discover");
    expect(capabilities.extensions).toEqual({ "io.modelcontextprotocol/tasks": {} });
    expect(capabilities.tasks).toBeUndefined();
    const created = await peer.call("long");
    expect(created).toMatchObject({
      resultType: "task",
      status: "working",
      statusMessage: "A restart of the server loses this task.",
      ttlMs: 86_400_000,
      pollIntervalMs: 1_000,
    });
    const { taskId } = created;
    await until(() => ends.length === 1);
    expect(await peer.ask("tasks/get", { taskId })).toMatchObject({
      resultType: "complete",
      taskId,
      status: "working",
    });
    ends[0]?.({ found: 3 });
    const done = await peer.settled(taskId);
    expect(done).toMatchObject({ status: "completed", result: { structuredContent: { found: 3 } } });
    const waiting = modernPeer(server, undefined, {}).call("long");
    await until(() => ends.length === 2);
    ends[1]?.({ found: 4 });
    expect(await waiting).toMatchObject({ resultType: "complete", structuredContent: { found: 4 } });
  });

  it("say progress, and answer the same byte for byte from then on", async () => {
    const { server, ends } = serve();
    const peer = modernPeer(server);
    const { taskId } = await peer.call("long");
    await until(() => ends.length === 1);
    for (;;) if ((await peer.ask("tasks/get", { taskId })).statusMessage === "Looking.") break;
    ends[0]?.({ text: "é".repeat(10) });
    await peer.settled(taskId);
    const texts = new Set<string>();
    for (let i = 0; i < 3; i++) texts.add(await (await peer.send("tasks/get", { taskId })).text());
    expect(texts.size).toBe(1);
  });

  it("begin when a call takes longer than it may, and not before", async () => {
    const { server, ends, tasks } = serve({}, { afterMs: 20 });
    const peer = modernPeer(server);
    expect(await peer.call("quick")).toMatchObject({
      resultType: "complete",
      structuredContent: { at: "once" },
    });
    expect(tasks.running).toBe(0);
    const created = await peer.call("slow");
    expect(created).toMatchObject({ resultType: "task", status: "working" });
    ends[0]?.({ after: "all" });
    expect(await peer.settled(created.taskId)).toMatchObject({
      result: { structuredContent: { after: "all" } },
    });
  });

  it("go on as calls where there is no room for another task", async () => {
    const { server, ends } = serve({}, { afterMs: 5, limits: { tasks: 1 } });
    const peer = modernPeer(server);
    await peer.call("slow");
    const second = peer.call("slow");
    await until(() => ends.length === 2);
    await new Promise((resolve) => setTimeout(resolve, 30));
    ends[1]?.({ without: "a task" });
    expect(await second).toMatchObject({ resultType: "complete", structuredContent: { without: "a task" } });
  });

  it("ask what they want to know, and take the answer once", async () => {
    const { server } = serve();
    const peer = modernPeer(server);
    const { taskId } = await peer.call("asks");
    const asked = async (): Promise<Json> => {
      for (;;) {
        const task = await peer.ask("tasks/get", { taskId });
        if (task.status === "input_required") return task;
      }
    };
    const { inputRequests } = await asked();
    const [key = ""] = Object.keys(inputRequests);
    expect(inputRequests[key]).toEqual({ method: "elicitation/create", params: { ...FORM, mode: "form" } });
    const update = (inputResponses: unknown) => peer.ask("tasks/update", { taskId, inputResponses });
    expect((await update("no")).error.code).toBe(-32_602);
    for (const wrong of [{ other: {} }, { [key]: 7 }, { [key]: { action: "perhaps" } }]) {
      expect(await update(wrong)).toMatchObject({ resultType: "complete" });
      expect((await asked()).inputRequests).toEqual(inputRequests);
    }
    await update({ [key]: { action: "accept", content: { colour: "red" } } });
    const { result } = await peer.settled(taskId);
    expect(result.structuredContent).toEqual({ action: "accept", content: { colour: "red" } });
    expect(await update({ [key]: { action: "cancel" } })).toMatchObject({ resultType: "complete" });
  });

  it("are cancelled once; what has ended stays as it is", async () => {
    const { server, ends, aborted } = serve();
    const peer = modernPeer(server);
    const { taskId } = await peer.call("long");
    await until(() => ends.length === 1);
    expect(await peer.ask("tasks/cancel", { taskId })).toMatchObject({ resultType: "complete" });
    await until(() => aborted.length === 1);
    expect(await peer.ask("tasks/get", { taskId })).toMatchObject({ status: "cancelled" });
    const no = await peer.call("no");
    const before = await peer.settled(no.taskId);
    expect(before).toMatchObject({ status: "completed", result: { isError: true } });
    expect(await peer.ask("tasks/cancel", { taskId: no.taskId })).toMatchObject({ resultType: "complete" });
    expect(await peer.ask("tasks/get", { taskId: no.taskId })).toEqual(before);
  });

  it("are heard of on a stream of changes, with all that asking would give", async () => {
    const { server, ends } = serve();
    const peer = modernPeer(server);
    const { taskId } = await peer.call("long");
    const ids = [taskId, "0".repeat(32)];
    const without = await modernPeer(server, undefined, {}).ask("subscriptions/listen", {
      notifications: { taskIds: ids },
    });
    expect(without.error).toMatchObject({
      code: -32_021,
      data: { requiredCapabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } } },
    });
    const many = Array.from({ length: 101 }, (_, i) => String(i));
    expect((await peer.ask("subscriptions/listen", { notifications: { taskIds: many } })).error.code).toBe(
      -32_602,
    );
    const response = await peer.send("subscriptions/listen", { notifications: { taskIds: ids } });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    let text = "";
    const read = async (isThere: () => boolean): Promise<void> => {
      while (!isThere()) text += new TextDecoder().decode((await reader.read()).value);
    };
    const events = (): Json[] =>
      [...text.matchAll(/^data: (.+)$/gm)].map(([, data = ""]) => JSON.parse(data));
    await read(() => events().length > 0);
    expect(events()[0].params.notifications).toEqual({ taskIds: [taskId] });
    await until(() => ends.length === 1);
    ends[0]?.({ found: 3 });
    await read(() => events().some(({ params }) => params.status === "completed"));
    const { params } = events().at(-1);
    const { _meta: _, resultType: __, ...asked } = await peer.ask("tasks/get", { taskId });
    const { _meta: ___, ...told } = params;
    expect(told).toEqual(asked);
    await reader.cancel();
  });

  it("tell a stream of changes what they came to or asked before it began", async () => {
    const { server } = serve();
    const peer = modernPeer(server);
    const [ended, asking] = [await peer.call("no"), await peer.call("asks")];
    await peer.settled(ended.taskId);
    while ((await peer.ask("tasks/get", { taskId: asking.taskId })).status === "working");
    const taskIds = [ended.taskId, asking.taskId];
    const { body } = await peer.send("subscriptions/listen", { notifications: { taskIds } });
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    let text = "";
    const told = (): Json[] =>
      [...text.matchAll(/^data: (.+)$/gm)]
        .map(([, data = ""]) => JSON.parse(data))
        .filter(({ method }) => method === "notifications/tasks");
    while (told().length < 2) text += new TextDecoder().decode((await reader.read()).value);
    const states = new Map(told().map(({ params }) => [params.taskId, params]));
    expect(states.get(ended.taskId)).toMatchObject({ status: "completed", result: { isError: true } });
    expect(states.get(asking.taskId)).toMatchObject({ status: "input_required", inputRequests: {} });
    await reader.cancel();
  });

  it("are required by some tools, and forbidden to others", async () => {
    const support = { "job.quick": "required", "job.long": "forbidden" } as const;
    const { server, ends } = serve({ taskSupportOf: (id) => support[id as keyof typeof support] });
    const peer = modernPeer(server);
    const created = await peer.call("quick");
    if (created.resultType === "task") expect((await peer.settled(created.taskId)).status).toBe("completed");
    const { error } = await modernPeer(server, undefined, {}).call("quick");
    expect(error.code).toBe(-32_021);
    const waiting = peer.call("long");
    await until(() => ends.length === 1);
    ends[0]?.({});
    expect((await waiting).resultType).toBe("complete");
  });

  it("are at once what a tool is that is required to be one, whatever time calls have", async () => {
    const { server, ends } = serve({ taskSupportOf: () => "required" }, { afterMs: 3_600_000 });
    const peer = modernPeer(server);
    const created = await peer.call("slow");
    expect(created).toMatchObject({ resultType: "task", status: "working" });
    await until(() => ends.length === 1);
    ends[0]?.({});
    expect((await peer.settled(created.taskId)).status).toBe("completed");
  });

  it("are tasks of the catalogue's call too", async () => {
    const { server, ends } = serve({ catalogue: true });
    const peer = modernPeer(server);
    const created = await peer.call("call", { id: "job.long" });
    expect(created.resultType).toBe("task");
    await until(() => ends.length === 1);
    ends[0]?.({ found: 1 });
    expect(await peer.settled(created.taskId)).toMatchObject({ result: { structuredContent: { found: 1 } } });
    expect(await peer.call("call", { id: "job.quick" })).toMatchObject({ resultType: "complete" });
    const hidden = await peer.call("call", { id: "job.secret" });
    const missing = await peer.call("call", { id: "job.nothing" });
    expect(JSON.stringify(hidden).replaceAll("secret", "nothing")).toBe(JSON.stringify(missing));
  });
});

describe("tasks of 2025-11-25", () => {
  it("are driven by the official client, with what they ask on the way", async () => {
    const { server, ends } = serve();
    const client = await legacyPeer(server);
    expect(client.getServerCapabilities()?.tasks).toEqual({
      list: {},
      cancel: {},
      requests: { tools: { call: {} } },
    });
    const { tools } = await client.listTools();
    expect(tools.map(({ execution }) => execution?.taskSupport)).toEqual(tools.map(() => "optional"));
    const seen: string[] = [];
    const stream = client.experimental.tasks.callToolStream(
      { name: "asks", arguments: {} },
      CallToolResultSchema,
      { task: { ttl: 60_000 } },
    );
    let result: unknown;
    for await (const message of stream) {
      seen.push(message.type);
      if (message.type === "result") result = message.result;
      if (message.type === "taskCreated") expect(message.task.ttl).toBe(60_000);
    }
    expect(seen[0]).toBe("taskCreated");
    expect(result).toMatchObject({ structuredContent: { action: "accept", content: { colour: "green" } } });
    const meta = (result as { _meta: Record<string, { taskId: string }> })._meta[
      "io.modelcontextprotocol/related-task"
    ];
    const { tasks } = await client.experimental.tasks.listTasks();
    expect(tasks.map(({ taskId, status }) => [taskId, status])).toEqual([[meta?.taskId, "completed"]]);
    expect(ends).toHaveLength(0);
  });

  it("tell of their status, wait for their result, and are cancelled once", async () => {
    const { server, ends } = serve();
    const client = await legacyPeer(server);
    const told: unknown[] = [];
    client.fallbackNotificationHandler = async ({ method, params }) => {
      if (method === "notifications/tasks/status") told.push((params as { status: string }).status);
    };
    const ask = (method: string, params: object) =>
      client.request({ method, params } as never, ResultSchema) as Promise<Json>;
    const { task } = await ask("tools/call", { name: "long", arguments: {}, task: {} });
    expect(task).toMatchObject({ status: "working", ttl: 86_400_000, pollInterval: 1_000 });
    const { taskId } = task;
    // Asked too early, it waits.
    const early = ask("tasks/result", { taskId });
    await until(() => ends.length === 1);
    ends[0]?.({ found: 3 });
    expect(await early).toMatchObject({ structuredContent: { found: 3 } });
    expect(await ask("tasks/get", { taskId })).toMatchObject({ taskId, status: "completed" });
    await expect(ask("tasks/cancel", { taskId })).rejects.toMatchObject({ code: -32_602 });
    const no = await ask("tools/call", { name: "no", arguments: {}, task: { ttl: 5_000 } });
    expect(await ask("tasks/result", { taskId: no.task.taskId })).toMatchObject({ isError: true });
    expect(await ask("tasks/get", { taskId: no.task.taskId })).toMatchObject({
      status: "failed",
      statusMessage: expect.anything(),
    });
    const second = await ask("tools/call", { name: "long", arguments: {}, task: {} });
    expect(await ask("tasks/cancel", { taskId: second.task.taskId })).toMatchObject({ status: "cancelled" });
    await expect(ask("tasks/result", { taskId: second.task.taskId })).rejects.toMatchObject({
      code: -32_603,
    });
    await until(() => told.includes("cancelled") && told.includes("completed"));
    expect((await ask("tools/call", { name: "quick", arguments: {} })).task).toBeUndefined();
    for (const wrong of [7, null, "x", [], { ttl: "1" }, { ttl: -1 }])
      await expect(ask("tools/call", { name: "quick", arguments: {}, task: wrong })).rejects.toMatchObject({
        code: -32_602,
      });
  });

  it("ask whoever asked for the result last, as others may be gone, and take the question back from those", async () => {
    const { server } = serve();
    const ann = { subject: "ann" };
    const heard: AbortSignal[] = [];
    const silent = await legacyPeer(server, ann, (signal) => {
      heard.push(signal);
      return new Promise(() => {});
    });
    const ask = (client: Client, method: string, params: object) =>
      client.request({ method, params } as never, ResultSchema) as Promise<Json>;
    const { task } = await ask(silent, "tools/call", { name: "asks", arguments: {}, task: {} });
    const { taskId } = task;
    const first = ask(silent, "tasks/result", { taskId });
    await until(() => heard.length === 1);
    const mute = ask(await legacyPeer(server, ann, "none"), "tasks/result", { taskId });
    const second = ask(await legacyPeer(server, ann), "tasks/result", { taskId });
    for (const result of [first, mute, second])
      expect((await result).structuredContent).toEqual({ action: "accept", content: { colour: "green" } });
    await until(() => heard[0]?.aborted === true);
    expect(heard).toHaveLength(1);
  });

  it("keep to what a tool says of them", async () => {
    const support = { "job.quick": "required", "job.no": "forbidden" } as const;
    const { server } = serve({ taskSupportOf: (id) => support[id as keyof typeof support] });
    const client = await legacyPeer(server);
    const ask = (params: object) =>
      client.request({ method: "tools/call", params } as never, ResultSchema) as Promise<Json>;
    await expect(ask({ name: "quick", arguments: {} })).rejects.toMatchObject({ code: -32_601 });
    await expect(ask({ name: "no", arguments: {}, task: {} })).rejects.toMatchObject({ code: -32_601 });
    expect(await ask({ name: "quick", arguments: {}, task: {} })).toMatchObject({
      task: { status: "working" },
    });
  });

  it("are no tasks of a server that has none, which answers as ever", async () => {
    const { registry } = createJobs();
    const server = toMcpServer(registry, { names: { prefix: false } });
    open.push(server);
    const client = await legacyPeer(server);
    const ask = (method: string, params: object) =>
      client.request({ method, params } as never, ResultSchema) as Promise<Json>;
    expect(client.getServerCapabilities()?.tasks).toBeUndefined();
    expect(await ask("tools/call", { name: "quick", arguments: {}, task: { ttl: 1 } })).toMatchObject({
      structuredContent: { at: "once" },
    });
    await expect(ask("tasks/list", {})).rejects.toMatchObject({ code: -32_601 });
    const { tools } = await client.listTools();
    expect(tools.every(({ execution }) => execution === undefined)).toBe(true);
  });
});

describe("tasks of others", () => {
  const identityOf = (subject: string, ...scopes: string[]): Identity => ({ subject, scopes });

  it("do not exist: one answer for them and for what never was, in both revisions", async () => {
    const { server, registry } = serve();
    const ann = modernPeer(server, identityOf("ann", "secrets"));
    const { taskId } = await ann.call("secret");
    await ann.settled(taskId);
    const long = await ann.call("long");
    const ids = [taskId, long.taskId, "0".repeat(32), "", "x", "../x", "é".repeat(40), "a".repeat(5_000)];
    const answers = new Set<string>();
    const strangers = [modernPeer(server, identityOf("ben", "secrets")), modernPeer(server)];
    for (const peer of strangers) {
      for (const id of ids.filter((each) => /^[\x21-\x7e]*$/.test(each))) {
        for (const method of ["tasks/get", "tasks/cancel", "tasks/update"])
          answers.add(JSON.stringify(await peer.ask(method, { taskId: id, inputResponses: {} })));
      }
    }
    // Who has lost a right since is a stranger to what came of it.
    answers.add(JSON.stringify(await modernPeer(server, identityOf("ann")).ask("tasks/get", { taskId })));
    expect([...answers]).toHaveLength(1);
    const legacy = await legacyPeer(server, identityOf("ben"));
    const errors = new Set<string>();
    for (const id of [...ids, 7, null, {}]) {
      for (const method of ["tasks/get", "tasks/cancel", "tasks/result"]) {
        const asking = legacy.request({ method, params: { taskId: id } } as never, ResultSchema);
        errors.add(await asking.then(String, ({ code, message }) => `${code} ${message}`));
      }
    }
    expect([...errors]).toHaveLength(1);
    expect((await legacy.experimental.tasks.listTasks()).tasks).toEqual([]);
    const own = await legacyPeer(server, identityOf("ann", "secrets"));
    expect((await own.experimental.tasks.listTasks()).tasks).toHaveLength(2);
    registry.remove("job.long");
    expect((await own.experimental.tasks.listTasks()).tasks).toHaveLength(1);
  });

  it("are those of another session, where nobody says who they are", async () => {
    const { server } = serve();
    const [one, other] = [await legacyPeer(server), await legacyPeer(server)];
    const { task } = (await one.request(
      { method: "tools/call", params: { name: "long", arguments: {}, task: {} } } as never,
      ResultSchema,
    )) as Json;
    expect((await one.experimental.tasks.listTasks()).tasks).toHaveLength(1);
    expect((await other.experimental.tasks.listTasks()).tasks).toEqual([]);
    await expect(other.experimental.tasks.getTask(task.taskId)).rejects.toMatchObject({ code: -32_602 });
  });

  it("are not begun of tools that the caller may not see", async () => {
    const { server } = serve();
    const peer = modernPeer(server, identityOf("ben"));
    const hidden = await peer.call("secret");
    const missing = await peer.call("secres");
    expect(JSON.stringify(hidden).replaceAll("secret", "secres")).toBe(JSON.stringify(missing));
    const legacy = await legacyPeer(server, identityOf("ben"));
    const asking = legacy.request(
      { method: "tools/call", params: { name: "secret", arguments: {}, task: {} } } as never,
      ResultSchema,
    );
    await expect(asking).rejects.toMatchObject({ code: -32_602 });
  });
});
