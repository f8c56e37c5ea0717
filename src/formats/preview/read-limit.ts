/** Reads an option that counts something: a whole number from `least` on, or `Infinity` for no limit; else throws. */
export function readLimit(name: string, given: number | undefined, otherwise: number, least = 0): number {
  if (given === undefined) return otherwise;
  if (given === Number.POSITIVE_INFINITY || (Number.isSafeInteger(given) && given >= least)) return given;
  throw new RangeError(`${name} must be a whole number of at least ${least}, or Infinity; it is ${given}.`);
}
