import { checkOption, checkOptionsObject } from "../../core/options/check-options.ts";
import { checkDescribedAuth, checkDocumentOptions, DOCUMENT_OPTIONS } from "./check-document-options.ts";
import type { HttpHandlerLimits, HttpHandlerOptions, ToOpenApiOptions } from "./http-handler-options.ts";

const DEFAULTS = {
  bodyBytes: 4_194_304,
  batch: 100,
  calls: 10_000,
  timeoutMs: 60_000,
  streams: 1_000,
  streamEvents: 256,
  streamBytes: 1_048_576,
  allStreamBytes: 67_108_864,
  resumeMs: 30_000,
  idempotencyKeys: 10_000,
  idempotencyBytes: 67_108_864,
  idempotencyMs: 86_400_000,
} as const satisfies Required<HttpHandlerLimits>;

/** The bounds of an HTTP API, every one with a number. */
export type HttpHandlerBounds = Readonly<Record<keyof typeof DEFAULTS, number>>;

const NAMES = [
  ...DOCUMENT_OPTIONS,
  ...Object.keys({
    auth: true,
    authenticate: true,
    isCurrent: true,
    onReplay: true,
    hosts: true,
    origins: true,
    limits: true,
    docs: true,
    formatOf: true,
    explainMissing: true,
    describedAuth: true,
  } satisfies Record<Exclude<keyof HttpHandlerOptions, keyof ToOpenApiOptions> | "auth", true>),
];

/** The longest time a timer takes. */
const LONGEST_MS = 2_147_483_647;

/** Throws a `TypeError` for options that cannot work, or are none; `more` are options of whoever passes them on. */
export function checkHandlerOptions(options: HttpHandlerOptions, more: readonly string[] = []): void {
  if (typeof options === "object" && options !== null && "cors" in options) {
    throw new TypeError('There is no option "cors": name the origins of pages that may call in "origins".');
  }
  checkOptionsObject(options, [...NAMES, ...more]);
  checkDocumentOptions(options);
  const { auth, authenticate, docs } = options;
  if (auth !== undefined) checkOptionsObject(auth, ["bearer", "apiKeys"], "auth.");
  for (const name of ["bearer", "apiKeys"] as const) {
    const value = auth?.[name];
    checkOption(`auth.${name}`, value, "an object", typeof value === "object" && value !== null);
  }
  checkOption("authenticate", authenticate, "a function", typeof authenticate === "function");
  for (const name of ["isCurrent", "onReplay", "formatOf", "explainMissing"] as const) {
    checkOption(name, options[name], "a function", typeof options[name] === "function");
  }
  const { describedAuth } = options;
  if (describedAuth !== undefined) checkDescribedAuth(describedAuth, "describedAuth");
  checkOption("docs", docs, "true or false", typeof docs === "boolean");
}

/** Reads the bounds of a handler; one that is not a whole number above 0 is a `TypeError`. */
export function readHandlerBounds(limits: HttpHandlerLimits = {}): HttpHandlerBounds {
  checkOptionsObject(limits, Object.keys(DEFAULTS), "limits.");
  const bounds: Record<keyof typeof DEFAULTS, number> = { ...DEFAULTS };
  for (const name of Object.keys(DEFAULTS) as (keyof typeof DEFAULTS)[]) {
    const value = limits[name] ?? DEFAULTS[name];
    const most = name.endsWith("Ms") ? LONGEST_MS : Number.MAX_SAFE_INTEGER;
    const isRight = Number.isSafeInteger(value) && value >= 1 && value <= most;
    checkOption(`limits.${name}`, value, `a whole number from 1 to ${most}`, isRight);
    bounds[name] = value;
  }
  return bounds;
}
