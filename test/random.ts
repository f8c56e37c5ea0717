/** Numbers and choices that follow from a seed. */
export interface Random {
  /** An integer from 0 up to, but not including, the limit. */
  below(limit: number): number;
  /** True as often as the share says. */
  chance(share: number): boolean;
  pick<T>(choices: readonly T[]): T;
}

/** Creates a source of numbers that gives the same ones for the same seed, on every machine. */
export function createRandom(seed: number): Random {
  // Xorshift never leaves zero, so zero is not a start.
  let state = seed | 0 || 0x2545f491;
  const next = (): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 0x1_0000_0000;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    below,
    chance: (share) => next() < share,
    pick: (choices) => choices[below(choices.length)] as (typeof choices)[number],
  };
}
