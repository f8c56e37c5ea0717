import { checkOption, checkOptionsObject } from "../../core/options/check-options.ts";
import type { Executor } from "../../core/registry/executor.ts";
import type { HttpHandlerLimits, HttpHandlerOptions } from "./http-handler-options.ts";

const DEFAULTS = {
  bodyBytes: 4_194_304,
  batch: 100,
  calls: 10_000,
  timeoutMs: 60_000,
  streams: 1_000,
  streamEvents: 256,
  streamBytes: 1_048_576,
  resumeMs: 30_000,
  idempotencyKeys: 10_000,
  idempotencyBytes: 67_108_864,
  idempotencyMs: 86_400_000,
} as const satisfies Required<HttpHandlerLimits>;

/** The bounds of an HTTP API, every one with a number. */
export type HttpHandlerBounds = Readonly<Record<keyof typeof DEFAULTS, number>>;

const NAMES = Object.keys({
  info: true,
  servers: true,
  basePath: true,
  formats: true,
  examples: true,
  auth: true,
  authenticate: true,
  hosts: true,
  origins: true,
  limits: true,
  docs: true,
  onWarning: true,
} satisfies Record<keyof HttpHandlerOptions, true>);

const BASE_PATH = /^(?:\/[\w.~-]+)+$/;
/** First segments of paths that are served beside those of the operations. */
const RESERVED = ["call", "batch", "health", "ready", "docs", "openapi.json", ".well-known"];
const FORMAT_NAME = /^[a-z0-9][a-z0-9.-]{0,63}$/i;
/** The longest time a timer takes. */
const LONGEST_MS = 2_147_483_647;

/** Throws a `TypeError` for what cannot run operations. */
export function checkExecutor(executor: Executor, taker: string): void {
  const isExecutor = ["execute", "subscribe", "list", "get", "onChange"].every(
    (name) =>
      typeof (executor as unknown as Record<string, unknown> | null | undefined)?.[name] === "function",
  );
  if (!isExecutor) {
    throw new TypeError(`${taker} takes what can run operations first, such as an OperationRegistry.`);
  }
}

/** Throws a `TypeError` for options that cannot work, or are none; `more` are options of whoever passes them on. */
export function checkHandlerOptions(options: HttpHandlerOptions, more: readonly string[] = []): void {
  checkOptionsObject(options, [...NAMES, ...more]);
  const { auth, authenticate, docs, onWarning, formats } = options;
  if (auth !== undefined) checkOptionsObject(auth, ["bearer", "apiKeys"], "auth.");
  for (const name of ["bearer", "apiKeys"] as const) {
    const value = auth?.[name];
    checkOption(`auth.${name}`, value, "an object", typeof value === "object" && value !== null);
  }
  checkOption("authenticate", authenticate, "a function", typeof authenticate === "function");
  checkOption("docs", docs, "true or false", typeof docs === "boolean");
  checkOption("onWarning", onWarning, "a function", typeof onWarning === "function");
  checkBasePath(options.basePath);
  checkOption("formats", formats, "a list of formats", Array.isArray(formats));
  for (const format of formats ?? []) checkFormat(format?.name);
}

function checkBasePath(basePath: unknown): void {
  const isPath =
    typeof basePath === "string" && BASE_PATH.test(basePath) && !/\/\.{1,2}(?:\/|$)/.test(basePath);
  checkOption("basePath", basePath, 'a path such as "/api", without a slash at its end', isPath);
  const [, first = ""] = typeof basePath === "string" ? basePath.split("/") : [];
  if (RESERVED.includes(first)) {
    throw new TypeError(`basePath must not begin with "/${first}", where something else is served.`);
  }
}

function checkFormat(name: unknown): void {
  if (typeof name === "string" && FORMAT_NAME.test(name) && !/^(?:data|envelope)$/i.test(name)) return;
  throw new TypeError('formats must have names that fit a media type, and none of "data" and "envelope".');
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
