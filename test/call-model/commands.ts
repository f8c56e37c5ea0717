import fc from "fast-check";
import { localEnvelope } from "../../src/index.ts";
import { checkWorld } from "./check-world.ts";
import { type ControlledRun, OPERATIONS, THROWN } from "./controlled-runs.ts";
import { MISCHIEF } from "./hostile-bus.ts";
import { DRAIN_MS, GRID_MS, type World } from "./world.ts";

/** One step of the model. */
export type Command = fc.AsyncCommand<World, World>;

/** Commands that are run at most, of those that make sense when their turn comes. */
export const MOST_STEPS = 50;

interface Action<T> {
  /** Whether it makes sense now. @default always */
  readonly isReady?: (world: World) => boolean;
  readonly act: (world: World, given: T) => void | Promise<void>;
}

/** A command with what it is given; whatever it does, the world is checked afterwards. */
function command<T>(
  name: string,
  given: fc.Arbitrary<T>,
  { isReady, act }: Action<T>,
): fc.Arbitrary<Command> {
  return given.map((value) => ({
    check: (world) => world.steps < MOST_STEPS && (isReady?.(world as World) ?? true),
    async run(world) {
      world.steps++;
      await act(world, value);
      await world.settle();
      checkWorld(world);
    },
    toString: () => `${name}(${JSON.stringify(value)})`,
  }));
}

/** The newest of something, mostly. */
const pick = fc.oneof(fc.constantFrom(0, 0, 1), fc.nat(7));
const slot = fc.nat(2);
const onGrid = (most: number) => fc.integer({ min: 1, max: most / GRID_MS }).map((steps) => steps * GRID_MS);
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 });

function chosen<T>(from: readonly T[], at: number): T {
  return from[from.length - 1 - (at % from.length)] as T;
}

const signalIn = (world: World, at: number | undefined) => (at === undefined ? undefined : world.slots[at]);

const calling = fc.record({
  operation: fc.constantFrom("once", "again"),
  timeoutMs: maybe(fc.oneof({ weight: 9, arbitrary: onGrid(200) }, { weight: 1, arbitrary: fc.constant(0) })),
  attempts: fc.constantFrom(1, 1, 2, 3),
  attemptTimeoutMs: maybe(onGrid(60)),
  slot: maybe(slot),
  isNamed: fc.boolean(),
  size: fc.constantFrom(0, 0, 600),
});

const call = command("call", calling, {
  act(world, { operation, slot: at, isNamed, timeoutMs, attempts, attemptTimeoutMs, size }) {
    const id = OPERATIONS[operation as "once" | "again"];
    const plan = {
      timeoutMs,
      attempts,
      attemptTimeoutMs: attempts > 1 ? attemptTimeoutMs : undefined,
      signal: signalIn(world, at),
      isNamed,
      input: "x".repeat(size),
    };
    world.call(id, plan, isNamed ? `r${world.calls.length}` : undefined);
  },
});

const ALONE = {
  timeoutMs: undefined,
  attempts: 1,
  attemptTimeoutMs: undefined,
  signal: undefined,
  isNamed: true,
  input: "",
};

const callAlike = command("call alike", pick, {
  isReady: ({ asking }) => asking.named.length > 0,
  act: (world, at) => world.call(OPERATIONS.once, ALONE, chosen(world.asking.named, at).requestId),
});

const callsThatWait = (world: World) => liveFirst(world.runs.filter((run) => !run.isStream && run.isWaiting));
const streamsThatWait = (world: World) =>
  liveFirst(world.runs.filter((run) => run.isStream && run.isWaiting));

/** Those that somebody waits for come last, which is where one is chosen first. */
function liveFirst(runs: readonly ControlledRun[]): readonly ControlledRun[] {
  const isLive = (run: ControlledRun) => !run.signal.aborted;
  return [...runs.filter((run) => !isLive(run)), ...runs.filter(isLive)];
}

const answering = fc.record({
  pick,
  how: fc.constantFrom("respond", "respond", "tool error", "progress", ...THROWN),
  size: fc.constantFrom(0, 0, 300),
});

const answer = command("answer", answering, {
  isReady: (world) => callsThatWait(world).length > 0,
  act(world, { pick: at, how, size }) {
    const run = chosen(callsThatWait(world), at);
    const data = run.datum(0, "x".repeat(size));
    if (how === "progress") return report(world, run);
    if (how !== "respond" && how !== "tool error") return fail(world, run, how);
    world.answering.tell(run, { type: "call.responded", data });
    if (how === "respond") run.give(data);
    else run.toolError(data);
  },
});

const step = command(
  "yield",
  fc.record({ pick, times: fc.integer({ min: 1, max: 6 }), size: fc.constantFrom(0, 300) }),
  {
    isReady: (world) => streamsThatWait(world).length > 0,
    async act(world, { pick: at, times, size }) {
      const run = chosen(streamsThatWait(world), at);
      for (let n = 0; n < times && run.isWaiting; n++) {
        const value = run.datum(run.yielded++, "x".repeat(size));
        world.answering.tell(run, { type: "call.responded", data: value, isYield: true });
        run.give({ done: false, value });
        await world.settle();
      }
    },
  },
);

const finish = command(
  "finish",
  fc.record({ pick, how: fc.constantFrom("end", "end", "progress", ...THROWN) }),
  {
    isReady: (world) => streamsThatWait(world).length > 0,
    act(world, { pick: at, how }) {
      const run = chosen(streamsThatWait(world), at);
      if (how === "progress") return report(world, run);
      if (how !== "end") return fail(world, run, how);
      world.answering.tell(run, { type: "call.completed" });
      run.give({ done: true, value: undefined });
    },
  },
);

function fail(world: World, run: ControlledRun, code: (typeof THROWN)[number]): void {
  world.answering.tell(run, code === "ABORTED" ? { type: "call.aborted" } : { type: "call.error", code });
  run.fail(code);
}

function report(world: World, run: ControlledRun): void {
  world.answering.report(run);
  run.context.progress("a little");
}

const abort = command("abort", fc.record({ slot, isRenewed: fc.boolean() }), {
  act(world, { slot: at, isRenewed }) {
    const signal = world.slots[at] as number;
    if (!world.asking.aborted.has(signal)) {
      world.asking.abort(signal);
      world.controllers[signal]?.abort();
    }
    if (isRenewed) world.renewSignal(at);
  },
});

const advance = command("advance", fc.constantFrom(10, 10, 20, 20, 50, 100, 400), {
  act: (world, ms) => world.advance(ms),
});

const subscribing = fc.record({
  timeoutMs: maybe(onGrid(300)),
  slot: maybe(slot),
  isRead: fc.constantFrom(true, true, false),
});

const subscribe = command("subscribe", subscribing, {
  act(world, { timeoutMs, slot: at, isRead }) {
    world.subscribe(timeoutMs, signalIn(world, at));
    if (isRead) world.read(world.streams.length - 1);
  },
});

const read = command("read", fc.record({ pick, times: fc.integer({ min: 1, max: 6 }) }), {
  isReady: ({ streams }) => streams.length > 0,
  act(world, { pick: at, times }) {
    for (let n = 0; n < times; n++) world.read(world.streams.length - 1 - (at % world.streams.length));
  },
});

const leave = command("leave", pick, {
  isReady: ({ streams }) => streams.length > 0,
  async act(world, at) {
    world.asking.leave(chosen(world.asking.streams, at));
    await chosen(world.streams, at).iterator.return?.();
  },
});

const disturbing = fc.record({
  pick,
  mischief: fc.constantFrom(...MISCHIEF, "drop", "duplicate"),
  to: fc.constantFrom("asker" as const, "answerer" as const),
  which: pick,
});

const disturb = command("disturb", disturbing, {
  act: ({ network }, { pick: at, mischief, to, which }) => network.disturb(at, mischief, to, which),
});

const forge = command("forge", fc.record({ target: pick, other: pick, kind: fc.nat(35) }), {
  act: ({ network }, { target, other, kind }) => network.forge(target, other, kind),
});

const forgeResponse = command("respond", fc.record({ pick, how: fc.nat(5) }), {
  isReady: ({ asking }) => asking.calls.length > 0,
  act({ asking, map, controllers }, { pick: at, how }) {
    const { requestId, asker } = chosen(asking.calls, at);
    const envelope = localEnvelope("forged", OPERATIONS.once);
    const paths = [
      requestId,
      { ...asker },
      Object.create(asker ?? null),
      { requestId },
      controllers,
      undefined,
    ];
    map.respond(paths[how], envelope);
    const counters = asking.counters[asking.map];
    if (counters !== undefined) counters.forged++;
    expectTypeError(() => map.respond(asker, { data: "forged" }));
  },
});

function expectTypeError(act: () => void): void {
  try {
    act();
  } catch (thrown) {
    if (thrown instanceof TypeError) return;
  }
  throw new Error("respond() took what is no envelope.");
}

const join = command("join", fc.constant(null), {
  isReady: ({ alive, network }) => alive.length < network.maxServices,
  act: (world) => world.join(),
});

const crash = command("crash", fc.record({ pick, isTold: fc.boolean() }), {
  isReady: ({ alive }) => alive.length > 0,
  act(world, { pick: at, isTold }) {
    const service = chosen(world.alive, at);
    world.network.cut(service.number, isTold);
    world.leave(service, 0);
  },
});

const drain = command("drain", pick, {
  isReady: ({ alive }) => alive.length > 0,
  act: (world, at) => world.leave(chosen(world.alive, at), DRAIN_MS),
});

const remake = command("remake", fc.constant(null), { act: (world) => world.closeMap() });

/** Everything that can happen, the common things often. */
export const COMMANDS: fc.Arbitrary<Command>[] = [
  ...[call, call, call, call, answer, answer, answer, answer, advance, advance, advance],
  ...[subscribe, subscribe, subscribe, step, step, step, step, step, read, read, read, finish, leave, abort],
  ...[disturb, disturb, disturb, disturb, disturb, disturb, forge, forge, forgeResponse, callAlike],
  ...[join, join, join, join, crash, drain, remake],
];
