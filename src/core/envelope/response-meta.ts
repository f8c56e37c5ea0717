import type { NormalizationReport, SchemaIssue } from "../schema/schema-issue.ts";
import type { MCPContentBlock } from "./content-block.ts";

/** The kinds of place a result can come from. */
export const RESPONSE_SOURCES = ["local", "http", "mcp"] as const;

/** Where a result came from. */
export type ResponseSource = (typeof RESPONSE_SOURCES)[number];

/** A result and the paper that travels with it. */
export interface ResponseEnvelope<T = unknown> {
  readonly data: T;
  readonly meta: ResponseMeta;
}

/** What is known about a result, by its source. */
export type ResponseMeta = LocalResponseMeta | HTTPResponseMeta | MCPResponseMeta;

/** The meta of a result made in this process. */
export interface LocalResponseMeta {
  readonly source: "local";
  /** The full `namespace.name`. */
  readonly operationId: string;
  /** Unix epoch milliseconds, taken when the result was wrapped. */
  readonly timestamp: number;
  readonly isError?: true;
  readonly waybill?: ResultFacts;
}

/** The meta of a result that came over HTTP. */
export interface HTTPResponseMeta {
  readonly source: "http";
  readonly statusCode: number;
  /** Values of one name joined with `, `. */
  readonly headers: Readonly<Record<string, string>>;
  /** `""` without the header. */
  readonly contentType: string;
  /** One entry per `Set-Cookie` header, which joining would break. */
  readonly setCookie?: readonly string[];
  readonly isError?: true;
  readonly waybill?: ResultFacts;
}

/** The meta of a result that came from an MCP server. */
export interface MCPResponseMeta {
  readonly source: "mcp";
  /** The tool ran and reported an error. */
  readonly isError: boolean;
  readonly content: MCPContentBlock[];
  /**
   * An object, as MCP has it up to 2025-11-25. Since 2026-07-28 any JSON value, `null`, `0` and `""` included: read those from `data`,
   * which is the same value and is typed by the operation.
   */
  readonly structuredContent?: Readonly<Record<string, unknown>>;
  readonly _meta?: Readonly<Record<string, unknown>>;
  readonly waybill?: ResultFacts;
}

/** Facts beyond the fields of each source; absent when there is nothing to tell. */
export interface ResultFacts {
  readonly durationMs?: number;
  readonly attempts?: number;
  /** How the data was found in what came back. */
  readonly obtained?: ObtainedFrom;
  readonly normalization?: NormalizationReport;
  readonly violations?: readonly SchemaIssue[];
  /** Counts the yields of a subscription, from 0. */
  readonly sequence?: number;
  /** Where a subscription can be taken up again. */
  readonly cursor?: string;
  /** The name of the event a yield came as, where it has one of its own. */
  readonly event?: string;
  readonly page?: PageFacts;
  /** Members of a tool result that MCP does not define, and an `isError` that is no boolean, as they came. */
  readonly unknown?: Readonly<Record<string, unknown>>;
  /** Why the operation reported an error, for programs. */
  readonly code?: string;
  /** Why the operation reported an error, for people. */
  readonly message?: string;
  readonly details?: unknown;
  /** What the operation said about its result beyond the data. */
  readonly said?: SaidFacts;
  /** JSON pointers into the envelope to where a credential of the source stood and is masked, the first 100. */
  readonly masked?: readonly string[];
  /** What a guard of a gateway found in the result, the first 100; never the text that was found. */
  readonly findings?: readonly ResultFinding[];
}

/** What a guard found at one place of a result. */
export interface ResultFinding {
  /** `credentials`, `cards`, `hidden`, `links`; `judge` for what a judge found, `guard` for a result that was too large to look at. */
  readonly kind: string;
  /** The rule that found it, such as `github-token`. */
  readonly rule: string;
  /** A JSON pointer into the envelope. */
  readonly pointer: string;
  /** How often the rule found something there. */
  readonly count: number;
  /** It was found and replaced. */
  readonly masked?: true;
}

/**
 * What an operation said about its result, in the fields of the canonical `ToolResult`: `result` and `toolError` write it, every format
 * says it. The error's code, message and facts stand beside it in `ResultFacts`.
 */
export interface SaidFacts {
  readonly status?: "ok" | "error" | "info" | "warn";
  readonly summary?: string;
  /** Lines for people. */
  readonly details?: readonly string[];
  readonly nextSteps?: readonly string[];
  /** Blocks for people: Markdown as text, then others, then links. An empty list says that there are none but what the rest implies. */
  readonly content?: readonly MCPContentBlock[];
  readonly truncated?: boolean;
  readonly tokenUsage?: { readonly inline?: number; readonly total?: number };
  readonly rateLimit?: { readonly remaining?: number; readonly resetSeconds?: number };
  readonly capabilities?: readonly string[];
  readonly upgradeHints?: readonly {
    readonly feature: string;
    readonly tier: string;
    readonly reason: string;
  }[];
  readonly category?: string;
  readonly recoverable?: boolean;
  readonly suggestedAction?: string;
  readonly nextTool?: string;
  /** Fields of an error that no format defines. */
  readonly errorExtra?: Readonly<Record<string, unknown>>;
  readonly _meta?: Readonly<Record<string, unknown>>;
  /** By format: unknown fields and unusual layout. */
  readonly extra?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** The ways data can be found in a result. */
export type ObtainedFrom =
  | "structured-content"
  | "envelope-block"
  | "contract-json"
  | "text-json"
  | "content"
  | "body"
  | "members"
  | "return-value";

/** Where a result stands in a paged list. */
export interface PageFacts {
  /** The cursor of the next page; absent on the last. */
  readonly next?: string;
  /** The whole input that asks for the next page, where it is more than the same input with `next` as its `cursor`. */
  readonly input?: unknown;
}
