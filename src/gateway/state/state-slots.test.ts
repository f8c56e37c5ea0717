import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createRandom } from "../../../test/random.ts";
import { runs } from "../../../test/runs.ts";
import { CallError } from "../../core/errors/errors.ts";
import { Cancellation, monotonicNow } from "../../core/execution/cancellation.ts";
import { FairQueue, type Lane } from "../policy/fair-queue.ts";
import type { LeaseSlots } from "../policy/gates.ts";
import { createLocalStateStore } from "./local-state-store.ts";
import { ReplicaLease } from "./replica-lease.ts";
import { StateSlots } from "./state-slots.ts";
import { StateError, type StateName, type StateStore } from "./state-store.ts";

const PLACES = 3;
const RATE = { calls: 4, perMs: 100 };
const REPLICAS = ["one", "two", "three"];
const CALLS = 40;
/** Turns of the event loop in which everything has to be done. */
const PATIENCE = 30_000;

/** What happened at a limit, in this order. */
type Event =
  | { readonly what: "began"; readonly call: number }
  | { readonly what: "ended"; readonly call: number }
  | { readonly what: "stuck"; readonly call: number }
  | { readonly what: "counted"; readonly at: number }
  | { readonly what: "crashed"; readonly calls: readonly number[] }
  | { readonly what: "lost"; readonly slots: number };

/** Says what a history must not hold, one sentence each. */
function violations(history: readonly Event[]): string[] {
  const found: string[] = [];
  const running = new Set<number>();
  const starts: number[] = [];
  for (const event of history) {
    if (event.what === "stuck") found.push(`call ${event.call} never had its turn`);
    else if (event.what === "lost") found.push(`${event.slots} slots were lost`);
    else if (event.what === "crashed") for (const call of event.calls) running.delete(call);
    else if (event.what === "ended") running.delete(event.call);
    else if (event.what === "began") {
      running.add(event.call);
      if (running.size > PLACES) found.push(`${running.size} calls ran at a time`);
    } else {
      starts.push(event.at);
      const first = starts.at(-1 - RATE.calls);
      if (first !== undefined && event.at - first < RATE.perMs)
        found.push(`${RATE.calls + 1} calls began within ${event.at - first} ms`);
    }
  }
  return found;
}

/** What is told to go wrong. */
type Plant =
  | "none"
  | "change records without looking at their revision"
  | "never find a replica gone"
  | "give slots back that still count";

/** Lets what several do at once happen in a random order, on a clock that the test moves, and crash and fail between any two steps. */
async function play(seed: number, plant: Plant): Promise<Event[]> {
  const random = createRandom(seed);
  const history: Event[] = [];
  const steps: (() => void)[] = [];
  const step = (): Promise<void> => new Promise((resolve) => void steps.push(resolve));
  const base = createLocalStateStore();
  const dead = new Set<string>();

  const handleOf = (replica: string): StateStore => {
    const around = async <T>(run: () => Promise<T>): Promise<T> => {
      await step();
      const fate = random.below(100) / 100;
      if (dead.has(replica)) await new Promise(() => {});
      if (fate < 0.02) throw new StateError("unreachable", "Planted.");
      const made = await run();
      await step();
      if (dead.has(replica)) await new Promise(() => {});
      if (fate > 0.98) throw new StateError("slow", "Planted.", { uncertain: true });
      return made;
    };
    const isBlind = (name: StateName): boolean => plant.startsWith("change") && name.collection === "limits";
    return {
      isExclusive: false,
      isUp: true,
      now: () => base.now(),
      get: (name) => around(() => base.get(name)),
      create: (name, value, write) => around(() => base.create(name, value, write)),
      update: (name, revision, value, write) =>
        around(async () => {
          const now = isBlind(name) ? ((await base.get(name))?.revision ?? revision) : revision;
          return base.update(name, now, value, write);
        }),
      delete: (name, revision) => around(() => base.delete(name, revision)),
      mayHave: (name) => base.mayHave(name),
      list: (collection, owner, listing) => around(() => base.list(collection, owner, listing)),
      watch: (name, listener) => base.watch(name, listener),
      close: async () => {},
    };
  };

  const start = (replica: string) => {
    const store = handleOf(replica);
    const lease = new ReplicaLease(store, { replica, leaseMs: 3_600_000 });
    if (plant === "never find a replica gone") lease.isGone = async () => false;
    const slots = new StateSlots({
      access: { reach: async () => ({ store, lease }) },
      goesOnAlone: () => false,
      onLost: () => {},
      lookMs: 50,
    });
    const isHasty = plant === "give slots back that still count";
    const shared: LeaseSlots = (limit, use) => {
      const nothing = {
        used: () => 0,
        get waiting() {
          return use.waiting;
        },
        restsFor: () => undefined,
        onSlots: () => use.onSlots(),
      };
      const told = isHasty ? ([{ ...limit, restMs: 0 }, nothing] as const) : ([limit, use] as const);
      const leased = slots.lease(...told);
      if (limit.restMs === 0) return leased;
      const started = leased.started.bind(leased);
      leased.started = () => {
        history.push({ what: "counted", at: monotonicNow() });
        started();
      };
      return leased;
    };
    const queue = new FairQueue({ queue: 1_000 }, true, shared);
    queue.change({ rates: new Map([["r", RATE]]), places: new Map([["p", PLACES]]) });
    return { replica, slots, queue, lane: queue.laneOf("r", "p") as Lane, running: new Set<number>() };
  };
  const replicas = REPLICAS.map(start);
  const last = replicas.at(-1) as (typeof replicas)[number];
  const open = new Set<number>();

  let isLast = false;
  let tellAll: () => void = () => {};
  const allBegan = new Promise<void>((resolve) => {
    tellAll = resolve;
  });

  const call = async (id: number): Promise<void> => {
    open.add(id);
    for (;;) {
      const { replica, queue, lane, running } = isLast
        ? last
        : random.pick(replicas.filter((one) => !dead.has(one.replica)));
      const asked = { operationId: "a.b", owner: random.pick(["ann", "bob"]) };
      const cancellation = new Cancellation("a.b", [], Number.POSITIVE_INFINITY, monotonicNow());
      try {
        await queue.enter(lane, asked, cancellation);
      } catch (thrown) {
        if (!(thrown instanceof CallError && thrown.code === "UNAVAILABLE")) throw thrown;
        await step();
        continue;
      }
      if (dead.has(replica)) {
        open.delete(id);
        return;
      }
      running.add(id);
      history.push({ what: "began", call: id });
      for (let count = random.below(6); count > 0; count--) await step();
      if (isLast) await allBegan;
      if (dead.has(replica)) return;
      running.delete(id);
      open.delete(id);
      history.push({ what: "ended", call: id });
      queue.leave(lane);
      return;
    }
  };
  const waitingAt = (replica: string): void => {
    // Whoever waited at a replica that crashed is cut off.
    replicas.find((one) => one.replica === replica)?.queue.close(new CallError("ABORTED", "Crashed."));
  };
  const crash = async (replica: string): Promise<void> => {
    dead.add(replica);
    const { running } = replicas.find((one) => one.replica === replica) ?? { running: new Set<number>() };
    history.push({ what: "crashed", calls: [...running] });
    for (const id of running) open.delete(id);
    waitingAt(replica);
    const name = { collection: "replicas", owner: "", key: replica };
    const found = await base.get(name);
    if (found !== undefined) await base.delete(name, found.revision);
  };

  let left = CALLS;
  let crashes = seed % 3;
  const turn = async (): Promise<void> => {
    if (left > 0 && random.chance(0.2)) {
      const id = left--;
      void call(id).catch((thrown: unknown) => {
        open.delete(id);
        if (!(thrown instanceof CallError && thrown.code === "ABORTED")) throw thrown;
      });
    }
    if (crashes > 0 && left < CALLS / 2 && random.chance(0.05)) await crash(REPLICAS[--crashes] as string);
    steps.splice(random.below(Math.max(steps.length, 1)), 1)[0]?.();
    if (random.chance(0.3)) vi.advanceTimersByTime(random.below(10));
    await new Promise((resolve) => setImmediate(resolve));
  };
  for (let turns = 0; turns < PATIENCE && (left > 0 || open.size > 0); turns++) await turn();
  for (const id of open) history.push({ what: "stuck", call: id });
  // One replica can have all there is.
  isLast = true;
  for (let id = CALLS + 1; id <= CALLS + PLACES; id++) void call(id).catch(() => {});
  for (let turns = 0; turns < PATIENCE && last.running.size < PLACES; turns++) await turn();
  if (last.running.size < PLACES) history.push({ what: "lost", slots: PLACES - last.running.size });
  tellAll();
  for (const replica of REPLICAS) dead.add(replica);
  for (const { queue } of replicas) queue.close(new CallError("ABORTED", "Over."));
  return history;
}

async function playMany(count: number, plant: Plant) {
  const found: string[] = [];
  let began = 0;
  for (let seed = 1; seed <= count; seed++) {
    const history = await play(seed, plant);
    began += history.filter(({ what }) => what === "began").length;
    found.push(...violations(history).map((violation) => `seed ${seed}: ${violation}`));
  }
  return { found, began };
}

describe("limits of several replicas", () => {
  beforeEach(() => {
    vi.useFakeTimers({
      toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance"],
    });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("hold for all of them together, and hold nobody up, whatever happens in which order, crashes included", {
    timeout: 300_000,
  }, async () => {
    const { numRuns } = runs(60);
    const { found, began } = await playMany(numRuns, "none");
    expect(found).toEqual([]);
    // Those that crashed may have taken some along.
    expect(began).toBeGreaterThan((numRuns * CALLS) / 2);
  });

  it.each<readonly [Plant, RegExp]>([
    ["change records without looking at their revision", /calls ran at a time|calls began within/],
    ["never find a replica gone", /slots were lost/],
    ["give slots back that still count", /calls ran at a time|calls began within/],
  ])("are seen to fail where replicas are made to %s", { timeout: 300_000 }, async (plant, violation) => {
    const { found } = await playMany(plant.startsWith("never") ? 8 : 30, plant);
    expect(found.filter((one) => violation.test(one))).not.toEqual([]);
  });
});
