import { describe, expect, it } from "vitest";
import { createRandom } from "../../../test/random.ts";
import { runs } from "../../../test/runs.ts";
import { createKeys, type OpenedKeys } from "../../../test/state-keys.ts";
import { CallError } from "../../core/errors/errors.ts";
import type { KeyName } from "../../core/idempotency/idempotency-store.ts";
import {
  IdempotentCalls,
  type KeyEnding,
  type RepeatedCall,
} from "../../core/idempotency/idempotent-calls.ts";
import { createLocalStateStore } from "./local-state-store.ts";
import { StateError, type StateName, type StateStore } from "./state-store.ts";

const LIMITS = { idempotencyKeys: 1_000, idempotencyBytes: 1e6, idempotencyMs: 3_600_000 };
const REPLICAS = ["one", "two", "three"];
const KEYS = ["a", "b"];
const ATTEMPTS = 12;

/** What happened to the calls of a key, in this order. */
interface Event {
  readonly key: string;
  readonly what: "ran" | "answered" | "refused";
  readonly answer?: string;
}

/** Says what a history must not hold, one sentence each. */
function violations(history: readonly Event[]): string[] {
  return KEYS.flatMap((key) => {
    const own = history.filter((event) => event.key === key);
    const ran = own.filter(({ what }) => what === "ran");
    const answers = new Set(own.flatMap(({ answer }) => answer ?? []));
    return [
      ...(ran.length > 1 ? [`${key} ran ${ran.length} times`] : []),
      ...(answers.size > 1 ? [`${key} was answered differently`] : []),
      ...(answers.size > 0 && ran.length === 0 ? [`${key} was answered and never ran`] : []),
    ];
  });
}

/** Calls of one replica. */
interface Calls {
  readonly calls: IdempotentCalls;
  readonly above?: IdempotentCalls;
}

/** What a store is told to get wrong. */
type Plant = "none" | "create in two steps" | "forget what a crash leaves";

/**
 * Lets what several do at once happen in a random order, and crash and fail between any two steps. Where it is claimed twice, a call claims its key
 * above before it claims the one below.
 */
async function play(seed: number, plant: Plant, isTwice: boolean): Promise<Event[]> {
  const random = createRandom(seed);
  const history: Event[] = [];
  const steps: (() => void)[] = [];
  const step = (): Promise<void> => new Promise((resolve) => void steps.push(resolve));
  const base = createLocalStateStore();
  const records: StateName[] = [];
  const dead = new Set<string>();

  const handleOf = (replica: string): StateStore => {
    const around = async <T>(run: () => Promise<T>): Promise<T> => {
      await step();
      const fate = random.below(100) / 100;
      if (dead.has(replica)) await new Promise(() => {});
      if (fate < 0.03) throw new StateError("unreachable", "Planted.");
      const made = await run();
      await step();
      if (dead.has(replica)) await new Promise(() => {});
      if (fate > 0.95) throw new StateError("slow", "Planted.", { uncertain: true });
      return made;
    };
    return {
      isExclusive: false,
      isUp: true,
      now: () => base.now(),
      get: (name) => around(() => base.get(name)),
      create: (name, value, write) =>
        around(async () => {
          records.push(name);
          if (plant !== "create in two steps" || name.collection !== "keys")
            return base.create(name, value, write);
          const record = await base.get(name);
          if (record !== undefined) return { state: "exists", record };
          await step();
          const late = await base.get(name);
          if (late !== undefined) await base.delete(name, late.revision);
          return base.create(name, value, write);
        }),
      update: (name, revision, value, write) => around(() => base.update(name, revision, value, write)),
      delete: (name, revision) => around(() => base.delete(name, revision)),
      mayHave: (name) => base.mayHave(name),
      list: (collection, owner, listing) => around(() => base.list(collection, owner, listing)),
      watch: (name, listener) => base.watch(name, listener),
      close: async () => {},
    };
  };

  const forget = async (name: StateName): Promise<void> => {
    const found = await base.get(name);
    if (found !== undefined) await base.delete(name, found.revision);
  };
  /** Others take it for gone, although it is only slow. */
  const doubt = (replica: string) => forget({ collection: "replicas", owner: "", key: replica });
  const crash = async (replica: string): Promise<void> => {
    dead.add(replica);
    await doubt(replica);
    if (plant === "forget what a crash leaves") for (const name of records) await forget(name);
  };

  const stores: OpenedKeys[] = [];
  const start = (replica: string): Calls => {
    const handle = handleOf(replica);
    const store = createKeys(handle, replica, 3_600_000);
    stores.push(store);
    const calls = new IdempotentCalls(LIMITS, true, store.keys);
    if (!isTwice) return { calls };
    const below = { keys: store.keys, nameOf: (name: KeyName) => name };
    const upper = createKeys(handle, replica, 3_600_000, { collection: "keys-above", below });
    stores.push(upper);
    return { calls, above: new IdempotentCalls(LIMITS, true, upper.keys) };
  };
  let answers = 0;
  const call = async ({ calls, above }: Calls, key: string): Promise<void> => {
    const asked = {
      owner: "ann",
      key,
      fingerprint: "f",
      signal: new AbortController().signal,
      patienceMs: 5,
    };
    try {
      const repeat = ({ outcome }: RepeatedCall): string =>
        "error" in outcome ? outcome.error.message : "none";
      const endOf = (answer: string): KeyEnding => {
        const error = new CallError("INTERNAL", answer);
        return { ending: "final", call: { requestId: "r", durationMs: 1, outcome: { error } } };
      };
      const once = (): Promise<string> =>
        calls.run<string>(asked, {
          run: async () => {
            const made = `answer ${++answers}`;
            history.push({ key, what: "ran" });
            await step();
            return { answer: made, end: endOf(made) };
          },
          repeat,
        });
      const twice = (upper: IdempotentCalls): Promise<string> =>
        upper
          .run<string | { readonly refused: unknown }>(asked, {
            run: () =>
              once().then(
                (answer) => ({ answer, end: endOf(answer) }),
                // What is refused below has not run.
                (refused: unknown) => ({ answer: { refused }, end: { ending: "passing" } }),
              ),
            repeat,
          })
          .then((answer) => {
            if (typeof answer === "object") throw answer.refused;
            return answer;
          });
      const answer = await (above === undefined ? once() : twice(above));
      history.push({ key, what: "answered", answer });
    } catch (thrown) {
      const isNamed =
        thrown instanceof StateError || (thrown instanceof CallError && thrown.code === "CONFLICT");
      if (!isNamed) throw thrown;
      history.push({ key, what: "refused" });
    }
  };

  const replicas = new Map(REPLICAS.map((replica) => [replica, start(replica)]));
  let open = 0;
  const asked = Array.from({ length: ATTEMPTS }, () => ({
    replica: random.pick(REPLICAS),
    key: random.pick(KEYS),
  }));
  const ask = ({ replica, key }: (typeof asked)[number]): void => {
    open++;
    call(replicas.get(replica) as Calls, key).finally(() => open--);
  };
  const settle = async (crashes: number): Promise<void> => {
    let left = crashes;
    // Without steps only those wait whose replica is gone, or who wait for another one's call.
    for (let idle = 0; idle < 20; ) {
      await new Promise((resolve) => setImmediate(resolve));
      if (left > 0 && random.chance(0.03)) {
        left--;
        await crash(REPLICAS[left] as string);
      }
      if (random.chance(0.01)) await doubt(random.pick(REPLICAS));
      const at = random.below(Math.max(steps.length, 1));
      const [next] = steps.splice(at, 1);
      next?.();
      if (asked.length > 0 && random.chance(0.3)) ask(asked.pop() as (typeof asked)[number]);
      if (next !== undefined || asked.length > 0) idle = 0;
      else {
        idle++;
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      if (open === 0 && asked.length === 0 && steps.length === 0) return;
    }
  };
  await settle(random.below(3));
  // Whoever comes later is told what is known.
  const late = start("late");
  for (const key of KEYS) {
    open++;
    call(late, key).finally(() => open--);
  }
  await settle(0);
  for (const replica of REPLICAS) dead.add(replica);
  for (const store of stores) void store.close();
  for (let round = 0; round < 50; round++) {
    for (const next of steps.splice(0)) next();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return history;
}

async function playMany(count: number, plant: Plant, isTwice = false) {
  const found: string[] = [];
  const seen = { ran: 0, answered: 0, refused: 0 };
  for (let seed = 1; seed <= count; seed++) {
    const history = await play(seed, plant, isTwice);
    for (const { what } of history) seen[what] += 1;
    found.push(...violations(history).map((violation) => `seed ${seed}: ${violation}`));
  }
  return { found, seen };
}

describe("keys of several replicas", () => {
  it.each([
    ["once", false],
    ["twice, as calls over HTTP do", true],
  ])(
    "claimed %s run once at most and are answered alike, whatever happens in which order, crashes and lost answers of the store included",
    { timeout: 300_000 },
    async (_, isTwice) => {
      const { found, seen } = await playMany(runs(500).numRuns, "none", isTwice);
      expect(found).toEqual([]);
      // One that refuses everything would break no rule.
      expect(seen.answered).toBeGreaterThan(seen.ran);
      expect(seen.ran).toBeGreaterThan(runs(500).numRuns);
    },
  );

  it.each<readonly [Plant, boolean]>([
    ["create in two steps", false],
    ["forget what a crash leaves", false],
    ["forget what a crash leaves", true],
  ])(
    "are seen to run twice where a store is made to %s (claimed twice: %s)",
    { timeout: 300_000 },
    async (plant, isTwice) => {
      const { found } = await playMany(50, plant, isTwice);
      expect(found.filter((one) => / ran \d times$/.test(one))).not.toEqual([]);
    },
  );
});
