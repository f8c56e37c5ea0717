// @ts-check
// What a soak came to: a table, and whatever is wrong.

/** @typedef {{ workload: import("./soak-workload.js").Workload, samples: import("./soak-world.js").Sample[], end: import("./soak-world.js").End, kills: number }} Soak */

/** Minutes in which caches fill up and code is compiled: what they do to memory is not fitted. */
export const WARM_MINUTES = 10;
/** Samples and minutes after that without which no line is fitted. */
const FITTED = { samples: 6, minutes: 15 };
/** Bytes an hour that objects may grow by. */
const MOST_SLOPE = 1e6;
/** Of all calls, how many may meet a connection that is just being closed. */
const MOST_RESETS = 0.001;
/** Descriptors and timers that may come and go. */
const SLACK = 3;
/** Bytes that the heap may grow by between the first rest and the last, whatever the time. */
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
  const { total, resets } = workload;
  expect(resets <= total * MOST_RESETS, `${resets} of ${total} calls lost their connection`);
  // A call whose connection was closed under it never ran; looking at the gateway takes some calls more.
  expect(
    end.counted <= total - resets + 5 * samples.length,
    `${end.counted} calls ended of ${total - resets}`,
  );
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
  const slope = slopeOf(samples);
  if (slope !== undefined) {
    const { perHour, error } = slope;
    expect(perHour < MOST_SLOPE || perHour <= 2 * error, `objects: they grow by ${showSlope(slope)}`);
    expect(
      2 * error < MOST_SLOPE || perHour > 2 * error,
      `objects: ${showSlope(slope)} cannot tell: run it for longer`,
    );
  }
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

/** Bytes an hour that the objects grow by after the first minutes, by least squares, and the standard error of that. @typedef {{ perHour: number, error: number }} Slope */

/** @param {readonly Pick<import("./soak-world.js").Sample, "minutes" | "objects">[]} samples @returns {Slope | undefined} */
export function slopeOf(samples) {
  const points = samples
    .filter(({ minutes }) => minutes >= WARM_MINUTES)
    .map(({ minutes, objects }) => ({ x: minutes / 60, y: objects }));
  const hours = (points.at(-1)?.x ?? 0) - (points[0]?.x ?? 0);
  if (points.length < FITTED.samples || hours * 60 < FITTED.minutes) return undefined;
  const mean = (/** @type {"x" | "y"} */ axis) =>
    points.reduce((sum, point) => sum + point[axis], 0) / points.length;
  const [meanX, meanY] = [mean("x"), mean("y")];
  const spread = points.reduce((sum, { x }) => sum + (x - meanX) ** 2, 0);
  const perHour = points.reduce((sum, { x, y }) => sum + (x - meanX) * (y - meanY), 0) / spread;
  const residual = points.reduce((sum, { x, y }) => sum + (y - meanY - perHour * (x - meanX)) ** 2, 0);
  return { perHour, error: Math.sqrt(residual / (points.length - 2) / spread) };
}

/** @param {Slope} slope */
function showSlope({ perHour, error }) {
  return `${(perHour / 1e6).toFixed(2)} MB an hour, give or take ${((2 * error) / 1e6).toFixed(2)}`;
}

/** @param {Soak} soak */
export function writeSummary({ workload, samples, end, kills }) {
  const outcomes = [...workload.outcomes].sort(([a], [b]) => (a < b ? -1 : 1));
  const rows = [
    ["minutes", "calls", "descriptors", "processes", "timers", "objects MB", "heap MB", "memory MB"],
    ...samples.map(({ minutes, calls, fds, children, resources, objects, heapUsed, rss }) =>
      [
        minutes.toFixed(1),
        calls,
        fds,
        children,
        resources["Timeout"] ?? 0,
        mega(objects),
        mega(heapUsed),
        mega(rss),
      ].map(String),
    ),
  ];
  const slope = slopeOf(samples);
  return [
    `${workload.total} calls, ${end.counted} of them counted by the gateway; ${kills} kills; exit code ${end.code}`,
    "",
    ...rows.map((row) => row.map((cell) => cell.padStart(12)).join("")),
    "",
    slope === undefined
      ? `objects: too short to fit a line after the first ${WARM_MINUTES} minutes`
      : `objects after the first ${WARM_MINUTES} minutes: ${showSlope(slope)}`,
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
  return (bytes / 1e6).toFixed(2);
}
