import type { GatewayLimits } from "../config/gateway-config.ts";

/** Bounds of what policies keep and count. */
export interface PolicyLimits {
  calls: number;
  queue: number;
  cacheEntries: number;
  cacheCharacters: number;
  idempotencyKeys: number;
  readonly idempotencyBytes: number;
  readonly idempotencyMs: number;
}

const DAY_MS = 86_400_000;

/** Fills in what is not said. */
export function toPolicyLimits(limits: GatewayLimits = {}): PolicyLimits {
  return {
    calls: limits.calls ?? 10_000,
    queue: limits.queue ?? 10_000,
    cacheEntries: limits.cacheEntries ?? 10_000,
    cacheCharacters: limits.cacheCharacters ?? 67_108_864,
    idempotencyKeys: limits.idempotencyKeys ?? 10_000,
    idempotencyBytes: 67_108_864,
    idempotencyMs: DAY_MS,
  };
}
