import { safeLine } from "../../../core/text/safe-text.ts";
import type { ResponseHead } from "../http-message.ts";

type HeaderFields = ResponseHead["headers"];

/** Gives the first value of a header. */
export function headerOf(fields: HeaderFields, name: string): string | undefined {
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
  return typeof value === "string" ? value : value?.[0];
}

const TOLD =
  /^(?:retry-after|(?:x-)?rate-?limit(?:-[a-z0-9-]{1,60})?|www-authenticate|x-request-id|request-id|x-correlation-id|location|allow)$/;
const MOST_TOLD = 32;
const LONGEST_TOLD = 1_024;

/** Picks the headers that matter to whoever is told of an error. */
export function toldHeaders(fields: HeaderFields): Readonly<Record<string, string>> | undefined {
  const told: [string, string][] = [];
  for (const name of Object.keys(fields)) {
    if (told.length === MOST_TOLD || !TOLD.test(name)) continue;
    const value = fields[name] as string | readonly string[];
    told.push([name, safeLine(typeof value === "string" ? value : value.join(", "), LONGEST_TOLD)]);
  }
  return told.length === 0 ? undefined : Object.fromEntries(told);
}

const LONGEST_WAIT_MS = 365 * 24 * 60 * 60 * 1_000;

/** Reads `retry-after`, in seconds or as a date; milliseconds from `now`. */
export function retryAfterMs(value: string | undefined, now: number): number | undefined {
  if (value === undefined || value.length > 64) return undefined;
  const text = value.trim();
  const isSeconds = /^[0-9]{1,12}(?:\.[0-9]{1,6})?$/.test(text);
  const waited = isSeconds ? Math.ceil(Number(text) * 1_000) : dateOf(text) - now;
  return Number.isFinite(waited) ? Math.min(Math.max(waited, 0), LONGEST_WAIT_MS) : undefined;
}

/** Dates of HTTP alone: the parser would take nearly anything for one. */
function dateOf(text: string): number {
  return /^[A-Za-z]{3,9},? .*[0-9]{2}:[0-9]{2}:[0-9]{2}/.test(text) ? Date.parse(text) : Number.NaN;
}
