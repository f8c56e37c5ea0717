import type { SpawnOptions } from "./spawn-child.ts";

/** What a stdio server may use up; nothing it does goes beyond. */
export interface StdioLimits {
  /** The longest line that is read, in bytes without its newline; a longer one is dropped. @default 67_108_864 */
  readonly lineBytes?: number | undefined;
  /** Characters kept of what it says on standard error. @default 16_384 */
  readonly stderrTail?: number | undefined;
  /** Characters that may wait for it to read; more are refused. @default 67_108_864 */
  readonly unsentChars?: number | undefined;
  /** How long it may take to end when its input has ended, before SIGTERM. @default 2_000 */
  readonly closeMs?: number | undefined;
  /** How long it may take after SIGTERM, before SIGKILL. @default 2_000 */
  readonly killMs?: number | undefined;
}

/** Settings of `createStdioTransport`. */
export interface StdioOptions extends SpawnOptions {
  /** @default those that `StdioLimits` names */
  readonly limits?: StdioLimits | undefined;
}

const DEFAULTS = {
  lineBytes: 67_108_864,
  stderrTail: 16_384,
  unsentChars: 67_108_864,
  closeMs: 2_000,
  killMs: 2_000,
} as const satisfies Required<StdioLimits>;

/** All limits, none left out. */
export type FullStdioLimits = { readonly [Name in keyof typeof DEFAULTS]: number };

/** The most a timer takes, which is also more than a buffer can hold. */
const MOST = 2_147_483_647;

/** Fills in what was left out; a limit that is no whole number from 1 to 2,147,483,647 is a mistake. */
export function toStdioLimits(limits: StdioLimits = {}): FullStdioLimits {
  const full: Record<keyof FullStdioLimits, number> = { ...DEFAULTS };
  for (const name of Object.keys(DEFAULTS) as (keyof FullStdioLimits)[]) {
    const value = limits[name] ?? DEFAULTS[name];
    if (!Number.isInteger(value) || value < 1 || value > MOST) {
      throw new TypeError(`The limit ${name} of a stdio server must be a whole number from 1 to ${MOST}.`);
    }
    full[name] = value;
  }
  return full;
}
