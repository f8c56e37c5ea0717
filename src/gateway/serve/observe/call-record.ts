import type { OperationType } from "../../../core/operation/operation-types.ts";

/** Where a call came in. */
export type CallEntry = "mcp" | "http" | "bus" | "stdio" | "cli" | "inspect";

/** How a call ended: it gave a result, ran and said no, or never ran or broke. */
export type CallOutcome = "ok" | "tool_error" | "call_error";

/** What is known of a call when it begins. */
export interface CallHead {
  readonly requestId: string;
  /** As the caller asked for it, at most 200 characters of it. */
  readonly operation: string;
  /** Whether there is such an operation; a name that anybody made up is nothing to count by. */
  readonly isKnown: boolean;
  /** The name of the source it comes from. */
  readonly source?: string;
  readonly type?: OperationType;
  /** Nothing for an anonymous caller. */
  readonly subject?: string;
  readonly entry?: CallEntry;
}

/** What is told about one call that has ended; never what went in or came out. */
export interface CallRecord extends CallHead {
  readonly outcome: CallOutcome;
  /** Of an error. */
  readonly code?: string;
  readonly durationMs: number;
  /** How often it was tried, where that was more than once. */
  readonly attempts?: number;
  readonly cached?: true;
  readonly shared?: true;
  readonly repeated?: true;
  /** Milliseconds it waited for its turn. */
  readonly waitedMs?: number;
  /** The call whose handler made this one. */
  readonly parent?: string;
  /** Values that a subscription gave. */
  readonly values?: number;
}
