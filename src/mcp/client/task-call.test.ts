import { afterEach, describe, expect, it } from "vitest";
import { closeImported, type Extra, imported, OBJECT, text } from "../../../test/import-raw-server.ts";
import { rejection, until } from "../../../test/make-operation.ts";
import { createRawMcpServer, type RawAnswer } from "../../../test/raw-mcp-server.ts";
import { CallError } from "../../core/errors/errors.ts";
import type { JsonValue } from "../../core/json/json-value.ts";
import type { CallerSide, CallerTask } from "../../core/operation/caller-side.ts";
import { POLL_DELAYS, pollDelay } from "./task-call.ts";

afterEach(closeImported);

const TASKS = "io.modelcontextprotocol/tasks";
const RELATED = "io.modelcontextprotocol/related-task";
const FORMS = ["2025", "2026"] as const;
type Form = (typeof FORMS)[number];
type Told = Readonly<Record<string, unknown>>;

const DONE = { content: [text("done")] };
const unknownTask = { code: -32602, message: "Failed to retrieve task: Task not found" };
const never = () => new Promise(() => {});

/** The task `t1` as each form of tasks has it, with what differs. */
const task = (form: Form, told: Told = {}): Told => ({
  taskId: "t1",
  status: "working",
  createdAt: "2026-11-19T10:00:00Z",
  lastUpdatedAt: "2026-11-19T10:00:00Z",
  ...(form === "2025"
    ? { ttl: 60_000, pollInterval: 1 }
    : { ttlMs: 60_000, pollIntervalMs: 1, resultType: "complete" }),
  ...told,
});

interface Script {
  /** What `tasks/get` tells, one after the other; the last one stays. A function is asked each time. */
  readonly told?: readonly (Told | (() => Told))[];
  /** How `tasks/result` is answered (2025). @default when the task has ended, with `DONE` */
  readonly result?: RawAnswer;
  readonly update?: RawAnswer;
  readonly call?: RawAnswer;
  readonly taskSupport?: string;
  /** Whether the server says that it has tasks. @default true */
  readonly offers?: boolean;
}

/** A server with one tool, `t`, that runs as the task `t1`. */
function taskServer(form: Form, script: Script) {
  const { told = [{ status: "completed", result: DONE }], taskSupport = "required", offers = true } = script;
  const tasks = { cancel: {}, requests: { tools: { call: {} } } };
  const ended: (() => void)[] = [];
  let polls = 0;
  const state = (): Told => {
    const next = told[Math.min(polls, told.length - 1)] ?? {};
    polls += 1;
    const now = task(form, typeof next === "function" ? next() : next);
    if (["completed", "failed", "cancelled"].includes(String(now["status"])))
      for (const end of ended.splice(0)) end();
    return now;
  };
  const created = form === "2025" ? { task: task(form) } : { ...task(form), resultType: "task" };
  const capabilities =
    form === "2025"
      ? { tools: {}, ...(offers && { tasks }) }
      : { tools: {}, ...(offers && { extensions: { [TASKS]: {} } }) };
  const server = createRawMcpServer({
    initialize: ({ protocolVersion }) => ({
      protocolVersion,
      capabilities,
      serverInfo: { name: "raw", version: "1.0.0" },
    }),
    "server/discover": () => ({ supportedVersions: ["2026-07-28"], capabilities, resultType: "complete" }),
    "tools/list": () => ({
      resultType: "complete",
      tools: [{ name: "t", inputSchema: OBJECT, execution: { taskSupport } }],
    }),
    "tools/call": script.call ?? (() => created),
    "tasks/get": state,
    "tasks/update": script.update ?? (() => ({ resultType: "complete" })),
    "tasks/cancel": () => task(form, { status: "cancelled" }),
    "tasks/result": script.result ?? (() => new Promise((resolve) => ended.push(() => resolve(DONE)))),
  });
  const sent = (method: string) => server.received.filter((message) => message.method === method);
  return {
    ...server,
    sent,
    get polls() {
      return polls;
    },
  };
}

const start = async (form: Form, script: Script, extra: Extra = {}) => {
  const server = taskServer(form, script);
  return { server, ...(await imported(server, { protocol: form, ...extra })) };
};

const says = (elicit: NonNullable<CallerSide["elicit"]>): { readonly caller: CallerSide } => ({
  caller: { elicit },
});

const question = {
  method: "elicitation/create",
  params: { message: "Which?", requestedSchema: { type: "object" } },
};

describe.each(FORMS)("a tool of a %s server that runs as a task", (form) => {
  it("Mcp: is polled until it has ended, and tells how it is doing", async () => {
    const { registry, server } = await start(form, {
      told: [
        { statusMessage: "one" },
        { statusMessage: "one" },
        { statusMessage: "two" },
        { status: "completed", result: DONE },
      ],
    });
    const heard: unknown[] = [];
    const { data, meta } = await registry.execute(
      "raw.t",
      { a: 1 },
      { onProgress: (value) => heard.push(value) },
    );
    expect(data).toEqual(DONE.content);
    expect(meta).toMatchObject({ isError: false });
    expect(heard).toEqual([
      { progress: 1, message: "one" },
      { progress: 2, message: "two" },
    ]);
    expect(server.sent("tasks/get")).toHaveLength(4);
    expect(server.sent("tasks/get").every(({ params }) => params["taskId"] === "t1")).toBe(true);
    expect(server.sent("tasks/cancel")).toEqual([]);
    const [{ params } = { params: {} as Told }] = server.sent("tools/call");
    if (form === "2025") expect(params["task"]).toEqual({ ttl: expect.any(Number) });
    else
      expect(params["_meta"]).toMatchObject({
        "io.modelcontextprotocol/clientCapabilities": { extensions: { [TASKS]: {} } },
      });
  });

  it("Mcp: is unavailable when its server has forgotten it, and is not cancelled then", async () => {
    const { registry, server } = await start(form, {
      told: [
        {},
        () => {
          throw unknownTask;
        },
      ],
      result: never,
    });
    const failure = await rejection(registry.execute("raw.t", {}));
    expect(failure).toMatchObject({ code: "UNAVAILABLE", details: { task: "forgotten" } });
    expect(String(failure)).toContain('no longer knows the task of the tool "t"; the call may have run');
    expect(server.sent("tasks/cancel")).toEqual([]);
  });

  it("Mcp: ends once, whatever the server says later", async () => {
    const { registry, server } = await start(form, {
      told: [
        { status: "completed", result: DONE },
        { status: "failed", error: { code: -32603, message: "no" } },
      ],
    });
    const { data } = await registry.execute("raw.t", {});
    server.notify("notifications/tasks/status", task(form, { status: "failed" }));
    server.notify("notifications/tasks", task(form, { status: "cancelled" }));
    expect(data).toEqual(DONE.content);
    expect((await registry.execute("raw.t", {}).catch((error: unknown) => error)) instanceof Error).toBe(
      form === "2026",
    );
  });

  it("Mcp: fails when its server answers for another task, which is left alone", async () => {
    const { registry, server } = await start(form, {
      told: [{ taskId: "t2", status: "completed", result: DONE }],
      result: never,
    });
    const failure = await rejection(registry.execute("raw.t", {}));
    expect(failure).toMatchObject({ code: "EXECUTION_ERROR", details: { task: "other task" } });
    await until(() => server.sent("tasks/cancel").length === 1);
    expect(server.sent("tasks/cancel")[0]?.params).toMatchObject({ taskId: "t1" });
  });

  it.each([
    { taskId: "" },
    { taskId: 1 },
    { taskId: "x".repeat(1_025) },
    { status: "lost" },
    { status: undefined },
  ])("Mcp: fails when its server answers with a task that makes no sense, row %#", async (odd) => {
    const created = task(form, odd);
    const call = () => (form === "2025" ? { task: created } : { ...created, resultType: "task" });
    const { registry } = await start(form, { call });
    const failure = await rejection(registry.execute("raw.t", {}));
    expect(failure).toMatchObject({ code: "EXECUTION_ERROR", details: { task: "no task" } });
  });

  it("Mcp: is cancelled when it never ends: after the limit, or the caller's deadline", async () => {
    for (const [extra, options] of [
      [{ limits: { taskMs: 300 } }, {}],
      [{}, { timeoutMs: 300 }],
    ] as const) {
      const { registry, server } = await start(form, { told: [{}], result: never }, extra);
      expect(await rejection(registry.execute("raw.t", {}, options))).toMatchObject({ code: "TIMEOUT" });
      await until(() => server.sent("tasks/cancel").length === 1);
      // However slow the machine is: a poll that asks to come at once waits all the same.
      expect(server.polls).toBeLessThanOrEqual(300 / POLL_DELAYS.least);
    }
  });

  it("Mcp: outlives the time of one request, which is not that of the task", async () => {
    const { registry } = await start(
      form,
      { told: [{}, {}, { status: "completed", result: DONE }] },
      { timeoutMs: 50 },
    );
    expect((await registry.execute("raw.t", {})).data).toEqual(DONE.content);
  });

  it("Mcp: is cancelled when the caller leaves", async () => {
    const { registry, server } = await start(form, { told: [{}], result: never });
    const controller = new AbortController();
    const pending = rejection(registry.execute("raw.t", {}, { signal: controller.signal }));
    await until(() => server.polls > 0);
    controller.abort();
    expect(await pending).toMatchObject({ code: "ABORTED" });
    await until(() => server.sent("tasks/cancel").length === 1);
    const { polls } = server;
    await new Promise((resolve) => setTimeout(resolve, 3 * POLL_DELAYS.least));
    expect(server.polls).toBe(polls);
  });

  it("Mcp: goes on over another connection where the server keeps it", async () => {
    const { registry, server } = await start(
      form,
      { told: [{}, {}, {}, { status: "completed", result: DONE }] },
      { reconnect: { delayMs: 1, maxDelayMs: 5 } },
    );
    const pending = registry.execute("raw.t", {});
    await until(() => server.polls === 1);
    await server.drop();
    expect((await pending).data).toEqual(DONE.content);
    expect(server.sent("tools/call")).toHaveLength(1);
  });

  it("Mcp: fails when its server is away for longer than allowed, or for good", async () => {
    for (const extra of [
      { reconnect: { delayMs: 60_000, maxDelayMs: 60_000 }, limits: { taskSilenceMs: 1 } },
      { reconnect: false },
    ] as const) {
      const server = taskServer(form, { told: [{}] });
      let isAway = false;
      const transport = () => {
        if (isAway) throw new Error("It is away.");
        return server.transport();
      };
      const { registry } = await imported({ transport }, { protocol: form, ...extra });
      const pending = rejection(registry.execute("raw.t", {}));
      await until(() => server.polls === 1);
      isAway = true;
      await server.drop();
      expect(await pending).toMatchObject({ code: "UNAVAILABLE" });
    }
  });

  it("Mcp: is an error when its server cancels it, or says that it failed", async () => {
    const cancelled = await start(form, { told: [{ status: "cancelled", statusMessage: "by hand" }] });
    expect(await rejection(cancelled.registry.execute("raw.t", {}))).toMatchObject({
      code: "EXECUTION_ERROR",
      details: { task: "cancelled", said: "by hand" },
    });
    const error = { code: -32603, message: "broken" };
    const failed = await start(form, {
      told: [{ status: "failed", error, statusMessage: "broken" }],
      result: () => {
        throw error;
      },
    });
    expect(await rejection(failed.registry.execute("raw.t", {}))).toMatchObject({
      code: "EXECUTION_ERROR",
      details: { said: "broken" },
    });
    expect([...cancelled.server.sent("tasks/cancel"), ...failed.server.sent("tasks/cancel")]).toEqual([]);
  });

  it("Mcp: is called as any other tool where the server says nothing of tasks", async () => {
    const call = () => ({ ...DONE, resultType: "complete" });
    const { registry, server } = await start(form, { offers: false, call });
    expect((await registry.execute("raw.t", {})).data).toEqual(DONE.content);
    const [{ params } = { params: {} }] = server.sent("tools/call");
    expect(params).not.toHaveProperty("task");
    expect(JSON.stringify(params)).not.toContain(TASKS);
  });
});

describe("a task of a 2025-11-25 server", () => {
  it("Mcp: is asked for where it may be only when that is wanted, and the call is answered either way", async () => {
    const call: RawAnswer = ({ task: wanted }) => (wanted === undefined ? DONE : { task: task("2025") });
    const plain = await start("2025", { taskSupport: "optional", call });
    expect((await plain.registry.execute("raw.t", {})).data).toEqual(DONE.content);
    expect(plain.server.sent("tasks/result")).toEqual([]);
    const wanted = await start("2025", { taskSupport: "optional", call }, { tasks: "optional" });
    expect((await wanted.registry.execute("raw.t", {})).data).toEqual(DONE.content);
    expect(wanted.server.sent("tasks/result")).toHaveLength(1);
    const forbidden = await start("2025", { taskSupport: "forbidden", call }, { tasks: "optional" });
    await forbidden.registry.execute("raw.t", {});
    expect(forbidden.server.sent("tasks/result")).toEqual([]);
    const deaf = await start("2025", { call: () => DONE });
    expect((await deaf.registry.execute("raw.t", {})).data).toEqual(DONE.content);
  });

  it("Mcp: gives its result as soon as there is one, whatever the server says of polling", async () => {
    const call = () => ({ task: task("2025", { pollInterval: 1e15, ttl: null }) });
    const { registry, server } = await start("2025", { call, result: () => DONE });
    expect((await registry.execute("raw.t", {})).data).toEqual(DONE.content);
    expect(server.polls).toBe(0);
  });

  it("Mcp: is cancelled when the caller left before it had a name", async () => {
    let name = (_: unknown): void => {};
    const call = () => new Promise((resolve) => (name = resolve));
    const { registry, server } = await start("2025", { call });
    const controller = new AbortController();
    const pending = rejection(registry.execute("raw.t", {}, { signal: controller.signal }));
    await until(() => server.sent("tools/call").length === 1);
    controller.abort();
    expect(await pending).toMatchObject({ code: "ABORTED" });
    expect(server.sent("notifications/cancelled")).toEqual([]);
    name({ task: task("2025") });
    await until(() => server.sent("tasks/cancel").length === 1);
  });

  it("Mcp: is not taken for done by the result of another one", async () => {
    const other = { ...DONE, _meta: { [RELATED]: { taskId: "t2" } } };
    const { registry, server } = await start("2025", { told: [{}], result: () => other });
    const failure = await rejection(registry.execute("raw.t", {}));
    expect(failure).toMatchObject({ code: "EXECUTION_ERROR", details: { task: "other result" } });
    await until(() => server.sent("tasks/cancel").length === 1);
    const own = { ...DONE, _meta: { [RELATED]: { taskId: "t1" }, kept: 1 } };
    const fine = await start("2025", { told: [{}], result: () => own });
    expect((await fine.registry.execute("raw.t", {})).meta).toMatchObject({ _meta: { kept: 1 } });
    expect(JSON.stringify(await fine.registry.execute("raw.t", {}))).not.toContain("t1");
  });

  it("Mcp: hears at once when the server tells that its state changed", async () => {
    const call = () => ({ task: task("2025", { pollInterval: 60_000 }) });
    let end = (_: unknown): void => {};
    const result = () => new Promise((resolve) => (end = resolve));
    const { registry, server } = await start("2025", { call, result });
    const heard: unknown[] = [];
    const pending = registry.execute("raw.t", {}, { onProgress: (value) => heard.push(value) });
    await until(() => server.sent("tasks/result").length === 1);
    server.notify("notifications/tasks/status", { ...task("2025"), taskId: "t2", statusMessage: "not mine" });
    server.notify("notifications/tasks/status", { ...task("2025"), statusMessage: "mine" });
    await until(() => heard.length === 1);
    const [{ params } = { params: {} as Told }] = server.sent("tools/call");
    const { progressToken } = params["_meta"] as Told;
    server.notify("notifications/progress", { progressToken, progress: 5, total: 9 });
    await until(() => heard.length === 2);
    server.notify("notifications/tasks/status", { ...task("2025"), statusMessage: "not counted" });
    end(DONE);
    await pending;
    server.notify("notifications/progress", { progressToken, progress: 6, total: 9 });
    expect(heard).toEqual([
      { progress: 1, message: "mine" },
      { progress: 5, total: 9 },
    ]);
    expect(server.polls).toBe(0);
  });

  it("Mcp: has its questions answered by its own caller, and those for a task nobody waits for refused", async () => {
    const asked: unknown[] = [];
    const ask = async (taskId: string) => {
      const { params } = question;
      return await server.ask("elicitation/create", { ...params, _meta: { [RELATED]: { taskId } } });
    };
    const result = async () => {
      asked.push(await ask("t2"), await ask("t1"));
      return DONE;
    };
    const call = () => ({ task: task("2025", { status: "input_required" }) });
    const { registry, server } = await start("2025", { told: [{}], call, result });
    const seen: unknown[] = [];
    const answering = says(async ({ message }) => {
      seen.push(message);
      return { action: "accept", content: { a: 1 } };
    });
    expect((await registry.execute("raw.t", {}, answering)).data).toEqual(DONE.content);
    expect(asked).toMatchObject([
      { error: { code: -1 } },
      { result: { action: "accept", content: { a: 1 } } },
    ]);
    expect(seen).toEqual(["Which?"]);
  });

  it("Mcp: fails when its server asks without an end", async () => {
    const limits = { rounds: 2, questions: 2 };
    const refusals: unknown[] = [];
    const result = async () => {
      for (;;) {
        const { params } = question;
        const answer = await server.ask("elicitation/create", {
          ...params,
          _meta: { [RELATED]: { taskId: "t1" } },
        });
        if (answer["error"] === undefined) continue;
        refusals.push(answer["error"]);
        return await never();
      }
    };
    const { registry, server } = await start("2025", { told: [{}], result }, { limits });
    let answers = 0;
    const answering = says(async () => {
      answers += 1;
      return { action: "decline" };
    });
    const failure = await rejection(registry.execute("raw.t", {}, answering));
    expect(failure).toMatchObject({ code: "EXECUTION_ERROR", details: { task: "asks too much" } });
    await until(() => refusals.length === 1 && server.sent("tasks/cancel").length === 1);
    expect(answers).toBe(4);
  });

  it("Mcp: is polled where the server does not let its result be waited for", async () => {
    let isOver = false;
    const result = () => {
      if (isOver) return DONE;
      throw { code: -32600, message: "The task has not ended." };
    };
    const end = () => {
      isOver = true;
      return { status: "completed" };
    };
    const { registry, server } = await start("2025", { told: [{}, {}, end], result });
    expect((await registry.execute("raw.t", {})).data).toEqual(DONE.content);
    expect(server.sent("tasks/result")).toHaveLength(2);
  });
});

describe("a task of a 2026-07-28 server", () => {
  const asks = (...keys: readonly string[]): Told => ({
    status: "input_required",
    inputRequests: Object.fromEntries(keys.map((key) => [key, question])),
  });

  it("Mcp: has each question answered once, however often it is told", async () => {
    const { registry, server } = await start("2026", {
      told: [asks("a"), asks("a"), asks("a", "b"), {}, { status: "completed", result: DONE }],
    });
    let answers = 0;
    const answering = says(async () => {
      answers += 1;
      return { action: "accept", content: { n: answers } };
    });
    expect((await registry.execute("raw.t", {}, answering)).data).toEqual(DONE.content);
    expect(server.sent("tasks/update").map(({ params }) => params["inputResponses"])).toEqual([
      { a: { action: "accept", content: { n: 1 } } },
      { b: { action: "accept", content: { n: 2 } } },
    ]);
  });

  it("Mcp: fails when its server asks without an end, asks too much at once, or asks nothing", async () => {
    let polls = 0;
    const endless = () => {
      polls += 1;
      return asks(`k${polls}`);
    };
    const many = Array.from({ length: 17 }, (_, at) => `k${at}`);
    for (const [told, reason] of [
      [endless, { details: { task: "asks too much" } }],
      [asks(...many), { message: expect.stringContaining("more than 16 questions") }],
      [{ status: "input_required" }, { details: { task: "asks nothing" } }],
    ] as const) {
      let answers = 0;
      const { registry, server } = await start("2026", { told: [told] });
      const answering = says(async () => {
        answers += 1;
        return { action: "decline" };
      });
      const failure = await rejection(registry.execute("raw.t", {}, answering));
      expect(failure).toMatchObject({ code: "EXECUTION_ERROR", ...reason });
      await until(() => server.sent("tasks/cancel").length === 1);
      expect(answers).toBeLessThanOrEqual(8);
    }
  });

  it("Mcp: takes back a question when it ends in another way", async () => {
    const { registry } = await start("2026", {
      told: [asks("a"), {}, { status: "completed", result: DONE }],
    });
    let withdrawn: AbortSignal | undefined;
    const answering = says((_, signal) => {
      withdrawn = signal;
      return new Promise(() => {});
    });
    expect((await registry.execute("raw.t", {}, answering)).data).toEqual(DONE.content);
    expect(withdrawn?.aborted).toBe(true);
  });

  it("Mcp: comes from no server that did not offer tasks, and answers nothing but calls of tools", async () => {
    const call = () => ({ ...task("2026"), resultType: "task" });
    const { registry } = await start("2026", { offers: false, call });
    const failure = await rejection(registry.execute("raw.t", {}));
    expect(failure).toMatchObject({ code: "EXECUTION_ERROR", details: { resultType: "task" } });
    const server = taskServer("2026", {});
    const prompts = createRawMcpServer({
      "server/discover": () => ({
        supportedVersions: ["2026-07-28"],
        capabilities: { tools: {}, prompts: {}, extensions: { [TASKS]: {} } },
      }),
      "tools/list": () => ({ tools: [], resultType: "complete" }),
      "prompts/get": call,
    });
    expect(server.polls).toBe(0);
    const { source } = await imported(prompts, { protocol: "2026" });
    expect(await rejection(source.getPrompt("p", {}))).toMatchObject({ details: { resultType: "task" } });
  });

  it("Mcp: ended without a result is an error", async () => {
    for (const told of [
      { status: "completed" },
      { status: "completed", result: "x" },
      { status: "completed", result: { resultType: "task", taskId: "t2", status: "working" } },
      { status: "completed", result: { resultType: "input_required", inputRequests: { a: question } } },
      { status: "failed" },
    ]) {
      const { registry } = await start("2026", { told: [told] });
      expect(await rejection(registry.execute("raw.t", {}))).toMatchObject({
        details: { task: "no result" },
      });
    }
  });
});

describe.each(FORMS)("a task that relays one of a %s server", (form) => {
  const relaying = (told: Partial<CallerTask> = {}) => {
    const held: JsonValue[] = [];
    const hold = async (handle: JsonValue) => void held.push(handle);
    return { held, caller: { task: { id: "ours", hold, say: () => {}, ...told } } };
  };

  it("Mcp: notes it before it waits, and goes on with it in another process, which begins nothing", async () => {
    const first = await start(form, { told: [{}], result: never, taskSupport: "optional" });
    const { held, caller } = relaying();
    const leaving = new AbortController();
    const { signal } = leaving;
    const left = rejection(first.registry.execute("raw.t", {}, { caller, signal }));
    await until(() => first.server.polls > 0);
    expect(held).toEqual([{ taskId: "t1", server: expect.any(String) }]);
    leaving.abort(new CallError("UNAVAILABLE", "It stops.", { details: { reason: "task_lost_by_restart" } }));
    expect(await left).toMatchObject({ code: "ABORTED" });
    const second = await start(form, {});
    const again = relaying({ handle: held[0] });
    const resumed = await second.registry.execute("raw.t", {}, { caller: again.caller });
    expect(resumed.data).toEqual(DONE.content);
    expect(second.server.sent("tools/call")).toEqual([]);
    expect([...first.server.sent("tasks/cancel"), ...again.held]).toEqual([]);
  });

  it("Mcp: ends it when it is cancelled or expires, also where nobody waited for it", async () => {
    for (const reason of ["task_cancelled", "task_expired"]) {
      const { registry, server } = await start(form, { told: [{}], result: never });
      const leaving = new AbortController();
      const { caller } = relaying();
      const ended = rejection(registry.execute("raw.t", {}, { caller, signal: leaving.signal }));
      await until(() => server.polls > 0);
      leaving.abort(new CallError("ABORTED", "It ended.", { details: { reason } }));
      await ended;
      await until(() => server.sent("tasks/cancel").length === 1);
    }
    const { registry, server } = await start(form, {});
    const handle = { taskId: "t1", server: 'MCP server "raw"' };
    const { caller } = relaying({ handle, isCancelled: true });
    expect(await rejection(registry.execute("raw.t", {}, { caller }))).toMatchObject({ code: "ABORTED" });
    await until(() => server.sent("tasks/cancel").length === 1);
    expect([server.polls, server.sent("tools/call")]).toEqual([0, []]);
  });

  it("Mcp: fails, and ends it, where it cannot be noted; another server is not asked about it", async () => {
    const { registry, server } = await start(form, { told: [{}], result: never });
    const full = new CallError("RESOURCE_EXHAUSTED", "Full.");
    const { caller } = relaying({ hold: () => Promise.reject(full) });
    expect(await rejection(registry.execute("raw.t", {}, { caller }))).toMatchObject({ code: full.code });
    await until(() => server.sent("tasks/cancel").length === 1);
    for (const handle of [{ taskId: "t1", server: "another" }, "t1", { server: 'MCP server "raw"' }]) {
      const other = await start(form, {});
      const resumed = other.registry.execute("raw.t", {}, { caller: relaying({ handle }).caller });
      expect(await rejection(resumed)).toMatchObject({ code: "UNAVAILABLE" });
      expect(other.server.sent("tasks/get")).toEqual([]);
    }
  });
});

it("Mcp: a task is polled as its server says, within bounds", () => {
  const { least, usual, most } = POLL_DELAYS;
  for (const [told, delay] of [
    [{}, usual],
    [{ pollInterval: 0 }, least],
    [{ pollInterval: least - 1 }, least],
    [{ pollIntervalMs: 5_000 }, 5_000],
    [{ pollIntervalMs: most + 1 }, most],
    [{ pollInterval: 1e300 }, most],
    [{ pollInterval: -1 }, usual],
    [{ pollInterval: "5" }, usual],
    [{ pollInterval: null, ttl: null }, usual],
    [{ ttl: 1 }, least],
    [{ ttlMs: 1_000, pollIntervalMs: 10_000 }, 500],
    [{ ttl: -5 }, usual],
  ] as const) {
    expect(pollDelay(told), JSON.stringify(told)).toBe(delay);
  }
});
