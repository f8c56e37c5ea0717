// @ts-check
// What a soak came to: a table, and whatever is wrong.

/** @typedef {{ workload: import("./soak-workload.js").Workload, samples: import("./soak-world.js").Sample[], end: import("./soak-world.js").End, kills: number }} Soak */

/** Descriptors and timers that may come and go. */
const SLACK = 3;
/** Bytes that the heap may grow by after the warm-up, whatever the time: caches and code fill up. */
const HEAP_SLACK = 12e6;
const RSS_SLACK = 120e6;

/** @param {Soak} soak @returns {string[]} */
export function findFaults({ workload, samples, end, kills }) {
  const [first] = samples;
  const last = samples.at(-1);
  if (first === undefined || last === undefined) return ["Nothing was looked at."];
  const faults = [...workload.faults];
  /** @param {boolean} isSo @param {string} otherwise */
  const expect = (isSo, otherwise) => {
    if (!isSo) faults.push(otherwise);
  };
  expect(workload.running === 0, `${workload.running} calls never settled`);
  expect(end.inFlight === 0, `the gateway says that ${end.inFlight} calls still run`);
  expect(end.counted <= workload.total + samples.length, `${end.counted} calls ended of ${workload.total}`);
  expect(last.children === first.children, `processes: ${first.children} before, ${last.children} after`);
  expect(last.fds <= first.fds + SLACK, `descriptors: ${first.fds} before, ${last.fds} after`);
  for (const [kind, count] of Object.entries(last.resources)) {
    const before = first.resources[kind] ?? 0;
    expect(count <= before + SLACK, `${kind}: ${before} before, ${count} after`);
  }
  expect(
    last.heapUsed - first.heapUsed < HEAP_SLACK,
    `heap: ${mega(first.heapUsed)} before, ${mega(last.heapUsed)} after`,
  );
  expect(last.rss - first.rss < RSS_SLACK, `memory: ${mega(first.rss)} before, ${mega(last.rss)} after`);
  expect(end.code === 0, `the gateway ended with ${end.code}`);
  expect(end.left === 0, `${end.left} processes were left behind`);
  expect(kills > 0, "nothing was killed");
  const oks = new Set(
    [...workload.outcomes.keys()].filter((key) => key.endsWith(" ok")).map((key) => key.slice(0, -3)),
  );
  for (const entry of ["http", "mcp"]) {
    for (const source of ["local", "near", "far", "calculator", "depot"]) {
      expect(oks.has(`${entry} ${source}`), `no call of ${source} over ${entry} gave a result`);
    }
  }
  const odd = end.stderr
    .split("\n")
    .find((line) => /"level":"(error|fatal)"|Unhandled|soak:|^\s+at /.test(line));
  expect(odd === undefined, `stderr: ${odd}`);
  return faults;
}

/** @param {Soak} soak */
export function writeSummary({ workload, samples, end, kills }) {
  const outcomes = [...workload.outcomes].sort(([a], [b]) => (a < b ? -1 : 1));
  const rows = [
    ["calls", "descriptors", "processes", "timers", "heap MB", "memory MB"],
    ...samples.map(({ calls, fds, children, resources, heapUsed, rss }) =>
      [calls, fds, children, resources["Timeout"] ?? 0, mega(heapUsed), mega(rss)].map(String),
    ),
  ];
  return [
    `${workload.total} calls, ${end.counted} of them counted by the gateway; ${kills} kills; exit code ${end.code}`,
    "",
    ...rows.map((row) => row.map((cell) => cell.padStart(12)).join("")),
    "",
    ["count", "longest ms"].map((cell) => cell.padStart(12)).join(""),
    ...outcomes.map(
      ([key, [count, ms]]) => `${String(count).padStart(12)}${String(ms).padStart(12)}  ${key}`,
    ),
    "",
  ].join("\n");
}

/** @param {number} bytes */
function mega(bytes) {
  return (bytes / 1e6).toFixed(1);
}
