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
  readonly rate: { readonly requests: number; readonly perMs: number } | undefined;
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
  const retries = options.retries === false ? { attempts: 1 } : (options.retries ?? {});
  return {
    timeoutMs: options.timeoutMs ?? 30_000,
    connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
    idleTimeoutMs: options.idleTimeoutMs ?? 300_000,
    concurrency: options.concurrency ?? 64,
    rate: options.rate,
    queue: options.queue ?? 10_000,
    attempts: retries.attempts ?? 3,
    delayMs: retries.delayMs ?? 200,
    maxDelayMs: retries.maxDelayMs ?? 20_000,
    redirects: options.redirects ?? 5,
    responseBytes: limits.responseBytes ?? TRANSPORT_LIMITS.responseBytes,
    decodedRatio: limits.decodedRatio ?? TRANSPORT_LIMITS.decodedRatio,
    headerBytes: limits.headerBytes ?? TRANSPORT_LIMITS.headerBytes,
    requestBytes: limits.requestBytes ?? TRANSPORT_LIMITS.requestBytes,
    urlCharacters: limits.urlCharacters ?? TRANSPORT_LIMITS.urlCharacters,
  };
}
