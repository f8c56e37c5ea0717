import { errorTraits, isErrorCode } from "../core/errors/error-codes.ts";
import type { OperationStats, ServiceFacts } from "./bus.ts";

interface LiveStats {
  calls: number;
  errors: number;
  busyMs: number;
  lastError: string | undefined;
}

/** How calls of a service went, by operation: of those it offers, so that callers cannot make up more. */
export class ServiceStats implements ServiceFacts {
  readonly #operations = new Map<string, LiveStats>();

  /** Counts calls of these operations from now on, and forgets others. */
  keep(operationIds: ReadonlySet<string>): void {
    for (const id of this.#operations.keys()) if (!operationIds.has(id)) this.#operations.delete(id);
    for (const id of operationIds) {
      if (this.#operations.has(id)) continue;
      this.#operations.set(id, { calls: 0, errors: 0, busyMs: 0, lastError: undefined });
    }
  }

  /** Counts a call that has ended: with the code of its error, unless it went well. */
  add(operationId: string, durationMs: number, code: string | undefined): void {
    const stats = this.#operations.get(operationId);
    if (stats === undefined) return;
    stats.calls++;
    stats.busyMs += durationMs;
    if (code === undefined) return;
    stats.errors++;
    stats.lastError = code;
  }

  statsOf(operationId: string): OperationStats | undefined {
    const stats = this.#operations.get(operationId);
    if (stats === undefined) return undefined;
    const { lastError, ...counts } = stats;
    return { ...counts, ...(lastError !== undefined && { lastError: sentenceOf(lastError) }) };
  }
}

/** What was thrown may hold anything, and tools make up codes of their own: the sentence is the one of the table. */
function sentenceOf(code: string): string {
  return isErrorCode(code) ? `${code}: ${errorTraits(code).message}` : "The operation reported an error.";
}
