import { checkOption, checkOptionsObject } from "../../core/options/check-options.ts";
import type { HttpAuthenticationOptions } from "../../http/authentication.ts";
import type { HostGuardOptions } from "../../http/host-guard.ts";
import type { SessionEventLimits } from "./http-session-events.ts";
import { showBound } from "./served-tools.ts";

/** Bounds of an MCP endpoint over HTTP. */
export interface McpHandlerLimits extends SessionEventLimits {
  /** Bytes of one posted body. @default 4_194_304 */
  readonly bodyBytes?: number | undefined;
  /**
   * Requests that are answered at a time, or whose answers their clients have not read yet, and as many again whose bodies are being read;
   * one more is refused. While others ask, one caller has three quarters. @default 10_000
   */
  readonly calls?: number | undefined;
  /** Sessions of 2025 clients; those that have been idle for longest make room. @default 1_000 */
  readonly sessions?: number | undefined;
  /** How long a session is kept when nothing runs in it and no stream is open, in milliseconds. @default 1_800_000 */
  readonly sessionIdleMs?: number | undefined;
  /** Requests of one session that run at a time. @default 1_000 */
  readonly sessionRequests?: number | undefined;
  /** Streams of changes (`subscriptions/listen`) that 2026-07-28 clients hold open; a caller with an identity has a quarter. @default 1_000 */
  readonly subscriptions?: number | undefined;
  /** Bytes a reader of a stream may be behind when more is to be sent. @default 4_194_304 */
  readonly streamBytes?: number | undefined;
}

/** How an MCP endpoint over HTTP is reached, by whom, and within which bounds. */
export interface McpHandlerOptions extends HostGuardOptions, HttpAuthenticationOptions, McpHandlerLimits {
  /** Hears of faults of this side, which clients are told nothing about. @default console.warn */
  readonly onWarning?: ((message: string, cause?: unknown) => void) | undefined;
}

const DEFAULTS = {
  bodyBytes: 4_194_304,
  calls: 10_000,
  sessions: 1_000,
  sessionIdleMs: 1_800_000,
  sessionRequests: 1_000,
  subscriptions: 1_000,
  streamBytes: 4_194_304,
} as const satisfies Required<Omit<McpHandlerLimits, keyof SessionEventLimits>>;

const NAMES = Object.keys({
  ...DEFAULTS,
  events: true,
  eventBytes: true,
  allEventBytes: true,
  hosts: true,
  origins: true,
  auth: true,
  authenticate: true,
  onWarning: true,
} satisfies Record<keyof McpHandlerOptions, unknown>);

/** Throws a `TypeError` for options that cannot work, or are none; `more` are options of whoever passes them on. */
export function checkHandlerOptions(options: McpHandlerOptions, more: readonly string[] = []): void {
  checkOptionsObject(options, [...NAMES, ...more]);
  const { auth, authenticate, onWarning } = options;
  const isAuth = typeof auth === "object" && auth !== null;
  checkOption("auth", auth, "an object with an audience and keys", isAuth);
  checkOption("authenticate", authenticate, "a function", typeof authenticate === "function");
  checkOption("onWarning", onWarning, "a function", typeof onWarning === "function");
}

/** Reads the bounds of a handler; one that is not a whole number above 0 is a `TypeError`. */
export function readHandlerBounds(
  options: McpHandlerLimits,
): Readonly<Record<keyof typeof DEFAULTS, number>> {
  const bounds: Record<keyof typeof DEFAULTS, number> = { ...DEFAULTS };
  for (const name of Object.keys(DEFAULTS) as (keyof typeof DEFAULTS)[]) {
    const value = options[name] ?? DEFAULTS[name];
    if (!Number.isSafeInteger(value) || value < 1) {
      throw new TypeError(`${name} must be a whole number, 1 or more; it is ${showBound(value)}.`);
    }
    bounds[name] = value;
  }
  return bounds;
}
