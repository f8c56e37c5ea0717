import type { OperationAnnotations, OperationType } from "../core/operation/operation-types.ts";
import type { FormatName } from "../core/result/tool-result.ts";
import type { SchemaIssue } from "../core/schema/schema-issue.ts";

/**
 * What the inspector's page and its server say to each other, below `/inspect/api/`. Types alone: both sides import them, and nothing
 * else of each other. Every text in here may come from a tool, and is shown as text.
 *
 *   GET  hello                        → Hello; 401 where a token is wanted
 *   GET  start?origin=…               → StartAnswer
 *   GET  live                         → a line of JSON for each LiveEvent, for as long as the page is open
 *   GET  sources                      → SourcesAnswer
 *   POST sources/retry     RetryRequest   → RetryAnswer
 *   GET  log?source=…&after=…         → SourceLogAnswer; operators only
 *   GET  replicas                     → ReplicasAnswer; operators only
 *   GET  offers                       → OffersAnswer
 *   POST offers/read       ResourceRequest → what `resources/read` answers
 *   POST offers/prompt     PromptRequest  → what `prompts/get` answers
 *   POST offers/complete   CompleteRequest → CompleteAnswer
 *   POST offers/follow     ResourceRequest → a line of JSON for each FollowEvent; leaving unsubscribes
 *   GET  operations                   → OperationsAnswer
 *   GET  operation?id=…               → OperationView
 *   POST validate          RunRequest     → ValidateAnswer
 *   POST run               RunRequest     → a line of JSON for each RunEvent; leaving cancels the call
 *   POST answer            AnswerRequest  → {}
 *   GET  call?seq=…                   → CallView
 *   POST calls/find        FindRequest    → FindAnswer
 *   GET  approvals                    → ApprovalsAnswer
 *   POST approvals/decide  DecideRequest  → {}
 *   POST formats           FormatsRequest → FormatsAnswer
 *   POST decode            DecodeRequest  → DecodeAnswer
 *
 * What is refused or fails is a `Failure` with the status of its code.
 */

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
  /** Whether a policy of the gateway holds calls until a person has approved them. */
  readonly hasApprovals: boolean;
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
  /** How Waybill is started in a shell, such as `npx --no waybill`, with the flags that name what is mounted here; those are for operators. */
  readonly command: { readonly words: string; readonly flags: string };
}

/** One replica of the gateway, as it told of itself last. */
export interface ReplicaView {
  readonly replica: string;
  readonly host: string;
  readonly version: string;
  readonly uptimeMs: number;
  readonly calls: number;
  readonly errors: number;
  readonly callsPerSecond: number;
  readonly sources: { readonly up: number; readonly all: number };
  readonly state: "connecting" | "up" | "lost";
  /** Its last calls, latest first. */
  readonly recent: readonly {
    readonly operation: string;
    readonly outcome: "ok" | "tool_error" | "call_error";
    readonly durationMs: number;
    /** Unix epoch milliseconds, on the clock of the replica. */
    readonly endedAt: number;
    readonly code?: string;
    readonly subject?: string;
  }[];
}

/** All replicas of the gateway. */
export interface ReplicasAnswer {
  /** The one that the page talks to; nothing where there are no others. */
  readonly own?: string;
  /** By name; none where the gateway shares nothing with others. */
  readonly replicas: readonly ReplicaView[];
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
  readonly type?: OperationType;
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
  /** The input in a few words, with longer texts left out. */
  readonly digest?: string;
  /** Characters of the input as JSON; from below where it is too long to be kept. */
  readonly inputSize?: number;
  /** The same of the last result. */
  readonly resultSize?: number;
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
  /** What the source answered where that became the error; operators only. */
  readonly raw?: Kept;
  /** What passed between the gateway and the MCP server meanwhile; operators only. */
  readonly messages?: readonly LogLineView[];
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

/** Calls that wait for a person, as far as the viewer may decide about them or made them; the oldest first. */
export interface ApprovalsAnswer {
  readonly approvals: readonly ApprovalRow[];
}

/** One call that waits for a person, or that one has decided about. */
export interface ApprovalRow {
  readonly id: string;
  readonly state: "waiting" | "approved" | "denied";
  readonly caller: { readonly subject?: string; readonly issuer?: string; readonly recognised?: string };
  readonly operation: string;
  readonly source?: string;
  /** In the words of the operation. */
  readonly title?: string;
  readonly description: string;
  readonly destructive?: boolean;
  /** The whole of it as JSON, with what is secret hidden and what nobody sees written out; `""` where there is none. */
  readonly input: string;
  /** Unix epoch milliseconds. */
  readonly askedAt: number;
  readonly expiresAt: number;
  /** Why the viewer may not decide; absent where they may. */
  readonly refusal?: "own" | "rights" | "place" | "decided";
  readonly decision?: {
    readonly by: { readonly subject?: string };
    readonly via: string;
    readonly comment?: string;
  };
}

/** A decision about one of them. */
export interface DecideRequest {
  readonly id: string;
  readonly decision: "approve" | "deny";
  readonly comment?: string;
}

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
  /** The last call that failed. */
  readonly lastError?: { readonly seq: number; readonly code: string; readonly at: number };
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
export interface RetryRequest {
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

/** The ids of operations that fit a query, the best first. */
export interface SearchAnswer {
  readonly operations: readonly string[];
}

/** One operation in the list. */
export interface OperationRow {
  readonly id: string;
  /** The name of the source. */
  readonly source: string;
  readonly type: OperationType;
  readonly title?: string;
  /** The beginning of the description, in one line. */
  readonly summary: string;
  /** The first of its tags. */
  readonly group?: string;
  readonly destructive?: true;
}

/** All that is known of an operation. */
export interface OperationView {
  readonly id: string;
  readonly namespace: string;
  readonly name: string;
  readonly version: string;
  readonly type: OperationType;
  readonly source?: string;
  readonly title?: string;
  readonly description: string;
  readonly tags?: readonly string[];
  readonly annotations?: OperationAnnotations;
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
export interface RunRequest {
  readonly operation: string;
  /** Left out where there is none. */
  readonly input?: unknown;
  /** @default the gateway's own limit */
  readonly timeoutMs?: number;
  /** Tells the page from all others, so it must be hard to guess; its calls are those of one caller. @default each call is of a caller of its own */
  readonly page?: string;
}

/** What becomes of a call; the last event is `end` or `error`. */
export type RunEvent =
  | { readonly type: "started"; readonly requestId: string; readonly seq: number }
  /** In the words of MCP (`progress`, `total`, `message`) where they are used. */
  | { readonly type: "progress"; readonly value: unknown }
  | { readonly type: "log"; readonly level: string; readonly message: string; readonly data?: unknown }
  /** A question for the person; it is answered with `answer`, under its key. */
  | { readonly type: "ask"; readonly key: string; readonly question: RunQuestion }
  | { readonly type: "result"; readonly result: ResultView }
  /** A result that is not sent: with how many characters it has, about, where it is longer than the server sends to pages. */
  | { readonly type: "result-omitted"; readonly reason: KeptReason; readonly characters?: number }
  | { readonly type: "error"; readonly error: CallFailure; readonly durationMs: number }
  | { readonly type: "end"; readonly durationMs: number; readonly values: number };

/** What a handler asks: a form to fill in, or an address to visit. */
export type RunQuestion =
  | { readonly mode: "form"; readonly message: string; readonly schema: JsonSchemaView }
  | { readonly mode: "url"; readonly message: string; readonly url: string };

/** An answer to a question. */
export interface AnswerRequest {
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
export type IssueView = Omit<SchemaIssue, "message">;

/** Asks how a result reads in each format. */
export interface FormatsRequest {
  readonly envelope: EnvelopeView;
  /** The operation that answered. @default none */
  readonly operation?: string;
}

/** How it reads in each. */
export interface FormatsAnswer {
  readonly formats: readonly FormatView[];
}

/** A result in one format, and where it would read differently there. */
export interface FormatView {
  readonly format: FormatName;
  /** As it goes out; absent where the format cannot hold the result. */
  readonly encoded?: unknown;
  /** Why it cannot. */
  readonly refused?: string;
  /** Of the encoded text, in UTF-8. */
  readonly bytes?: number;
  /** What the format has no place for, or holds otherwise. */
  readonly lost: readonly DifferenceView[];
  /** What the format asks for and the result does not say. */
  readonly madeUp: readonly DifferenceView[];
}

/** One place where a result reads differently once it was written in a format. */
export interface DifferenceView {
  /** JSON pointer into the canonical result. */
  readonly pointer: string;
  /** The beginning, as JSON, of what is lost or made up there. */
  readonly text: string;
}

/** A text somebody pasted. */
export interface DecodeRequest {
  readonly text: string;
}

/** The results in it. */
export interface DecodeAnswer {
  readonly results: readonly DecodedView[];
}

/** What one result turned out to be. */
export interface DecodedView {
  /** The format it is in, that more than one fits, or what stands in place of a result where the call failed. */
  readonly format: FormatName | "ambiguous" | "json-rpc-error" | "problem" | "call-error";
  /** Those that fit, when more than one does. */
  readonly candidates?: readonly { readonly format: FormatName; readonly why?: string }[];
  /** How it was wrapped in the text. */
  readonly wrapping: string;
  /** The line it stood in, where there are several. */
  readonly line?: number;
  /** What was taken off or left out on the way to it, a sentence each. */
  readonly notes?: readonly string[];
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

/** What the first view shows beside sources and calls. */
export interface StartAnswer {
  /** How programs that speak MCP are told of the gateway; none where it does not serve MCP. */
  readonly clients: readonly {
    readonly client: string;
    readonly title: string;
    /** The file or the shell that the text is for. */
    readonly where: string;
    readonly text: string;
  }[];
  /** How much of a model's context the tool list takes; for operators. Tokens are estimates, in words. */
  readonly tools?: {
    readonly count: number;
    readonly tokens: string;
    readonly isHeavy: boolean;
    readonly isCatalogue: boolean;
    /** The heaviest sources first. */
    readonly sources: readonly { readonly name: string; readonly tokens: string }[];
  };
}

/** What is remembered of the log of a source. */
export interface SourceLogAnswer {
  /** Oldest first. */
  readonly lines: readonly LogLineView[];
}

/** A message to or from an MCP server, or a line that it wrote on standard error. */
export type LogLineView = Kept & {
  /** Counts the lines of all sources. */
  readonly n: number;
  /** Unix epoch milliseconds. */
  readonly at: number;
  readonly type: "sent" | "received" | "stderr";
  /** That of the message, or of the request that it answers. */
  readonly method?: string;
};

/** What MCP servers offer besides tools. */
export interface OffersAnswer {
  readonly sources: readonly {
    /** The name of the source. */
    readonly source: string;
    readonly resources: readonly (OfferTexts & { readonly uri: string })[];
    readonly templates: readonly (OfferTexts & { readonly uriTemplate: string })[];
    readonly prompts: readonly (OfferTexts & {
      readonly arguments: readonly {
        readonly name: string;
        readonly description: string;
        readonly required?: true;
      }[];
    })[];
    /** How many are left out. */
    readonly more: number;
    /** Whether the server tells of changes to resources. */
    readonly canFollow?: true;
    /** Whether it suggests values of arguments. */
    readonly canComplete?: true;
    /** Why nothing is known of it. */
    readonly error?: CallFailure;
  }[];
}

/** What is told of a resource, a template or a prompt. */
export interface OfferTexts {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
}

/** A resource to be read or followed. */
export interface ResourceRequest {
  readonly source: string;
  readonly uri: string;
}

/** A prompt to be filled in. */
export interface PromptRequest {
  readonly source: string;
  readonly name: string;
  readonly arguments?: Readonly<Record<string, string>>;
}

/** Asks for values of an argument. */
export interface CompleteRequest {
  readonly source: string;
  readonly ref:
    | { readonly type: "ref/prompt"; readonly name: string }
    | { readonly type: "ref/resource"; readonly uri: string };
  readonly argument: { readonly name: string; readonly value: string };
  /** The other arguments, as far as they are filled in. */
  readonly given?: Readonly<Record<string, string>>;
}

/** Values that the server suggests. */
export interface CompleteAnswer {
  readonly values: readonly string[];
}

/** What happens to a resource that is followed. */
export type FollowEvent = { readonly type: "following" } | { readonly type: "updated"; readonly at: number };

/** A text to be found in inputs and results of calls that are remembered. */
export interface FindRequest {
  readonly text: string;
}

/** The calls it was found in. */
export interface FindAnswer {
  readonly seqs: readonly number[];
}
