/** The sources of the gateway, in the order of its config. */
export interface SourcesAnswer {
  readonly sources: readonly SourceView[];
  /** What crossed the bus, by the end that the gateway had; for operators, once something did. */
  readonly bus?: readonly BusTraffic[];
}

/** Calls on the bus at one end of it, since the inspector is there. */
export interface BusTraffic {
  /** The gateway asked others, or answered them. */
  readonly end: "caller" | "handler";
  /** Calls that have ended. */
  readonly calls: number;
  readonly errors: number;
  /** Values of subscriptions. */
  readonly values: number;
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

/** One source; who is no operator is told neither `target` nor what was left out, and a reason in our words. */
export interface SourceView {
  readonly name: string;
  readonly kind: "local" | "mcp" | "openapi" | "bus";
  /** The command, the address or the files. */
  readonly target?: string;
  readonly state:
    | { readonly status: "connecting" | "disabled" | "closed" }
    | { readonly status: "up"; readonly since: number }
    | {
        readonly status: "down";
        readonly since: number;
        readonly reason: string;
        readonly retryAt?: number;
      };
  readonly operations: number;
  /** What could not be imported, and why. */
  readonly unusable: readonly { readonly name: string; readonly reason: string }[];
  /** What was taken over less than whole. */
  readonly notes: readonly { readonly name: string; readonly note: string }[];
  /** Milliseconds that the last successful start took. */
  readonly startMs?: number;
  /** The revision of MCP in use. */
  readonly protocol?: string;
  readonly title?: string;
  readonly version?: string;
  readonly lock?: LockView;
  /** How its calls went, as far as they are remembered. */
  readonly calls: CallStats;
}

/** How some calls went; milliseconds. */
export interface CallStats {
  readonly count: number;
  readonly errors: number;
  readonly p50?: number;
  readonly p95?: number;
  readonly p99?: number;
}

/** How the tools of a server compare with those that were approved; absent where the source is not locked. */
export interface LockView {
  readonly tools: readonly {
    readonly tool: string;
    /** Tools that are new or changed are refused until they are approved. */
    readonly state: "new" | "changed";
    /** Where it differs, what hides made visible. */
    readonly diff: readonly { readonly path: string; readonly before?: string; readonly after?: string }[];
  }[];
}

/** Tries a source at once, or lists again what is up. Operators only. */
export interface RetryAsk {
  readonly source: string;
}

/** What became of it. */
export interface RetryAnswer {
  readonly source: SourceView;
  /** Milliseconds it took. */
  readonly tookMs: number;
}
