import { checkDelay, checkOption } from "../../core/options/check-options.ts";
import {
  checkRate,
  checkRetry,
  type RateOptions,
  type RetryOptions,
} from "../../core/options/shared-options.ts";
import { type ApprovePolicy, checkApprove } from "../approvals/approve-policy.ts";
import type { GatewayConfig, GatewayLimits } from "../config/gateway-config.ts";
import { sourceNames } from "../config/loaded-config.ts";
import { checkGuard, type GuardPolicy } from "../guard/result-guard.ts";
import type { Source } from "../sources/source.ts";
import type { PolicyRules } from "./policies.ts";
import { compileTemplate, type ResultTemplate } from "./result-template.ts";

/** How calls of an operation are made, and who may make them. */
export interface OperationPolicy {
  /** False takes it away: it is neither listed nor callable. @default true */
  readonly enabled?: boolean | undefined;
  /** Scopes a caller must hold, all of them, besides what the operation asks for. @default none */
  readonly scopes?: readonly string[] | undefined;
  /** The longest a call may take, attempts and waiting included, in milliseconds. @default none of the gateway's own */
  readonly timeoutMs?: number | undefined;
  /** Tries calls again that failed with a retryable error; only those of read-only or idempotent operations. @default one attempt */
  readonly retry?: RetryOptions | undefined;
  /** Calls in a period; more wait their turn. @default as many as there are */
  readonly rate?: RateOptions | undefined;
  /** Calls that run at a time; more wait their turn. @default as many as there are */
  readonly concurrency?: number | undefined;
  /** Keeps ok results of read-only operations for the same caller and input, in milliseconds. @default 0 */
  readonly cacheMs?: number | undefined;
  /** Calls of read-only operations by the same caller with the same input share one run. @default false */
  readonly singleFlight?: boolean | undefined;
  /** Characters of a result, written as JSON, that are sent whole over MCP; longer ones become a preview and a link. @default 200_000 */
  readonly resultBudget?: number | undefined;
  /** What is said about ok results where the operation says nothing: a summary, next steps, links, from templates over the data. @default nothing */
  readonly render?: ResultTemplate | undefined;
  /** What is looked for in results, and what is done where it is found. @default nothing */
  readonly guard?: GuardPolicy | undefined;
  /** Which calls wait until a person has approved them, who may do that, and where they are asked. @default none waits */
  readonly approve?: ApprovePolicy | undefined;
}

/** The policy of a whole source: rate and concurrency are counted over all its operations. */
export interface SourcePolicy extends OperationPolicy {
  /** Names of operations, as patterns without the namespace; others are left out. @default all */
  readonly allow?: readonly string[] | undefined;
  /** Names of operations that are left out, as patterns; wins over `allow`. @default none */
  readonly deny?: readonly string[] | undefined;
}

/** The rules of a config for the sources that were made of it. */
export function toPolicyRules(
  config: GatewayConfig,
  sources: readonly Source[],
  sourceOf: (operationId: string) => string | undefined,
): PolicyRules {
  const policies = new Map<string, SourcePolicy | undefined>();
  const names = sourceNames(config);
  for (const kind of ["mcpServers", "openapi"] as const) {
    for (const [key, { policy }] of Object.entries(config[kind] ?? {})) {
      policies.set(names.get(`${kind}.${key}`) ?? key, policy);
    }
  }
  for (const { kind, name } of sources) if (kind === "bus") policies.set(name, config.bus?.policy);
  return { sources: policies, sourceOf, policies: config.policies };
}

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

/** Throws a `TypeError` that names what no call could be made under; configs are checked, with lines, before. */
export function checkPolicy(what: string, policy: OperationPolicy | undefined): void {
  if (policy === undefined) return;
  const { timeoutMs, cacheMs, concurrency, rate, retry, resultBudget, render, guard, approve } = policy;
  checkDelay(`${what}: timeoutMs`, timeoutMs);
  checkDelay(`${what}: cacheMs`, cacheMs);
  checkCount(`${what}: concurrency`, concurrency);
  checkCount(`${what}: resultBudget`, resultBudget);
  if (render !== undefined) compileTemplate(`${what}: render`, render);
  checkRate(`${what}: rate`, rate);
  checkRetry(`${what}: retry`, retry);
  if (guard !== undefined) checkGuard(`${what}: guard`, guard);
  if (approve !== undefined) checkApprove(`${what}: approve`, approve);
}

function checkCount(name: string, value: unknown): void {
  checkOption(name, value, "a whole number, 1 or more", isCount(value));
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 1;
}
