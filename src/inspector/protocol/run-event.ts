import type { CallFailure } from "./call-failure.ts";
import type { KeptReason, ResultView } from "./call-view.ts";
import type { JsonSchemaView } from "./operation-view.ts";

/** A call of an operation. */
export interface RunAsk {
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
