import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { atEnd } from "../../../test/gateway-sources.ts";
import { loadedConfig } from "../../../test/served-gateway.ts";
import { localEnvelope } from "../../core/envelope/envelope.ts";
import type { TaskOutcome } from "../../core/tasks/running-task.ts";
import { endedCallOf } from "../../core/tasks/task.ts";
import { Tasks, type TasksOptions } from "../../core/tasks/tasks.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { GatewayState } from "./gateway-state.ts";
import { createLocalStateStore } from "./local-state-store.ts";
import { ReplicaLease } from "./replica-lease.ts";
import type { StateStore } from "./state-store.ts";
import { StateTasks } from "./state-tasks.ts";

const ANN = { owner: "ann", identity: undefined };
const ASKED = { ...ANN, operationId: "job.run", requestId: "r1" };
const ok = (data: unknown): TaskOutcome => ({
  call: { outcome: { envelope: localEnvelope(data, "job.run") }, requestId: "r1", durationMs: 5 },
});

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "waybill-tasks-"));
  atEnd(() => rm(made, { recursive: true, force: true }));
  return made;
}

interface Opened {
  readonly tasks: Tasks;
  readonly state: GatewayState;
  close(): Promise<void>;
}

function openTasks(config: GatewayConfig, options: TasksOptions = {}): Opened {
  const state = new GatewayState(loadedConfig(config), { onWarning: () => {} });
  const tasks = new Tasks({ store: state.tasks(), ...options });
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> =>
    (closing ??= tasks.close({ timeoutMs: 1_000 }).then(() => state.close()));
  atEnd(close);
  return { tasks, state, close };
}

describe("tasks in files", () => {
  it("keep their results beyond the process, byte for byte, and tell of what was lost with it", async () => {
    const config = { state: { store: { files: await folder() } } };
    const first = openTasks(config);
    expect(first.tasks.isLasting).toBe(true);
    const done = await first.tasks.start(ASKED, async () => ok({ sum: 3 }));
    const before = await first.tasks.result(ANN, done.id);
    const form = await first.tasks.written(before, "http", async () => "written once");
    const never = await first.tasks.start(
      ASKED,
      ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
        }),
    );
    await first.close();
    const second = openTasks(config);
    const after = await second.tasks.result(ANN, done.id);
    expect(after).toEqual(before);
    expect(await second.tasks.written(after, "http", async () => "written again")).toBe(form);
    const { outcome } = endedCallOf((await second.tasks.result(ANN, never.id)).result);
    expect("error" in outcome && outcome.error.details).toEqual({ reason: "task_lost_by_restart" });
    expect((await second.tasks.list(ANN)).tasks.map(({ id }) => id)).toEqual([never.id, done.id]);
    expect((await second.tasks.list({ owner: "ben", identity: undefined })).tasks).toEqual([]);
  });

  it("count what one owner has across restarts", async () => {
    const config = { state: { store: { files: await folder() } } };
    const limits = { ownTasks: 2 };
    const first = openTasks(config, { limits });
    for (const n of [1, 2]) await first.tasks.start(ASKED, async () => ok(n));
    await expect(first.tasks.start(ASKED, async () => ok(3))).rejects.toMatchObject({
      details: { reason: "too_many_tasks" },
    });
    await first.close();
    const second = openTasks(config, { limits });
    await expect(second.tasks.start(ASKED, async () => ok(3))).rejects.toMatchObject({
      code: "RESOURCE_EXHAUSTED",
    });
  });
});

it("tasks end and are cancelled, however little room their owner has left", async () => {
  const config = { state: { store: { files: await folder() } } };
  const { tasks } = openTasks(config, { limits: { ownBytes: 300 } });
  const ended = await tasks.start(ASKED, async () => ok("x".repeat(300)));
  const { outcome } = endedCallOf((await tasks.result(ANN, ended.id)).result);
  expect("error" in outcome && outcome.error.details).toEqual({ reason: "task_result_no_room" });
  const other = { ...ASKED, owner: "ben" };
  const never = await tasks.start(other, () => new Promise(() => {}));
  const { task } = await tasks.cancel({ owner: "ben", identity: undefined }, never.id);
  expect(task.status).toBe("cancelled");
});

describe("tasks at a broker that has just taken over", () => {
  it("are neither lost nor told to be none while it has not caught up", async () => {
    const base = createLocalStateStore();
    const broker = { isBehind: false, looks: 0 };
    const store: StateStore = {
      isExclusive: false,
      isUp: true,
      now: () => base.now(),
      get: async (name) => {
        if (!broker.isBehind || name.collection !== "tasks") return base.get(name);
        broker.looks += 1;
        return undefined;
      },
      create: (name, value, write) => base.create(name, value, write),
      update: (name, revision, value, write) => base.update(name, revision, value, write),
      delete: (name, revision) => base.delete(name, revision),
      mayHave: (name) => base.mayHave(name),
      list: (collection, owner, listing) => base.list(collection, owner, listing),
      watch: (name, listener) => base.watch(name, listener),
      close: async () => {},
    };
    const lease = new ReplicaLease(store, { replica: "one" });
    atEnd(() => lease.close());
    const access = { reach: async () => ({ store, lease }) };
    const tasks = new Tasks({ store: new StateTasks({ access, replica: "one" }) });
    let end = (): void => {};
    const { id } = await tasks.start(ASKED, async () => {
      await new Promise<void>((resolve) => {
        end = resolve;
      });
      return ok("done");
    });
    broker.isBehind = true;
    await expect(tasks.get(ANN, id)).rejects.toMatchObject({ code: "UNAVAILABLE" });
    const before = broker.looks;
    end();
    // It cannot be settled now, and is as soon as the broker has it.
    await expect.poll(() => broker.looks).toBeGreaterThan(before);
    broker.isBehind = false;
    expect((await tasks.result(ANN, id)).task.status).toBe("completed");
    await tasks.close({ timeoutMs: 0 });
  });
});

describe("tasks in memory", () => {
  it("say that they end with the process", () => {
    expect(openTasks({}).tasks.isLasting).toBe(false);
  });
});
