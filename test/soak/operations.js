// @ts-check
// Operations of a gateway under test, which run in its process: some that work, and one that says how the process is doing.

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

/** Memory after garbage is gone, where Node was started with `--expose-gc`, and what keeps the process busy, by kind. */
export const health = {
  namespace,
  name: "health",
  version,
  type,
  description: "Tells how the process is doing.",
  inputSchema: inputOf({}),
  handler: async () => {
    for (let i = 0; i < 3; i++) {
      globalThis.gc?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    const { rss, heapUsed, external } = process.memoryUsage();
    /** @type {Record<string, number>} */
    const resources = {};
    for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1;
    return { pid: process.pid, rss, heapUsed, external, resources };
  },
};
