/** What happens at the gateway while the page is open. */
export type LiveEvent =
  /** The first event: what is remembered, oldest first, is told in the `calls` events that follow. */
  | { readonly type: "begin"; readonly running: number }
  /** Calls that began or ended since the last event, in the order of `seq`; of one that did both, its end. */
  | {
      readonly type: "calls";
      readonly rows: readonly CallRow[];
      /** Calls that run now. */
      readonly running: number;
      /** Calls that were left out because the page did not keep up, in all. */
      readonly dropped: number;
    }
  /** Sources came, went or changed: ask for them again. */
  | { readonly type: "sources" }
  /** Operations came, went or changed: ask for them again. */
  | { readonly type: "operations"; readonly revision: number }
  /** Nothing; says that the connection is alive. */
  | { readonly type: "ping" };

/** One call in the list; it is told once when it begins, without an outcome, and once when it has ended. */
export interface CallRow {
  /** Counts the calls of this gateway in the order they began. */
  readonly seq: number;
  readonly requestId: string;
  readonly operation: string;
  /** The name of the source. */
  readonly source?: string;
  readonly type?: "query" | "mutation" | "subscription";
  /** Who made it; nothing for an anonymous caller. */
  readonly subject?: string;
  /** Where it came in; nothing for calls that modules make by themselves. */
  readonly entry?: "mcp" | "http" | "bus" | "stdio" | "cli" | "inspect";
  /** Unix epoch milliseconds. */
  readonly startedAt: number;
  /** Absent while it runs. */
  readonly outcome?: "ok" | "tool_error" | "call_error";
  /** Of an error; `ABORTED` of a subscription that its reader left, too. */
  readonly code?: string;
  readonly durationMs?: number;
  /** How often it was tried, where that was more than once. */
  readonly attempts?: number;
  readonly cached?: true;
  readonly shared?: true;
  readonly repeated?: true;
  /** Milliseconds it waited for its turn under a limit. */
  readonly waitedMs?: number;
  /** `seq` of the call whose handler made this one. */
  readonly parent?: number;
  /** Values that a subscription gave. */
  readonly values?: number;
}
