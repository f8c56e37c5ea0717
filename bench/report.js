// @ts-check

/** @typedef {import("./interleave.js").Comparison} Comparison */
/** @typedef {import("./statistics.js").Spread} Spread */
/** @typedef {{ bench: string, target: string, measured: string, passed: boolean }} Verdict */

/** @param {number} nanoseconds */
export function formatTime(nanoseconds) {
  const size = Math.abs(nanoseconds);
  if (size < 1e3) return `${nanoseconds.toFixed(size < 100 ? 1 : 0)} ns`;
  if (size < 1e6) return `${(nanoseconds / 1e3).toFixed(2)} µs`;
  return `${(nanoseconds / 1e6).toFixed(2)} ms`;
}

/** @param {number} ratio */
const formatRatio = (ratio) => `${ratio.toFixed(ratio < 10 ? 2 : 1)}×`;

/** @param {Spread} spread @param {(value: number) => string} format */
const formatSpread = (spread, format) =>
  `${format(spread.median)} (${format(spread.low)} … ${format(spread.high)})`;

/**
 * Prints one row per side: its median, the middle eight tenths, and its ratio to the base side.
 * @param {string} title
 * @param {Comparison} comparison
 * @param {string} base
 */
export function printTable(title, comparison, base) {
  const rows = comparison.names.map((name) => {
    const { low, median, high } = comparison.time(name);
    const ratio = comparison.ratio(name, base);
    return [
      name,
      formatTime(median),
      `${formatTime(low)} … ${formatTime(high)}`,
      formatRatio(ratio.median),
      `${formatRatio(ratio.low)} … ${formatRatio(ratio.high)}`,
    ];
  });
  const table = [["", "median", "10 % … 90 %", `of ${base}`, "10 % … 90 %"], ...rows];
  const widths =
    table[0]?.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0))) ?? [];
  console.log(`\n${title}`);
  for (const row of table) {
    const cells = row.map((cell, column) =>
      column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
    );
    console.log(`  ${cells.join("  ")}`.trimEnd());
  }
}

/** The same comparison with all its times divided by how many calls a step makes. @param {Comparison} comparison @param {number} calls @returns {Comparison} */
export function perCall(comparison, calls) {
  const divided = (/** @type {Spread} */ { low, median, high }) => ({
    low: low / calls,
    median: median / calls,
    high: high / calls,
  });
  return {
    ...comparison,
    time: (name) => divided(comparison.time(name)),
    extra: (a, b) => divided(comparison.extra(a, b)),
  };
}

/**
 * Prints whether a target was met and returns the verdict.
 * @param {string} bench
 * @param {string} target
 * @param {string} measured
 * @param {boolean} passed
 * @returns {Verdict}
 */
export function verdict(bench, target, measured, passed) {
  console.log(`  ${passed ? "PASS" : "LOST ****"}  ${target}: ${measured}`);
  return { bench, target, measured, passed };
}

/**
 * Judges "at least this many times as fast".
 * @param {string} bench @param {Comparison} comparison @param {{ slow: string, fast: string, times: number }} target
 */
export function judgeFaster(bench, comparison, { slow, fast, times }) {
  const ratio = comparison.ratio(slow, fast);
  const wording = times === 1 ? `${fast} ahead of ${slow}` : `${fast} at least ${times}× as fast as ${slow}`;
  return verdict(bench, wording, formatSpread(ratio, formatRatio), ratio.median >= times);
}

/**
 * Judges "at most this many times as long".
 * @param {string} bench @param {Comparison} comparison @param {{ side: string, base: string, times: number }} target
 */
export function judgeWithin(bench, comparison, { side, base, times }) {
  const ratio = comparison.ratio(side, base);
  const measured = formatSpread(ratio, formatRatio);
  return verdict(bench, `${side} at most ${times}× ${base}`, measured, ratio.median <= times);
}

/**
 * Judges "at most this much longer".
 * @param {string} bench @param {Comparison} comparison @param {{ side: string, base: string, limit: number }} target
 */
export function judgeExtra(bench, comparison, { side, base, limit }) {
  const extra = comparison.extra(side, base);
  const wording = `${side} at most ${formatTime(limit)} more than ${base}`;
  return verdict(bench, wording, formatSpread(extra, formatTime), extra.median <= limit);
}

/**
 * Judges "at most this long".
 * @param {string} bench @param {Comparison} comparison @param {{ side: string, limit: number }} target
 */
export function judgeTime(bench, comparison, { side, limit }) {
  const time = comparison.time(side);
  const wording = `${side} within ${formatTime(limit)}`;
  return verdict(bench, wording, formatSpread(time, formatTime), time.median <= limit);
}

/**
 * Judges "at most this many times its size in memory".
 * @param {string} bench
 * @param {{ side: string, peaks: readonly number[], size: number, times: number }} target
 */
export function judgeMemory(bench, { side, peaks, size, times }) {
  const sorted = peaks.map((peak) => peak / size).sort((a, b) => a - b);
  const [low = 0, high = 0] = [sorted[0], sorted.at(-1)];
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0;
  const measured = formatSpread({ low, median, high }, formatRatio);
  return verdict(bench, `${side} at most ${times}× its size in memory`, measured, median <= times);
}

/**
 * Judges "what is alive does not grow": bytes early on and much later.
 * @param {string} bench @param {{ early: number, late: number, limit: number }} target
 */
export function judgeGrowth(bench, { early, late, limit }) {
  const megabytes = (/** @type {number} */ bytes) => `${(bytes / 1024 / 1024).toFixed(2)} MB`;
  const measured = `${megabytes(early)}, then ${megabytes(late)}`;
  return verdict(bench, `grows by less than ${megabytes(limit)}`, measured, late - early < limit);
}
