import type { FormatName } from "../core/result/tool-result.ts";

/**
 * What the inspector's page and its server say to each other, below `/inspect/api/`. Types alone: both sides import them, and nothing
 * else of each other. Every text in here may come from a tool, and is shown as text.
 *
 *   GET  hello                        → Hello; 401 where a token is wanted
 *   GET  live                         → a line of JSON for each LiveEvent, for as long as the page is open
 *   GET  sources                      → SourcesAnswer
 *   POST sources/retry     RetryAsk   → RetryAnswer
 *   GET  operations                   → OperationsAnswer
 *   GET  operation?id=…               → OperationView
 *   POST validate          RunAsk     → ValidateAnswer
 *   POST run               RunAsk     → a line of JSON for each RunEvent; whoever leaves cancels the call
 *   POST answer            AnswerAsk  → {}
 *   GET  call?seq=…                   → CallView
 *   POST formats           FormatsAsk → FormatsAnswer
 *   POST decode            DecodeAsk  → DecodeAnswer
 *
 * What is refused or fails is a `Failure` with the status of its code.
 */

export type { FormatName };

/** Why a request was not answered. */
export interface Failure {
  readonly error: CallFailure;
}

/** A call that never ran or broke, or a request of the page that was refused. */
export interface CallFailure {
  readonly code: string;
  readonly message: string;
  readonly retryable?: boolean;
  readonly correctable?: boolean;
  readonly details?: unknown;
}

/** Whom the page talks to, and what it may see there. */
export interface Hello {
  /** What the gateway calls itself. */
  readonly name: string;
  /** Of Waybill. */
  readonly version: string;
  /** Whether callers have to say who they are. */
  readonly isAuthOn: boolean;
  /** Who is looking; nothing for an anonymous caller. */
  readonly subject?: string;
  /** Whether calls of others, and all about sources, are shown; else only what the caller may call and has called. */
  readonly isOperator: boolean;
  /** Paths at the gateway's own address, as far as they are served. */
  readonly places: {
    readonly mcp?: string;
    readonly api?: string;
    readonly document?: string;
    readonly docs?: string;
    readonly metrics?: string;
  };
  /** What is remembered of calls. */
  readonly kept: {
    readonly calls: number;
    readonly characters: number;
    /** Inputs and results that are longer are not kept. */
    readonly charactersEach: number;
  };
  /** How Waybill is started in a shell, such as `npx waybill`, with the flags that name what is mounted here; those are for operators. */
  readonly command: { readonly words: string; readonly flags: string };
}

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
  /** Of an error. */
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

/** All that is remembered of one call. */
export interface CallView {
  readonly row: CallRow;
  readonly input: Kept;
  /** One for a call that returned; the last ones of a subscription. */
  readonly results: readonly KeptResult[];
  /** How many earlier values of a subscription are not kept. */
  readonly earlier: number;
  readonly error?: CallFailure;
  /** The whole family, as far as it is remembered: the call nobody here made, and all below it, by `seq`. */
  readonly family: readonly CallRow[];
}

/** A value that was kept, or why it was not. */
export type Kept = { readonly value: unknown } | { readonly omitted: KeptReason };

/** Why a value was not kept: longer than is kept, pushed out by later ones, not JSON, or there was none. */
export type KeptReason = "too-long" | "forgotten" | "not-json" | "none";

/** A result that was kept, or why it was not. */
export type KeptResult = ResultView | { readonly omitted: KeptReason };

/** One result, from all sides. */
export interface ResultView {
  readonly envelope: EnvelopeView;
  /** The data before it was normalised, where that is something else. */
  readonly rawData?: unknown;
}

/** An envelope as JSON; the members of `meta` depend on its source (see the types of the package). */
export interface EnvelopeView {
  readonly data: unknown;
  readonly meta: { readonly source: "local" | "http" | "mcp"; readonly [member: string]: unknown };
}

/** The sources of the gateway, in the order of its config. */
export interface SourcesAnswer {
  readonly sources: readonly SourceView[];
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

/** The operations this caller may call, by id. */
export interface OperationsAnswer {
  /** Counts changes. */
  readonly revision: number;
  readonly operations: readonly OperationRow[];
}

/** One operation in the list. */
export interface OperationRow {
  readonly id: string;
  /** The name of the source. */
  readonly source: string;
  readonly type: "query" | "mutation" | "subscription";
  readonly title?: string;
  /** The beginning of the description, in one line. */
  readonly summary: string;
  readonly destructive?: true;
}

/** All that is known of an operation. */
export interface OperationView {
  readonly id: string;
  readonly namespace: string;
  readonly name: string;
  readonly version: string;
  readonly type: "query" | "mutation" | "subscription";
  readonly source?: string;
  readonly title?: string;
  readonly description: string;
  readonly tags?: readonly string[];
  readonly annotations?: {
    readonly readOnly?: boolean;
    readonly destructive?: boolean;
    readonly idempotent?: boolean;
    readonly openWorld?: boolean;
  };
  /** Who may call it; everybody when absent. */
  readonly access?: {
    readonly scopes?: { readonly allOf?: readonly string[]; readonly anyOf?: readonly string[] };
    readonly resource?: unknown;
  };
  readonly tier?: string;
  readonly features?: readonly unknown[];
  /** JSON Schema; anything goes when absent. */
  readonly inputSchema?: JsonSchemaView;
  readonly outputSchema?: JsonSchemaView;
  readonly errors?: readonly {
    readonly code: string;
    readonly description?: string;
    readonly httpStatus?: number;
  }[];
  /** An input its schema takes, where one was found. */
  readonly sample?: unknown;
  /** How it is called over HTTP, where it is served there. */
  readonly http?: { readonly method: string; readonly path: string };
  /** What it is called over MCP, where it is served there. */
  readonly tool?: string;
}

/** A JSON Schema that is an object. */
export type JsonSchemaView = Readonly<Record<string, unknown>>;

/** A call of an operation. */
export interface RunAsk {
  readonly operation: string;
  /** Left out where there is none. */
  readonly input?: unknown;
  /** @default the gateway's own limit */
  readonly timeoutMs?: number;
}

/** What becomes of a call; the last event is `end` or `error`. */
export type RunEvent =
  | { readonly type: "started"; readonly requestId: string; readonly seq: number }
  /** In the words of MCP (`progress`, `total`, `message`) where they are used. */
  | { readonly type: "progress"; readonly value: unknown }
  | { readonly type: "log"; readonly level: string; readonly message: string; readonly data?: unknown }
  /** A question for the person; it is answered with `answer`, under its key. */
  | { readonly type: "ask"; readonly key: string; readonly question: Question }
  | { readonly type: "result"; readonly result: ResultView }
  /** A result that is not sent: with how many characters it has, about, where it is longer than the server sends to pages. */
  | { readonly type: "result-omitted"; readonly reason: KeptReason; readonly characters?: number }
  | { readonly type: "error"; readonly error: CallFailure; readonly durationMs: number }
  | { readonly type: "end"; readonly durationMs: number; readonly values: number };

/** What a handler asks: a form to fill in, or an address to visit. */
export type Question =
  | { readonly mode: "form"; readonly message: string; readonly schema: JsonSchemaView }
  | { readonly mode: "url"; readonly message: string; readonly url: string };

/** An answer to a question. */
export interface AnswerAsk {
  readonly requestId: string;
  readonly key: string;
  readonly action: "accept" | "decline" | "cancel";
  readonly content?: Readonly<Record<string, unknown>>;
}

/** Where an input misses the schema of its operation; none when it fits. */
export interface ValidateAnswer {
  readonly issues: readonly IssueView[];
}

/** One way a value misses its schema. */
export interface IssueView {
  /** JSON pointer into the value; `""` is the value itself. */
  readonly pointer: string;
  readonly expected: string;
  readonly found: string;
}

/** Asks how a result reads in each format. */
export interface FormatsAsk {
  readonly envelope: EnvelopeView;
  /** The operation that answered. @default none */
  readonly operation?: string;
}

/** How it reads in each. */
export interface FormatsAnswer {
  readonly formats: readonly FormatView[];
}

/** A result in one format, and what is lost in it. */
export interface FormatView {
  readonly format: FormatName;
  /** As it goes out; absent where the format cannot hold the result. */
  readonly encoded?: unknown;
  /** Why it cannot. */
  readonly refused?: string;
  /** Of the encoded text, in UTF-8. */
  readonly bytes?: number;
  /** JSON pointers into the canonical result. */
  readonly losses: readonly string[];
}

/** A text somebody pasted. */
export interface DecodeAsk {
  readonly text: string;
}

/** The results in it. */
export interface DecodeAnswer {
  readonly results: readonly DecodedView[];
}

/** What one result turned out to be. */
export interface DecodedView {
  /** The format it is in, or that more than one fits. */
  readonly format: FormatName | "json-rpc-error" | "ambiguous";
  /** Those that fit, when more than one does. */
  readonly candidates?: readonly { readonly format: FormatName; readonly why?: string }[];
  /** How it was wrapped in the text. */
  readonly wrapping: string;
  /** The line it stood in, where there are several. */
  readonly line?: number;
  readonly isError: boolean;
  readonly data?: unknown;
  /** How the data was found. */
  readonly obtained?: string;
  readonly text: string;
  readonly tool?: string;
  readonly error?: { readonly code?: string; readonly message?: string; readonly details?: unknown };
  readonly odd: readonly { readonly code: string; readonly message: string }[];
  /** The result as an envelope of our own, for all that is shown of envelopes; absent where there is none to make. */
  readonly envelope?: EnvelopeView;
}
