import type { Asker } from "../../src/call/index.ts";

/** What a call or a step of a stream comes to. */
export type Outcome =
  | { readonly data: unknown; readonly isError: boolean }
  | { readonly code: string }
  | "done";

/** What one call was told. */
export interface CallPlan {
  readonly timeoutMs: number | undefined;
  readonly attempts: number;
  readonly attemptTimeoutMs: number | undefined;
  readonly signal: number | undefined;
  /** The caller chooses the request id. */
  readonly isNamed: boolean;
  readonly input: string;
}

/** One call as it has to go. */
export interface ModelCall extends CallPlan {
  readonly map: number;
  readonly deadline: number;
  readonly isIdempotent: boolean;
  phase: "starting" | "pending" | "pausing" | "settled";
  requestId: string | undefined;
  asker: Asker | undefined;
  ask: number;
  tried: number;
  /** The number the next try has to carry. */
  runs: number;
  attemptDeadline: number;
  pauseUntil: number;
  progress: number;
  /** What the try before failed with. */
  failure: string | undefined;
  outcome: Outcome | undefined;
}
