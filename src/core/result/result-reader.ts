import type { ObtainedFrom } from "../envelope/response-meta.ts";
import type { AnySchema } from "../schema/any-schema.ts";
import type { JsonSchema } from "../schema/json-schema.ts";
import type { FormatName } from "./tool-result.ts";

/** The data found in a tool result, and how. */
export interface ReadResult {
  readonly data: unknown;
  readonly obtained: ObtainedFrom;
  /** The published format it was written in. */
  readonly format?: FormatName | undefined;
  /** Why the tool said no, where the format says so. */
  readonly code?: string | undefined;
  readonly message?: string | undefined;
  readonly details?: unknown;
}

/** How an importer finds the data in what a tool answered, beyond structured content and content blocks. */
export interface ResultReader {
  /** The data; nothing where the result holds none of what this reader looks for. It does not throw. */
  read(result: unknown, schema?: AnySchema): ReadResult | undefined;
  /** The schema of the data, where the schema a tool advertises describes an envelope around it; else the same. */
  dataSchema?(advertised: JsonSchema): JsonSchema;
}
