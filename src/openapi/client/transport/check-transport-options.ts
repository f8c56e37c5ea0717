import { checkDelay, checkOption, checkOptionsObject } from "../../../core/options/check-options.ts";
import type { RetryOptions, TransportLimits, TransportOptions } from "../openapi-options.ts";
import { readPlaces } from "./address-guard.ts";
import { TRANSPORT_LIMITS } from "./transport-settings.ts";

/** The names of the options of a transport. */
export const TRANSPORT_OPTIONS: readonly string[] = Object.keys({
  timeoutMs: true,
  connectTimeoutMs: true,
  idleTimeoutMs: true,
  concurrency: true,
  rate: true,
  queue: true,
  retries: true,
  redirects: true,
  allowPrivate: true,
  allowUndelimited: true,
} satisfies Record<keyof TransportOptions, true>);

const RETRIES = Object.keys({
  attempts: true,
  delayMs: true,
  maxDelayMs: true,
} satisfies Record<keyof RetryOptions, true>);

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
  if (rate !== undefined) {
    checkOptionsObject(rate, ["requests", "perMs"], "rate.");
    checkCount("rate.requests", rate.requests ?? null, 1);
    checkPositive("rate.perMs", rate.perMs ?? null, "a number of milliseconds, more than 0");
  }
  checkRetries(options.retries);
  const hosts = 'true, false or a list of hosts such as "localhost:3000" or "10.0.0.5:*"';
  const isHosts = typeof allowPrivate === "boolean" || isNames(allowPrivate);
  checkOption("allowPrivate", allowPrivate, hosts, isHosts);
  checkOption("allowUndelimited", allowUndelimited, "true or false", typeof allowUndelimited === "boolean");
  checkLimits(options.limits);
}

function checkRetries(retries: RetryOptions | false | undefined): void {
  if (retries === undefined || retries === false) return;
  checkOptionsObject(retries, RETRIES, "retries.");
  checkCount("retries.attempts", retries.attempts, 1);
  checkDelay("retries.delayMs", retries.delayMs);
  checkDelay("retries.maxDelayMs", retries.maxDelayMs);
}

function checkLimits(limits: TransportLimits | undefined): void {
  if (limits === undefined) return;
  checkOption("limits", limits, "an object", typeof limits === "object" && limits !== null);
  for (const name of Object.keys(TRANSPORT_LIMITS) as (keyof TransportLimits)[]) {
    if (name === "decodedRatio") checkPositive(`limits.${name}`, limits[name], "a number, 1 or more", 1);
    else checkCount(`limits.${name}`, limits[name], 1);
  }
}

function checkCount(name: string, value: unknown, least: number): void {
  const isRight = Number.isSafeInteger(value) && (value as number) >= least;
  checkOption(name, value, `a whole number, ${least} or more`, isRight);
}

function checkPositive(name: string, value: unknown, wanted: string, least = Number.MIN_VALUE): void {
  checkOption(name, value, wanted, typeof value === "number" && value >= least);
}

function isNames(value: unknown): boolean {
  return (
    Array.isArray(value) && value.every((name) => typeof name === "string" && readPlaces(name) !== undefined)
  );
}
