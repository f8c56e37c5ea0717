import { afterEach, describe, expect, it } from "vitest";
import { localEnvelope } from "../envelope/envelope.ts";
import { CallError } from "../errors/errors.ts";
import { taskOf } from "../execution/call-context.ts";
import type { JsonValue } from "../json/json-value.ts";
import { defineOperation } from "../operation/operation.ts";
import { OperationRegistry } from "../registry/registry.ts";
import type { TaskOutcome, TaskRun, TaskWork } from "./running-task.ts";
import { endedCallOf, type TaskRecord } from "./task.ts";
import { MemoryTaskStore, type TaskStore } from "./task-store.ts";
import { Tasks, type TasksOptions } from "./tasks.ts";

const ANN = { owner: "ann", identity: undefined };
const BEN = { owner: "ben", identity: undefined };

const open: Tasks[] = [];
afterEach(async () => {
  for (const tasks of open.splice(0)) await tasks.close({ timeoutMs: 1_000 });
});

function create(options: TasksOptions = {}): Tasks {
  const tasks = new Tasks(options);
  open.push(tasks);
  return tasks;
}

/** One of several processes on the same store. */
function replicaOf(store: MemoryTaskStore, replica: string, gone: ReadonlySet<string>): TaskStore {
  return {
    isLasting: true,
    replica,
    now: () => store.now(),
    hold: () => store.hold(),
    isGone: async (other) => gone.has(other),
    create: (task, bounds) => store.create(task, bounds),
    get: (name) => store.get(name),
    update: (task, revision) => store.update(task, revision),
    keep: (task, key, text, bounds) => store.keep(task, key, text, bounds),
    kept: (name, key) => store.kept(name, key),
    list: (owner) => store.list(owner),
    watch: (name, listener) => store.watch(name, listener),
  };
}

const start = (owner = "ann") => ({ owner, identity: undefined, operationId: "job.run", requestId: "r1" });
const ok = (data: unknown): TaskOutcome => ({
  call: { outcome: { envelope: localEnvelope(data, "job.run") }, requestId: "r1", durationMs: 5 },
});

/** Work that ends when the test says so, or when it is aborted. */
function controlled(): {
  readonly work: TaskWork;
  readonly end: (outcome: TaskOutcome) => void;
  readonly run: Promise<TaskRun>;
} {
  let end: (outcome: TaskOutcome) => void = () => {};
  let begun: (run: TaskRun) => void = () => {};
  const run = new Promise<TaskRun>((resolve) => {
    begun = resolve;
  });
  const work: TaskWork = (given) => {
    begun(given);
    return new Promise((resolve) => {
      end = resolve;
      given.signal.addEventListener("abort", () => {
        const error = new CallError("ABORTED", undefined, { cause: given.signal.reason });
        resolve({ call: { outcome: { error }, requestId: "r1", durationMs: 1 } });
      });
    });
  };
  return { work, end: (outcome) => end(outcome), run };
}

async function until<T>(read: () => Promise<T>, isRight: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await read();
    if (isRight(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "ok",
    (thrown) => (thrown as CallError).code,
  );

describe("tasks", () => {
  it("gives everybody who waits what the work came to", async () => {
    const tasks = create();
    const { work, end, run } = controlled();
    const task = await tasks.start(start(), work);
    expect(task).toMatchObject({ status: "working", operationId: "job.run", owner: "ann" });
    const waiting = [tasks.result(ANN, task.id), tasks.result(ANN, task.id)];
    await run;
    end(ok({ sum: 3 }));
    const [first, second] = await Promise.all(waiting);
    expect(first).toEqual(second);
    expect(first?.task).toMatchObject({ status: "completed", ending: "ok" });
    const { outcome } = endedCallOf((first as NonNullable<typeof first>).result);
    expect("envelope" in outcome && outcome.envelope.data).toEqual({ sum: 3 });
    expect(tasks.running).toBe(0);
  });

  it("answers for unknown, malformed and foreign ids, and for rights that are gone, in one way", async () => {
    const tasks = create();
    const { work } = controlled();
    const identity = { subject: "ann", scopes: ["jobs"] };
    const { id } = await tasks.start({ ...start(), identity }, work);
    const ids = ["", "x", 7, null, undefined, "0".repeat(32), `${id} `, id.toUpperCase(), "../../etc/passwd"];
    const errors = new Set<string>();
    const ask = async (asker: typeof ANN, asked: unknown): Promise<void> => {
      for (const asking of [
        tasks.get(asker, asked),
        tasks.result(asker, asked),
        tasks.cancel(asker, asked),
        tasks.answer(asker, asked, {}),
        tasks.watch(asker, asked, () => {}),
      ])
        await asking.then(
          () => errors.add("found"),
          (thrown) => errors.add(JSON.stringify(thrown)),
        );
    };
    for (const asked of ids) await ask({ ...ANN, identity } as never, asked);
    await ask(BEN, id);
    await ask({ owner: "ann", identity: { subject: "ann", scopes: [] } } as never, id);
    expect([...errors]).toEqual([
      JSON.stringify(new CallError("NOT_FOUND", "There is no such task, or not any more.")),
    ]);
    expect((await tasks.get({ ...ANN, identity }, id)).status).toBe("working");
  });

  it("is settled once: what comes later changes nothing", async () => {
    const tasks = create();
    const { work, end, run } = controlled();
    const { id } = await tasks.start(start(), work);
    const { signal } = await run;
    expect(await tasks.cancel(ANN, id)).toMatchObject({ isChanged: true, task: { status: "cancelled" } });
    await until(
      async () => signal.aborted,
      (aborted) => aborted,
    );
    end(ok("late"));
    expect(await tasks.cancel(ANN, id)).toMatchObject({ isChanged: false, task: { status: "cancelled" } });
    const { task, result } = await tasks.result(ANN, id);
    expect(task.status).toBe("cancelled");
    expect(endedCallOf(result).outcome).toMatchObject({
      error: { code: "ABORTED", details: { reason: "task_cancelled" } },
    });
  });

  it("asks its caller, one question after the other and several at a time, each under a name of its own", async () => {
    const tasks = create();
    const question = { kind: "roots" } as const;
    const answers: JsonValue[] = [];
    const { id } = await tasks.start(start(), async ({ ask, signal }) => {
      answers.push(...(await Promise.all([ask(question, signal, "name"), ask(question, signal, "name")])));
      answers.push(await ask(question, signal, "name"));
      return ok("done");
    });
    const asked = (count: number) => (task: TaskRecord) => Object.keys(task.questions ?? {}).length === count;
    const both = await until(() => tasks.get(ANN, id), asked(2));
    const [first = "", second = ""] = Object.keys(both.questions ?? {});
    expect(both.status).toBe("input_required");
    const left = await tasks.answer(ANN, id, { [first]: "one", other: "nobody asked" });
    expect([left.status, Object.keys(left.questions ?? {})]).toEqual(["input_required", [second]]);
    expect((await tasks.answer(ANN, id, { [first]: "again" })).questions).toEqual(left.questions);
    expect((await tasks.answer(ANN, id, { [second]: "two" }, () => false)).status).toBe("input_required");
    await tasks.answer(ANN, id, { [second]: "two" });
    const third = await until(
      () => tasks.get(ANN, id),
      (task) => asked(1)(task) && task.answers === undefined,
    );
    const [last = ""] = Object.keys(third.questions ?? {});
    expect(new Set([first, second, last]).size).toBe(3);
    await tasks.answer(ANN, id, { [last]: "three" });
    expect((await tasks.result(ANN, id)).task.status).toBe("completed");
    expect(answers).toEqual(["one", "two", "three"]);
  });

  it("ends at its time, whether its work does or not, and is forgotten then", async () => {
    let now = 1_000_000;
    const tasks = create({ store: new MemoryTaskStore(() => now) });
    const never = controlled();
    const { id, expiresAt, createdAt } = await tasks.start({ ...start(), ttlMs: 1 }, never.work);
    expect(expiresAt - createdAt).toBe(1_000);
    const { signal } = await never.run;
    expect((await tasks.get(ANN, id)).status).toBe("working");
    now += 1_000;
    expect(await codeOf(tasks.get(ANN, id))).toBe("NOT_FOUND");
    expect((await tasks.list(ANN)).tasks).toEqual([]);
    await until(
      async () => signal.aborted,
      (aborted) => aborted,
    );
    expect(signal.reason).toMatchObject({ code: "TIMEOUT" });
    await until(
      async () => tasks.running,
      (running) => running === 0,
    );
  });

  it("refuses one more than may be kept, or may run, in all and of one owner", async () => {
    const never = (): Promise<TaskOutcome> => new Promise(() => {});
    const kept = create({ limits: { tasks: 3, ownTasks: 2 }, isShared: false });
    for (const owner of ["ann", "ann", "ben"]) await kept.start(start(owner), async () => ok(1));
    expect(await codeOf(kept.start(start("ann"), never))).toBe("RESOURCE_EXHAUSTED");
    expect(await codeOf(kept.start(start("cid"), never))).toBe("RESOURCE_EXHAUSTED");
    const running = create({ limits: { running: 2 }, isShared: false });
    const first = controlled();
    const { id } = await running.start(start(), first.work);
    await running.start(start(), controlled().work);
    expect(await codeOf(running.start(start("ben"), never))).toBe("RESOURCE_EXHAUSTED");
    await first.run;
    first.end(ok(1));
    await running.result(ANN, id);
    await until(
      async () => running.running,
      (count) => count === 1,
    );
    expect(await codeOf(running.start(start("ben"), async () => ok(1)))).toBe("ok");
  });

  it("takes no time after which calls become tasks that no timer waits for", () => {
    for (const afterMs of [-1, 0.5, Number.NaN, 2 ** 31, 1e308, "1" as never])
      expect(() => new Tasks({ afterMs })).toThrow("afterMs must be a whole number from 0 to 2147483647");
    for (const afterMs of [undefined, 0, 2 ** 31 - 1]) expect(create({ afterMs }).afterMs).toBe(afterMs);
  });

  it("keeps ten thousand tasks of one caller to a thousand, and leaves the others theirs", async () => {
    const tasks = create();
    const codes = new Map<unknown, number>();
    for (let i = 0; i < 10_000; i++) {
      const code = await codeOf(tasks.start(start(), async () => ok(i)));
      codes.set(code, (codes.get(code) ?? 0) + 1);
    }
    expect([...codes]).toEqual([
      ["ok", 1_000],
      ["RESOURCE_EXHAUSTED", 9_000],
    ]);
    expect(await codeOf(tasks.start(start("ben"), async () => ok(1)))).toBe("ok");
  });

  it("fails where its result is longer than may be kept, or there is no room, and says so each time", async () => {
    const tasks = create({ limits: { resultBytes: 2_000, ownBytes: 2_500 } });
    const outcomes: unknown[] = [];
    for (const length of [3_000, 1_000, 1_500]) {
      const { id } = await tasks.start(start(), async () => ok("x".repeat(length)));
      const { task, result } = await tasks.result(ANN, id);
      const again = await tasks.result(ANN, id);
      expect(again).toEqual({ task, result });
      const { outcome } = endedCallOf(result);
      outcomes.push("error" in outcome ? outcome.error.details : task.status);
    }
    expect(outcomes).toEqual([
      { reason: "task_result_too_long" },
      "completed",
      { reason: "task_result_no_room" },
    ]);
  });

  it("writes a form of a result once, and gives that from then on", async () => {
    const tasks = create();
    const { id } = await tasks.start(start(), async () => ({ ...ok(1), written: { "mcp plain": "own" } }));
    const settled = await tasks.result(ANN, id);
    let count = 0;
    const write = async (): Promise<string> => `written ${++count}`;
    expect(await tasks.written(settled, "mcp plain", write)).toBe("own");
    expect(await tasks.written(settled, "http", write)).toBe("written 1");
    expect(await tasks.written(settled, "http", write)).toBe("written 1");
  });

  it("tells what its handler says, cut to its bound", async () => {
    const tasks = create();
    const { work, run } = controlled();
    const { id } = await tasks.start(start(), work);
    const { onProgress } = await run;
    onProgress({ done: 2, of: 5, message: "m".repeat(2_000) });
    const told = await until(
      () => tasks.get(ANN, id),
      ({ progress }) => progress !== undefined,
    );
    expect(told.progress).toEqual({ progress: 2, total: 5 });
    expect(told.message).toHaveLength(1_000);
  });

  it("lists the tasks of one owner, the latest first, page by page", async () => {
    let now = 0;
    const tasks = create({ store: new MemoryTaskStore(() => ++now) });
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.unshift((await tasks.start(start(), async () => ok(i))).id);
    await tasks.start(start("ben"), async () => ok(9));
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await tasks.list(ANN, { cursor, limit: 2 });
      found.push(...page.tasks.map(({ id }) => id));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(found).toEqual(ids);
    expect(await codeOf(tasks.list(ANN, { cursor: "7" }))).toBe("VALIDATION_ERROR");
  });

  it("tells of changes until it is settled", async () => {
    const tasks = create();
    const { work, end, run } = controlled();
    const { id } = await tasks.start(start(), work);
    const seen: string[] = [];
    await tasks.watch(ANN, id, ({ status }) => seen.push(status));
    const { ask, signal } = await run;
    void ask({ kind: "roots" }, signal, "q");
    await until(
      () => tasks.get(ANN, id),
      ({ status }) => status === "input_required",
    );
    await tasks.answer(ANN, id, { q: [] });
    await until(
      () => tasks.get(ANN, id),
      ({ answers }) => answers === undefined,
    );
    end(ok(1));
    await until(
      async () => seen.at(-1),
      (last) => last === "completed",
    );
    expect(seen[0]).toBe("input_required");
  });
});

describe("tasks of several processes", () => {
  it("are seen, answered and cancelled at any of them", async () => {
    const store = new MemoryTaskStore();
    const [one, other] = ["one", "other"].map((name) =>
      create({ store: replicaOf(store, name, new Set()) }),
    ) as [Tasks, Tasks];
    const { id } = await one.start(start(), async ({ ask, signal }) =>
      ok(await ask({ kind: "roots" }, signal, "q")),
    );
    await until(
      () => other.get(ANN, id),
      ({ status }) => status === "input_required",
    );
    await other.answer(ANN, id, { q: "yes" });
    const settled = await other.result(ANN, id);
    expect(settled).toEqual(await one.result(ANN, id));
    const { work, run } = controlled();
    const second = await one.start(start(), work);
    const { signal } = await run;
    await other.cancel(ANN, second.id);
    await until(
      async () => signal.aborted,
      (aborted) => aborted,
    );
    expect((await one.get(ANN, second.id)).status).toBe("cancelled");
  });

  it("are lost with their process where nobody can go on, and say so for good", async () => {
    const store = new MemoryTaskStore();
    const gone = new Set<string>();
    const one = create({ store: replicaOf(store, "one", gone) });
    const other = create({ store: replicaOf(store, "other", gone) });
    const third = create({ store: replicaOf(store, "third", gone) });
    const { work, end, run } = controlled();
    const { id } = await one.start(start(), work);
    await run;
    gone.add("one");
    const answers = await Promise.all([other.result(ANN, id), third.result(ANN, id)]);
    end(ok("too late"));
    answers.push(await other.result(ANN, id));
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    const { outcome } = endedCallOf((answers[0] as (typeof answers)[number]).result);
    expect(outcome).toMatchObject({
      error: { code: "UNAVAILABLE", details: { reason: "task_lost_by_restart" } },
    });
  });

  it("wait for room in a store that is full: no answer is lost, and nobody is held up", async () => {
    const store = new MemoryTaskStore();
    let isFull = false;
    const open = (replica: string, gone: ReadonlySet<string> = new Set()): TaskStore => ({
      ...replicaOf(store, replica, gone),
      update: async (task, revision) => (isFull ? "full" : store.update(task, revision)),
    });
    const here = create({ store: open("here") });
    const [ended, cancelled, left] = [controlled(), controlled(), controlled()];
    const ids: string[] = [];
    for (const { work } of [ended, cancelled, left]) ids.push((await here.start(start(), work)).id);
    await ended.run;
    isFull = true;
    ended.end(ok("kept"));
    const refused = here.cancel(ANN, ids[1]);
    expect(await refused.catch((thrown) => (thrown as CallError).code)).toBe("RESOURCE_EXHAUSTED");
    const there = create({ store: open("there", new Set(["here"])) });
    for (const id of ids) expect((await there.get(ANN, id)).status).toBe("working");
    expect((await there.list(ANN)).tasks).toHaveLength(3);
    isFull = false;
    const { task, result } = await here.result(ANN, ids[0]);
    expect([task.status, endedCallOf(result).outcome]).toMatchObject([
      "completed",
      { envelope: { data: "kept" } },
    ]);
    expect((await here.cancel(ANN, ids[1])).task.status).toBe("cancelled");
    expect(await there.get(ANN, ids[2])).toMatchObject({ status: "failed", fault: "lost" });
  });

  it("that were stored although nobody was told so do not seem to run", async () => {
    const store = new MemoryTaskStore();
    const tasks = create({
      store: {
        ...replicaOf(store, "here", new Set()),
        create: async (task, bounds) => {
          await store.create(task, bounds);
          throw new CallError("UNAVAILABLE");
        },
      },
    });
    expect(await codeOf(tasks.start(start(), async () => ok(1)))).toBe("UNAVAILABLE");
    expect((await tasks.list(ANN)).tasks).toMatchObject([{ status: "failed", fault: "lost" }]);
  });

  it.each<readonly [string, boolean, unknown]>([
    ["begin at another process where nothing of them had begun", true, { ran: { n: 1 } }],
    ["are lost with their process once they have begun", false, "UNAVAILABLE"],
  ])("%s", async (_, isWaiting, expected) => {
    const store = new MemoryTaskStore();
    const gone = new Set<string>();
    const begun: unknown[] = [];
    const run = defineOperation({
      namespace: "job",
      name: "run",
      inputSchema: { type: "object" },
      handler: (input, context) => {
        begun.push(taskOf(context)?.handle);
        return { ran: input };
      },
    });
    const make = (name: string): Tasks =>
      create({ store: replicaOf(store, name, gone), executor: new OperationRegistry([run]) });
    const [one, other] = [make("one"), make("other")];
    const waiting: TaskWork = async ({ link }) => {
      await link.wait?.(true);
      if (!isWaiting) await link.wait?.(false);
      begun.push("waits");
      return await new Promise(() => {});
    };
    const { id } = await one.start({ ...start(), input: { n: 1 } }, waiting);
    await until(
      async () => begun.length,
      (length) => length === 1,
    );
    gone.add("one");
    const { outcome } = endedCallOf((await other.result(ANN, id)).result);
    expect("envelope" in outcome ? outcome.envelope.data : outcome.error.code).toEqual(expected);
    expect(begun).toEqual(isWaiting ? ["waits", undefined] : ["waits"]);
  });

  it("go on at another process from what their handler noted, and begin nothing twice", async () => {
    const store = new MemoryTaskStore();
    const gone = new Set<string>();
    const begun: unknown[] = [];
    const upstream = controlled();
    const registry = new OperationRegistry([
      defineOperation({
        namespace: "job",
        name: "run",
        inputSchema: { type: "object", required: ["n"] },
        handler: async (input, context) => {
          const task = taskOf(context);
          if (task?.isCancelled) return void begun.push(["ended", task.handle]);
          if (task?.handle === undefined) {
            begun.push(["begun", input]);
            await task?.hold({ upstream: "u1" });
            return await new Promise(() => {});
          }
          begun.push(["resumed", task.handle, input]);
          return "relayed";
        },
      }),
    ]);
    const make = (name: string): Tasks => create({ store: replicaOf(store, name, gone), executor: registry });
    const [one, other] = [make("one"), make("other")];
    const relay: TaskWork = async ({ signal, link }) => {
      const envelope = await registry.execute("job.run", { n: 1 }, { signal, caller: { task: link } });
      return { call: { outcome: { envelope }, requestId: "r1", durationMs: 1 } };
    };
    const asked = { ...start(), input: { n: 1 } };
    const first = await one.start(asked, relay);
    const second = await one.start(asked, relay);
    const held = async (): Promise<number> =>
      (await store.list("ann")).filter(({ resumption }) => resumption !== undefined).length;
    await until(held, (count) => count === 2);
    gone.add("one");
    const { result } = await other.result(ANN, first.id);
    const { outcome } = endedCallOf(result);
    expect("envelope" in outcome && outcome.envelope.data).toBe("relayed");
    expect(await other.cancel(ANN, second.id)).toMatchObject({ isChanged: true });
    await until(
      async () => begun.length,
      (length) => length === 4,
    );
    expect(begun.slice(2)).toEqual([
      ["resumed", { upstream: "u1" }, { n: 1 }],
      ["ended", { upstream: "u1" }],
    ]);
    void upstream;
  });

  it("are told of once their handler has noted how to go on, so that a process that dies then loses none", async () => {
    const store = new MemoryTaskStore();
    const gone = new Set<string>();
    let note = (): void => {};
    const isNoted = new Promise<void>((resolve) => {
      note = resolve;
    });
    const executor = new OperationRegistry([
      defineOperation({
        namespace: "job",
        name: "run",
        handler: (_, context) => taskOf(context)?.handle ?? "begun again",
      }),
    ]);
    const make = (name: string): Tasks =>
      create({ store: replicaOf(store, name, gone), executor, isResumable: () => true });
    const [one, other] = [make("one"), make("other")];
    const began: string[] = [];
    const starting = one.start(start(), async ({ link }) => {
      await isNoted;
      began.push("notes");
      await link.hold({ upstream: "u1" });
      return await new Promise(() => {});
    });
    void starting.then(() => began.push("told"));
    note();
    const { id } = await starting;
    gone.add("one");
    const { outcome } = endedCallOf((await other.result(ANN, id)).result);
    expect("envelope" in outcome && outcome.envelope.data).toEqual({ upstream: "u1" });
    expect(began).toEqual(["notes", "told"]);
  });

  it.each<readonly [string, TaskWork, boolean]>([
    ["ends", async () => ok(1), true],
    ["notes nothing", controlled().work, true],
    ["runs in a process that keeps nothing", controlled().work, false],
  ])("are told of though their handler %s", async (_, work, isLasting) => {
    const store = replicaOf(new MemoryTaskStore(), "one", new Set());
    const tasks = create({ store: { ...store, isLasting }, isResumable: () => true });
    expect((await tasks.start(start(), work)).status).toBe("working");
  });

  it("keep what was noted before they were tasks, from their first moment", async () => {
    const store = new MemoryTaskStore();
    const tasks = create({ store: replicaOf(store, "one", new Set()) });
    const run = { ...start(), input: { n: 1 }, handle: { upstream: "u1" } };
    const { id } = await tasks.start(run, controlled().work);
    const kept = await store.get({ owner: "ann", id });
    expect(kept?.task.resumption).toEqual({ handle: { upstream: "u1" }, input: { n: 1 } });
    const tooLong = { ...run, handle: "x".repeat(1_000_000) };
    expect(await tasks.start(tooLong, async () => ok(1))).not.toHaveProperty("resumption");
  });
});
