import { checkDelay, checkOption, checkOptionsObject } from "./check-options.ts";

/** How often and when something that failed is tried again. */
export interface RetryOptions {
  /** Attempts, the first included. @default 3 */
  readonly attempts?: number | undefined;
  /** Milliseconds before the second attempt; doubled for each further one, and varied. @default 200 */
  readonly delayMs?: number | undefined;
  /** The longest wait, one that the other side asks for included; past that, the error is thrown. @default 20_000 */
  readonly maxDelayMs?: number | undefined;
}

/** How much may begin in a period; more waits its turn. */
export interface RateOptions {
  readonly calls: number;
  readonly perMs: number;
}

/** How long what still runs is waited for when something closes. */
export interface CloseOptions {
  /** @default 10_000 */
  readonly timeoutMs?: number | undefined;
}

/** What `RetryOptions` means where it says nothing. */
export const RETRY_DEFAULTS = { attempts: 3, delayMs: 200, maxDelayMs: 20_000 } as const;

/** What `CloseOptions` means where it says nothing. */
export const CLOSE_TIMEOUT_MS = 10_000;

/** The most attempts that may be asked for. */
const MAX_ATTEMPTS = 100;

const RETRY = Object.keys(RETRY_DEFAULTS);

/** Parts limits into those of these names and the rest, where one object holds the limits of two parts. */
export function splitLimits<Own extends object, Rest extends object>(
  limits: (Own & Rest) | undefined,
  names: readonly string[],
): { readonly own: Own; readonly rest: Rest | undefined } {
  if (typeof limits !== "object" || limits === null) return { own: {} as Own, rest: limits };
  const entries = Object.entries(limits);
  const isOwn = ([name]: readonly [string, unknown]): boolean => names.includes(name);
  return {
    own: Object.fromEntries(entries.filter(isOwn)) as Own,
    rest: Object.fromEntries(entries.filter((entry) => !isOwn(entry))) as Rest,
  };
}

/** Throws a `TypeError` unless `retry` is left out, false or can work; `more` are names that are known besides. */
export function checkRetry(
  name: string,
  retry: RetryOptions | false | undefined,
  more: readonly string[] = [],
): void {
  if (retry === undefined || retry === false) return;
  checkOptionsObject(retry, [...RETRY, ...more], `${name}.`);
  const { attempts, delayMs, maxDelayMs } = retry;
  const isCount = Number.isSafeInteger(attempts) && (attempts ?? 0) >= 1 && (attempts ?? 0) <= MAX_ATTEMPTS;
  checkOption(`${name}.attempts`, attempts, `a whole number from 1 to ${MAX_ATTEMPTS}`, isCount);
  checkDelay(`${name}.delayMs`, delayMs);
  checkDelay(`${name}.maxDelayMs`, maxDelayMs);
}

/** Throws a `TypeError` unless `rate` is left out or can work. */
export function checkRate(name: string, rate: RateOptions | undefined): void {
  if (rate === undefined) return;
  checkOptionsObject(rate, ["calls", "perMs"], `${name}.`);
  const { calls, perMs } = rate;
  const isCount = Number.isSafeInteger(calls) && calls >= 1;
  checkOption(`${name}.calls`, calls ?? null, "a whole number, 1 or more", isCount);
  const isPeriod = typeof perMs === "number" && perMs > 0 && Number.isFinite(perMs);
  checkOption(`${name}.perMs`, perMs ?? null, "a number of milliseconds, more than 0", isPeriod);
}
