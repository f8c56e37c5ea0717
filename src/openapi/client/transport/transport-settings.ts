import { checkDelay, checkOption } from "../../../core/options/check-options.ts";
import {
  checkRate,
  checkRetry,
  type RateOptions,
  RETRY_DEFAULTS,
} from "../../../core/options/shared-options.ts";
import { readPlaces } from "../../../http/address-guard.ts";
import type { TransportLimits, TransportOptions } from "../openapi-options.ts";

/** What a transport is made from. */
export interface CreateTransportOptions extends TransportOptions {
  readonly limits?: TransportLimits | undefined;
  /** Hosts that the user's own options name, as `host:port`: they may be private. */
  readonly trusted: readonly string[];
}

/** The bounds of requests and responses that hold where none are given. */
export const TRANSPORT_LIMITS = {
  responseBytes: 33_554_432,
  decodedRatio: 100,
  headerBytes: 65_536,
  requestBytes: 33_554_432,
  urlCharacters: 32_768,
  eventBytes: 4_194_304,
} as const satisfies Required<TransportLimits>;

/** Options with every default filled in. */
export interface TransportSettings {
  readonly timeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly concurrency: number;
  readonly rate: RateOptions | undefined;
  readonly queue: number;
  /** Attempts, the first included. */
  readonly attempts: number;
  readonly delayMs: number;
  readonly maxDelayMs: number;
  readonly redirects: number;
  readonly responseBytes: number;
  readonly decodedRatio: number;
  readonly headerBytes: number;
  readonly requestBytes: number;
  readonly urlCharacters: number;
}

/** Fills the defaults in. */
export function toTransportSettings(options: CreateTransportOptions): TransportSettings {
  const limits = options.limits ?? {};
  const retry = options.retry === false ? { attempts: 1 } : (options.retry ?? {});
  return {
    timeoutMs: options.timeoutMs ?? 30_000,
    connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
    idleTimeoutMs: options.idleTimeoutMs ?? 300_000,
    concurrency: options.concurrency ?? 64,
    rate: options.rate,
    queue: options.queue ?? 10_000,
    attempts: retry.attempts ?? RETRY_DEFAULTS.attempts,
    delayMs: retry.delayMs ?? RETRY_DEFAULTS.delayMs,
    maxDelayMs: retry.maxDelayMs ?? RETRY_DEFAULTS.maxDelayMs,
    redirects: options.redirects ?? 5,
    responseBytes: limits.responseBytes ?? TRANSPORT_LIMITS.responseBytes,
    decodedRatio: limits.decodedRatio ?? TRANSPORT_LIMITS.decodedRatio,
    headerBytes: limits.headerBytes ?? TRANSPORT_LIMITS.headerBytes,
    requestBytes: limits.requestBytes ?? TRANSPORT_LIMITS.requestBytes,
    urlCharacters: limits.urlCharacters ?? TRANSPORT_LIMITS.urlCharacters,
  };
}

/** The names of the options of a transport. */
export const TRANSPORT_OPTIONS: readonly string[] = Object.keys({
  timeoutMs: true,
  connectTimeoutMs: true,
  idleTimeoutMs: true,
  concurrency: true,
  rate: true,
  queue: true,
  retry: true,
  redirects: true,
  allowPrivate: true,
  allowUndelimited: true,
} satisfies Record<keyof TransportOptions, true>);

/** Throws a `TypeError` that names the option and what it takes where options of a transport cannot work. */
export function checkTransportOptions(
  options: TransportOptions & { readonly limits?: TransportLimits | undefined },
): void {
  const { allowPrivate, allowUndelimited, rate } = options;
  for (const name of ["timeoutMs", "connectTimeoutMs", "idleTimeoutMs"] as const) {
    checkDelay(name, options[name]);
    checkOption(name, options[name], "more than 0", options[name] !== 0);
  }
  checkCount("concurrency", options.concurrency, 1);
  checkCount("queue", options.queue, 0);
  checkCount("redirects", options.redirects, 0);
  checkRate("rate", rate);
  checkRetry("retry", options.retry);
  const hosts = 'true, false or a list of hosts such as "localhost:3000" or "10.0.0.5:*"';
  const isHosts = typeof allowPrivate === "boolean" || isNames(allowPrivate);
  checkOption("allowPrivate", allowPrivate, hosts, isHosts);
  checkOption("allowUndelimited", allowUndelimited, "true or false", typeof allowUndelimited === "boolean");
  checkLimits(options.limits);
}

function checkLimits(limits: TransportLimits | undefined): void {
  if (limits === undefined) return;
  checkOption("limits", limits, "an object", typeof limits === "object" && limits !== null);
  for (const name of Object.keys(TRANSPORT_LIMITS) as (keyof TransportLimits)[]) {
    const { [name]: value } = limits;
    const isRatio = typeof value === "number" && value >= 1;
    if (name === "decodedRatio") checkOption(`limits.${name}`, value, "a number, 1 or more", isRatio);
    else checkCount(`limits.${name}`, value, 1);
  }
}

function checkCount(name: string, value: unknown, least: number): void {
  const isRight = Number.isSafeInteger(value) && (value as number) >= least;
  checkOption(name, value, `a whole number, ${least} or more`, isRight);
}

function isNames(value: unknown): boolean {
  return (
    Array.isArray(value) && value.every((name) => typeof name === "string" && readPlaces(name) !== undefined)
  );
}
