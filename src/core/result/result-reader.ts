import type { ObtainedFrom, ResponseEnvelope, SaidFacts } from "../envelope/response-meta.ts";
import type { AnyOperation } from "../operation/operation-types.ts";
import type { AnySchema } from "../schema/any-schema.ts";
import type { JsonSchema } from "../schema/json-schema.ts";
import type { EndedCall } from "./ended-call.ts";
import type { CallToolResult, FormatName } from "./tool-result.ts";

/** The data found in a tool result, and how. */
export interface ReadResult {
  readonly data: unknown;
  readonly obtained: ObtainedFrom;
  /** The published format it was written in. */
  readonly format?: FormatName | undefined;
  /** Why the tool reported an error, where the format says so. */
  readonly code?: string | undefined;
  readonly message?: string | undefined;
  readonly details?: unknown;
  /** What the tool said beyond its data. */
  readonly said?: SaidFacts | undefined;
}

/** How an importer finds the data in what a tool answered, beyond structured content and content blocks. */
export interface ResultReader {
  /** The data; nothing where the result holds none of what this reader looks for. It does not throw. */
  read(result: unknown, schema?: AnySchema): ReadResult | undefined;
  /**
   * Reads what a handler returned as a tool result, outcome and all: for operations that name this reader as their `returns`. What is
   * no tool result, or can be read in two ways, is thrown as a `CallError`.
   */
  toEnvelope?(returned: unknown, schema?: AnySchema): ResponseEnvelope;
  /** The schema of the data, where the schema a tool advertises describes an envelope around it; else the same. */
  dataSchema?(advertised: JsonSchema): JsonSchema;
}

/** How a server writes results down: one of the published formats, or the caller's own. */
export interface ResultFormat {
  /** What a client asks for it by. */
  readonly name: string;
  /** Writes a call that has ended, whichever way; it does not throw. */
  write(call: EndedCall): CallToolResult | Promise<CallToolResult>;
  /** Describes the structured content of `write`; nothing where it has none, or nothing is known of it. */
  outputSchema(operation: AnyOperation): JsonSchema | undefined;
  /** Whether `write` sends previews of long results itself; otherwise servers cut data that is over their budget before it is written. */
  readonly previews?: boolean | undefined;
}
