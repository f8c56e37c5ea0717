/** The smallest of some sorted values that at least so many in a hundred are not above; nothing of nothing. */
export function percentile(sorted: ArrayLike<number>, percent: number): number | undefined {
  // Whole numbers are multiplied before they are divided: a share such as 0.95 would be off by one here and there.
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)];
}

/** A value that stands for several. */
export interface Weighted {
  readonly value: number;
  readonly weight: number;
}

/** The same for values that stand for several each, sorted by value. */
export function weightedPercentile(sorted: readonly Weighted[], percent: number): number | undefined {
  let all = 0;
  for (const { weight } of sorted) all += weight;
  const wanted = (all * percent) / 100;
  let passed = 0;
  for (const { value, weight } of sorted) {
    passed += weight;
    // Weights are fractions, whose sums miss by a hair.
    if (passed >= wanted - 1e-9 * all) return value;
  }
  return undefined;
}
