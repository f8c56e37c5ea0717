// @ts-check

/**
 * @typedef {object} Spread
 * @property {number} low the 10th percentile
 * @property {number} median
 * @property {number} high the 90th percentile
 */

/** @param {readonly number[]} sorted @param {number} share */
function quantile(sorted, share) {
  const position = (sorted.length - 1) * share;
  const below = sorted[Math.floor(position)] ?? Number.NaN;
  const above = sorted[Math.ceil(position)] ?? Number.NaN;
  return below + (above - below) * (position - Math.floor(position));
}

/**
 * Sums samples up by their median and the middle eight tenths; a mean would follow every hiccup of the machine.
 * @param {readonly number[]} samples
 * @returns {Spread}
 */
export function spreadOf(samples) {
  const sorted = [...samples].sort((a, b) => a - b);
  return { low: quantile(sorted, 0.1), median: quantile(sorted, 0.5), high: quantile(sorted, 0.9) };
}

/**
 * Returns a repeatable source of numbers in [0, 1), so that two runs use the same orders.
 * @param {number} seed
 */
export function createRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state * 1664525 + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/**
 * Returns the items in a random order.
 * @template T
 * @param {readonly T[]} items
 * @param {() => number} random
 * @returns {T[]}
 */
export function shuffled(items, random) {
  const result = [...items];
  for (let index = result.length - 1; index > 0; index--) {
    const other = Math.floor(random() * (index + 1));
    [result[index], result[other]] = [/** @type {T} */ (result[other]), /** @type {T} */ (result[index])];
  }
  return result;
}
