/**
 * How much of what is tried at random: 1 is what `npm run test:all` does, a tenth of it is for the inner loop, 50 for a long
 * night.
 * @default 0.1
 */
const FACTOR = readFactor(process.env["WAYBILL_RUNS"]);

/** Says how often a property is tried: `count` times in `npm run test:all`, a tenth of that in `npm test`. */
export function runs(count: number): { numRuns: number } {
  return { numRuns: scaled(count) };
}

/** The same, with the same values every time until more is asked for than `npm run test:all` does. */
export function seededRuns(count: number): { numRuns: number; seed?: number } {
  return FACTOR > 1 ? runs(count) : { ...runs(count), seed: 20_240_917 };
}

/** A number of cases, scaled by `WAYBILL_RUNS`; at least ten, or all of them where there are fewer. */
export function scaled(count: number): number {
  return Math.max(Math.min(count, 10), Math.ceil(count * FACTOR));
}

function readFactor(text: string | undefined): number {
  const factor = Number(text ?? "0.1");
  if (factor > 0 && factor <= 10_000) return factor;
  throw new Error(`WAYBILL_RUNS is "${text}"; give it a number above 0, such as 0.1, 1 or 50.`);
}
