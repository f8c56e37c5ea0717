// @ts-check
// Operations of a gateway under test, which run in its process: some that work, and one that says how the process is doing.
import { getHeapSpaceStatistics, writeHeapSnapshot } from "node:v8";

/** @param {unknown} given */
const membersOf = (given) => /** @type {Record<string, any>} */ (given);
const version = "1.0.0";
const namespace = "local";
const type = /** @type {const} */ ("query");
/** @param {Record<string, object>} properties */
const inputOf = (properties) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});

/** @param {number} ms @param {AbortSignal} signal */
const sleep = (ms, signal) =>
  new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve(undefined);
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end, { once: true });
  });

export const add = {
  namespace,
  name: "add",
  version,
  type,
  description: "Adds.",
  inputSchema: inputOf({ a: { type: "number" }, b: { type: "number" } }),
  /** @param {unknown} input */
  handler: (input) => ({ sum: membersOf(input).a + membersOf(input).b }),
};

export const wait = {
  namespace,
  name: "wait",
  version,
  type,
  description: "Waits.",
  inputSchema: inputOf({ ms: { type: "integer" } }),
  /** @param {unknown} input @param {{ signal: AbortSignal }} context */
  handler: async (input, { signal }) => {
    await sleep(membersOf(input).ms, signal);
    return { waited: membersOf(input).ms };
  },
};

export const ticks = {
  namespace,
  name: "ticks",
  version,
  type: /** @type {const} */ ("subscription"),
  description: "Counts.",
  inputSchema: inputOf({ to: { type: "integer" }, ms: { type: "integer" } }),
  /** @param {unknown} input @param {{ signal: AbortSignal }} context */
  handler: async function* (input, { signal }) {
    const { to, ms } = membersOf(input);
    for (let n = 0; n < to && !signal.aborted; n++) {
      yield { n };
      await sleep(ms, signal);
    }
  },
};

/** How often garbage is collected at the most, and how many bytes less count as less. */
const COLLECTIONS = 24;
const SETTLED_BYTES = 20_000;

/** Compiled code comes and goes as the engine thinks fit. */
function heapWithoutCode() {
  const code = getHeapSpaceStatistics().filter(({ space_name }) => space_name.startsWith("code"));
  return code.reduce((rest, space) => rest - space.space_used_size, process.memoryUsage().heapUsed);
}

/**
 * Memory after garbage is gone, where Node was started with `--expose-gc`, and what keeps the process busy, by kind. Garbage is collected
 * until that changes nothing any more: what waits for finalizers, and code that is not used, goes after several rounds only. With
 * `snapshot`, the path of a file, it also writes what the heap holds.
 */
export const health = {
  namespace,
  name: "health",
  version,
  type,
  description: "Tells how the process is doing.",
  inputSchema: { ...inputOf({ snapshot: { type: "string" } }), required: [] },
  /** @param {unknown} input */
  handler: async (input) => {
    let least = Number.POSITIVE_INFINITY;
    for (let [steady, turns] = [0, 0]; steady < 8 && turns < COLLECTIONS; turns++) {
      globalThis.gc?.();
      await new Promise((resolve) => setTimeout(resolve, 10));
      const now = heapWithoutCode();
      steady = now < least - SETTLED_BYTES ? 0 : steady + 1;
      least = Math.min(least, now);
    }
    const { snapshot } = membersOf(input);
    if (snapshot !== undefined) writeHeapSnapshot(snapshot);
    const { rss, external } = process.memoryUsage();
    /** @type {Record<string, number>} */
    const resources = {};
    for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1;
    return { pid: process.pid, rss, heapUsed: least, external, resources };
  },
};
