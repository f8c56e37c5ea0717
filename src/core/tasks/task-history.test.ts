import { describe, expect, it } from "vitest";
import { createRandom } from "../../../test/random.ts";
import { scaled } from "../../../test/runs.ts";
import { localEnvelope } from "../envelope/envelope.ts";
import { isCallError } from "../errors/errors.ts";
import type { TaskOutcome } from "./running-task.ts";
import type { TaskBounds, TaskRecord } from "./task.ts";
import { MemoryTaskStore, type TaskStore } from "./task-store.ts";
import { Tasks } from "./tasks.ts";

const REPLICAS = ["one", "two", "three"] as const;
const ANN = { owner: "ann", identity: undefined };
const BEN = { owner: "ben", identity: undefined };
const TTL_MS = 60_000;

/** What somebody was told of the task, in this order. */
interface Told {
  readonly to: "ann" | "ben";
  readonly status: TaskRecord["status"] | "none";
  /** What it came to, as text. */
  readonly answer?: string | undefined;
  readonly isExpired: boolean;
}

const isEnd = ({ status }: Told): boolean => ["completed", "failed", "cancelled"].includes(status);

/** Says what a history must not hold, one sentence each. */
function violations(history: readonly Told[]): string[] {
  const ends = history.filter(isEnd);
  const kinds = new Set(ends.map(({ status }) => status));
  const answers = new Set(ends.flatMap(({ answer }) => answer ?? []));
  const firstEnd = history.findIndex(isEnd);
  const after = firstEnd === -1 ? [] : history.slice(firstEnd);
  return [
    ...(kinds.size > 1 ? [`it was settled as ${[...kinds].join(" and ")}`] : []),
    ...(answers.size > 1 ? ["it was answered differently"] : []),
    ...(after.some((told) => !isEnd(told) && told.status !== "none") ? ["it ran again after its end"] : []),
    ...(after.some(({ status, isExpired, to }) => to === "ann" && status === "none" && !isExpired)
      ? ["it was forgotten before its time"]
      : []),
    ...(history.some(({ to, status }) => to === "ben" && status !== "none") ? ["a stranger saw it"] : []),
    ...(history.some(({ status, isExpired }) => isExpired && status !== "none")
      ? ["it was seen after its time"]
      : []),
  ];
}

/** What a store is told to get wrong. */
type Plant = "none" | "change without looking" | "keep the last text";

class PlantedStore extends MemoryTaskStore {
  readonly #plant: Plant;
  readonly #texts = new Map<string, string>();

  constructor(now: () => number, plant: Plant) {
    super(now);
    this.#plant = plant;
  }

  override async update(task: TaskRecord, revision: number): Promise<number | "changed" | "full"> {
    const found = this.#plant === "change without looking" ? await this.get(task) : undefined;
    return await super.update(task, found?.revision ?? revision);
  }

  override async keep(
    task: TaskRecord,
    key: string,
    text: string,
    bounds: TaskBounds,
  ): Promise<string | undefined> {
    if (this.#plant !== "keep the last text") return await super.keep(task, key, text, bounds);
    this.#texts.set(key, text);
    return text;
  }

  override async kept(task: TaskRecord, key: string): Promise<string | undefined> {
    return this.#texts.get(key) ?? (await super.kept(task, key));
  }
}

/** Lets what several replicas do at once happen in a random order; the one that runs the task may die between any two steps. */
async function play(seed: number, plant: Plant): Promise<readonly Told[]> {
  const random = createRandom(seed);
  const history: Told[] = [];
  const steps: (() => void)[] = [];
  const step = (): Promise<void> => new Promise((resolve) => void steps.push(resolve));
  const dead = new Set<string>();
  let now = 1_000_000;
  const store = new PlantedStore(() => now, plant);
  const forever = new Promise<never>(() => {});
  const replicaOf = (replica: string): Tasks => {
    const around = async <T>(run: () => Promise<T>): Promise<T> => {
      await step();
      if (dead.has(replica)) await forever;
      const made = await run();
      await step();
      if (dead.has(replica)) await forever;
      return made;
    };
    const handle: TaskStore = {
      isLasting: true,
      replica,
      now: () => now,
      hold: async () => {},
      isGone: async (other) => dead.has(other),
      create: (task, bounds) => around(() => store.create(task, bounds)),
      get: (name) => around(() => store.get(name)),
      update: (task, revision) => around(() => store.update(task, revision)),
      keep: (task, key, text, bounds) => around(() => store.keep(task, key, text, bounds)),
      kept: (name, key) => around(() => store.kept(name as TaskRecord, key)),
      list: (owner) => around(() => store.list(owner)),
      watch: (name, listener) => store.watch(name, listener),
    };
    return new Tasks({ store: handle, limits: { keepMs: TTL_MS } });
  };
  const replicas = Object.fromEntries(REPLICAS.map((name) => [name, replicaOf(name)]));
  const alive = (): Tasks => {
    const names = REPLICAS.filter((name) => !dead.has(name));
    return replicas[names[random.below(names.length)] as string] as Tasks;
  };

  let id = "";
  let end: (outcome: TaskOutcome) => void = () => {};
  const tell = (told: Omit<Told, "isExpired">, askedAt: number): void => {
    // What was asked before it expired may be told after.
    const isExpired = askedAt >= 1_000_000 + TTL_MS;
    history.push({ ...told, isExpired });
  };
  const ask = async (to: "ann" | "ben"): Promise<void> => {
    const asker = to === "ann" ? ANN : BEN;
    const askedAt = now;
    const tasks = alive();
    try {
      const task = await tasks.get(asker, id);
      if (!["completed", "failed", "cancelled"].includes(task.status)) {
        tell({ to, status: task.status }, askedAt);
        return;
      }
      const settled = await tasks.result(asker, id);
      const written = await tasks.written(
        settled,
        "form",
        async () => `written by ${random.below(1_000_000)}`,
      );
      const answer = JSON.stringify([settled.task.status, settled.task.updatedAt, settled.result, written]);
      tell({ to, status: settled.task.status, answer }, askedAt);
    } catch (thrown) {
      if (!isCallError(thrown) || thrown.code !== "NOT_FOUND") throw thrown;
      // It may have expired while it was asked for.
      if (now === askedAt || to === "ben") tell({ to, status: "none" }, askedAt);
    }
  };
  const expire = (): void => {
    now += TTL_MS;
  };
  const finish = (): void =>
    end({
      call: {
        outcome: { envelope: localEnvelope({ by: "work" }, "job.run") },
        requestId: "r",
        durationMs: 1,
      },
    });
  const acts: (() => unknown)[] = [
    ...Array.from({ length: 6 }, () => () => ask("ann")),
    () => ask("ben"),
    () =>
      alive()
        .cancel(ANN, id)
        .catch(() => {}),
    () =>
      alive()
        .cancel(BEN, id)
        .catch(() => {}),
    finish,
    ...(random.below(2) === 0 ? [() => void dead.add("one")] : []),
    ...(random.below(4) === 0 ? [expire] : []),
  ];
  const running: Promise<unknown>[] = [];
  const begun = (replicas["one"] as Tasks).start(
    { ...ANN, operationId: "job.run", requestId: "r" },
    () =>
      new Promise((resolve) => {
        end = resolve;
      }),
  );
  void begun.then((task) => {
    id = task.id;
  });
  const turn = async (): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve));
    if (steps.length > 0) steps.splice(random.below(steps.length), 1)[0]?.();
  };
  while (id === "") await turn();
  while (acts.length > 0) {
    if (random.below(3) === 0)
      running.push(Promise.resolve(acts.splice(random.below(acts.length), 1)[0]?.()));
    await turn();
  }
  let isDone = false;
  void Promise.allSettled(running).then(() => {
    isDone = true;
  });
  // What a dead replica was asked is never answered.
  for (let idle = 0; !isDone && idle < 20; idle = steps.length === 0 ? idle + 1 : 0) await turn();
  // Whoever asks at the end is told the same.
  for (let i = 0; i < 2; i++) {
    const last = ask("ann");
    let isTold = false;
    void last.finally(() => {
      isTold = true;
    });
    while (!isTold) await turn();
    await last;
  }
  return history;
}

describe("the law of tasks", () => {
  it("holds in random interleavings of ends, cancellations, deaths, expiries and askers at three replicas", async () => {
    for (let seed = 1; seed <= scaled(400); seed++) {
      const found = violations(await play(seed, "none"));
      expect(found, `seed ${seed}`).toEqual([]);
    }
  }, 120_000);

  it.each(["change without looking", "keep the last text"] as const)(
    "is found broken where a store does this: %s",
    async (plant) => {
      const found = new Set<string>();
      for (let seed = 1; seed <= 400 && found.size === 0; seed++)
        for (const violation of violations(await play(seed, plant))) found.add(violation);
      expect(found.size).toBeGreaterThan(0);
    },
    120_000,
  );
});
