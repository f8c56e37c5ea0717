// @ts-check
// Operations of a gateway under test, which run in its process: some that work, and one that says how the process is doing.
import { writeHeapSnapshot } from "node:v8";

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

/**
 * How the process is doing: its memory, what keeps it busy, by kind, and what its heap holds, which it writes to a file. V8 collects all
 * garbage before it writes; that is done several times, because what waits for a finalizer goes after the next one only.
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
    for (let i = 0; i < 5; i++) {
      globalThis.gc?.();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    const { snapshot } = membersOf(input);
    if (snapshot !== undefined) writeHeapSnapshot(snapshot);
    const { rss, heapUsed, external } = process.memoryUsage();
    /** @type {Record<string, number>} */
    const resources = {};
    for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1;
    return { pid: process.pid, rss, heapUsed, external, resources };
  },
};
