import type { ResultTemplate } from "./result-template.ts";

/** How calls of an operation are made, and who may make them. */
export interface OperationPolicy {
  /** False takes it away: it is neither listed nor callable. @default true */
  readonly enabled?: boolean | undefined;
  /** Scopes a caller must hold, all of them, besides what the operation asks for. @default none */
  readonly scopes?: readonly string[] | undefined;
  /** The longest a call may take, attempts and waiting included, in milliseconds. @default none of the gateway's own */
  readonly timeoutMs?: number | undefined;
  /** Tries calls again that failed with a retryable error; only those of read-only or idempotent operations. @default one attempt */
  readonly retries?: RetryPolicy | undefined;
  /** Calls in a period; more wait their turn. @default as many as there are */
  readonly rate?: { readonly calls: number; readonly perMs: number } | undefined;
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
}

/** How often and when a call is tried again. */
export interface RetryPolicy {
  /** Attempts, the first included. @default 3 */
  readonly attempts?: number | undefined;
  /** Milliseconds before the second attempt; doubled for each further one, and varied. @default 200 */
  readonly delayMs?: number | undefined;
  /** @default 10_000 */
  readonly maxDelayMs?: number | undefined;
}

/** The policy of a whole source: rate and concurrency are counted over all its operations. */
export interface SourcePolicy extends OperationPolicy {
  /** Names of operations, as patterns without the namespace; others are left out. @default all */
  readonly allow?: readonly string[] | undefined;
  /** Names of operations that are left out, as patterns; wins over `allow`. @default none */
  readonly deny?: readonly string[] | undefined;
}
