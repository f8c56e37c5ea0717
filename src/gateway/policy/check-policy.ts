import { checkDelay, checkOption } from "../../core/options/check-options.ts";
import type { OperationPolicy } from "./policy.ts";
import { compileTemplate } from "./result-template.ts";

/** Throws a `TypeError` that names what no call could be made under; configs are checked, with lines, before. */
export function checkPolicy(what: string, policy: OperationPolicy | undefined): void {
  if (policy === undefined) return;
  const { timeoutMs, cacheMs, concurrency, rate, retries, resultBudget, render } = policy;
  checkDelay(`${what}: timeoutMs`, timeoutMs);
  checkDelay(`${what}: cacheMs`, cacheMs);
  checkCount(`${what}: concurrency`, concurrency);
  checkCount(`${what}: resultBudget`, resultBudget);
  if (render !== undefined) compileTemplate(`${what}: render`, render);
  if (rate !== undefined) {
    const { calls, perMs } = rate;
    checkOption(`${what}: rate.calls`, calls ?? null, "a whole number, 1 or more", isCount(calls));
    const isPeriod = typeof perMs === "number" && perMs > 0 && Number.isFinite(perMs);
    checkOption(`${what}: rate.perMs`, perMs ?? null, "a number of milliseconds, more than 0", isPeriod);
  }
  checkCount(`${what}: retries.attempts`, retries?.attempts);
  checkDelay(`${what}: retries.delayMs`, retries?.delayMs);
  checkDelay(`${what}: retries.maxDelayMs`, retries?.maxDelayMs);
}

function checkCount(name: string, value: unknown): void {
  checkOption(name, value, "a whole number, 1 or more", isCount(value));
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 1;
}
