// @ts-check
import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createRandom, shuffled, spreadOf } from "./statistics.js";

/** @typedef {import("./statistics.js").Spread} Spread */
/** @typedef {(value: any) => unknown} Side called with the values of the run in turn */

/**
 * @typedef {object} InterleaveOptions
 * @property {number} rounds
 * @property {number} sliceMs how long each side runs in one round
 * @property {number} warmUpMs how long each side runs before anything counts
 * @property {readonly unknown[]} [values] what the sides are called with, in turn
 * @property {boolean} [sync] call without awaiting; for sides far faster than a turn of the promise queue
 * @property {Readonly<Record<string, () => Promise<number>>>} [cpu] asks a side that is another process for its processor time so far, in nanoseconds
 */

setFlagsFromString("--expose-gc");
/** @type {(options: { type: "minor" }) => void} */
const collect = runInNewContext("gc");

/** Where results go, so that no call can be optimised away. */
export const sink = { last: /** @type {unknown} */ (undefined) };

let loopCount = 0;

/**
 * Gives each side a loop of its own source text, so that V8 optimises it for that side alone.
 * @param {Side} side
 * @param {InterleaveOptions} options
 * @returns {(calls: number) => unknown}
 */
function createLoop(side, { sync = false, values = [undefined] }) {
  const [prefix, wait] = sync ? ["", ""] : ["async ", "await "];
  const body = `for (let call = 0; call < calls; call++) sink.last = ${wait}side(values[call % values.length]);`;
  const text = `return ${prefix}function loop${loopCount++}(calls) { ${body} }`;
  return new Function("side", "values", "sink", text)(side, values, sink);
}

/** @param {(calls: number) => unknown} loop @param {number} calls @returns {Promise<number>} nanoseconds per call */
async function timeSlice(loop, calls) {
  await setImmediate();
  collect({ type: "minor" });
  const started = process.hrtime.bigint();
  await loop(calls);
  return Number(process.hrtime.bigint() - started) / calls;
}

/**
 * Runs a loop until it is warm and returns how many calls fill one slice.
 * @param {(calls: number) => unknown} loop
 * @param {InterleaveOptions} options
 */
async function warmUp(loop, { warmUpMs, sliceMs }) {
  const end = performance.now() + warmUpMs;
  let calls = 1;
  let perCall = await timeSlice(loop, calls);
  while (performance.now() < end) {
    calls = Math.max(1, Math.min(calls * 4, Math.ceil((sliceMs * 1e6) / perCall)));
    perCall = await timeSlice(loop, calls);
  }
  return Math.max(1, Math.round((sliceMs * 1e6) / perCall));
}

/**
 * Times the sides in one process: everybody warms up, then in each round everybody runs for one slice in a
 * newly shuffled order, so that whatever slows the machine down slows all of them down alike.
 * @param {Readonly<Record<string, Side>>} sides
 * @param {InterleaveOptions} options
 */
export async function interleave(sides, options) {
  const random = createRandom(20);
  const runners = Object.entries(sides).map(([name, side]) => ({
    name,
    loop: createLoop(side, options),
    calls: 0,
    samples: /** @type {number[]} */ ([]),
    cpu: options.cpu?.[name] ?? (async () => Number.NaN),
    cpuSamples: /** @type {number[]} */ ([]),
  }));
  for (const runner of runners) await warmUp(runner.loop, options);
  for (const runner of runners)
    runner.calls = await warmUp(runner.loop, { ...options, warmUpMs: options.sliceMs * 3 });
  for (let round = 0; round < options.rounds; round++) {
    for (const runner of shuffled(runners, random)) {
      const before = await runner.cpu();
      runner.samples.push(await timeSlice(runner.loop, runner.calls));
      runner.cpuSamples.push(((await runner.cpu()) - before) / runner.calls);
    }
  }
  return {
    ...createComparison(new Map(runners.map(({ name, samples }) => [name, samples]))),
    /** The same of the processor time of sides that are other processes. */
    cpu: createComparison(new Map(runners.map(({ name, cpuSamples }) => [name, cpuSamples]))),
  };
}

/** @typedef {ReturnType<typeof createComparison>} Comparison */

/**
 * Wraps samples taken round by round, so that sides are compared within a round and only then summed up.
 * @param {ReadonlyMap<string, readonly number[]>} samples
 */
export function createComparison(samples) {
  /** @param {string} name */
  const of = (name) => {
    const found = samples.get(name);
    if (found === undefined) throw new Error(`There is no side called ${name}.`);
    return found;
  };
  /** @param {string} a @param {string} b @param {(a: number, b: number) => number} combine */
  const pair = (a, b, combine) =>
    spreadOf(of(a).map((value, round) => combine(value, of(b)[round] ?? Number.NaN)));
  return {
    names: [...samples.keys()],
    /** @param {string} name */
    time: (name) => spreadOf(of(name)),
    /** How many times as long `a` takes as `b`. @param {string} a @param {string} b */
    ratio: (a, b) => pair(a, b, (x, y) => x / y),
    /** How much longer `a` takes than `b`. @param {string} a @param {string} b */
    extra: (a, b) => pair(a, b, (x, y) => x - y),
  };
}
