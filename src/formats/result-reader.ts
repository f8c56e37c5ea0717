import { mcpEnvelope, type ResponseEnvelope, type SaidFacts } from "../core/envelope/envelope.ts";
import { CallError } from "../core/errors/errors.ts";
import type { ReadResult, ResultReader } from "../core/result/result-reader.ts";
import { type ToolResult, toFacts } from "../core/result/tool-result.ts";
import { isObject, type JsonSchema, type JsonSchemaObject } from "../core/schema/json-schema.ts";
import { toLocalEnvelope } from "./authored.ts";
import type { ReadOptions } from "./codec.ts";
import { type DecodedToolResult, type DecodeOptions, decodeToolResult } from "./decode-tool-result.ts";
import { isFormatError } from "./format-error.ts";
import { derivedContent } from "./plain/plain-codec.ts";
import { toKnownBlock } from "./response-envelope/response-envelope-codec.ts";

/** How published envelopes are read, and whether JSON in text counts as data. */
export interface ResultReaderOptions extends ReadOptions {
  /** Takes a single text block that is a JSON object or array for the data. @default false */
  readonly recoverJson?: boolean | undefined;
}

/** A reader that can be an operation's `returns` too. */
export type ReturnedResultReader = ResultReader & Required<Pick<ResultReader, "toEnvelope">>;

/**
 * Makes a reader of all published formats: for importers of tools, who are left what is ambiguous or unreadable, and for operations
 * whose handlers return tool results (`returns`).
 */
export function createResultReader(options: ResultReaderOptions = {}): ReturnedResultReader {
  return Object.freeze<ReturnedResultReader>({
    read(result, schema) {
      try {
        return readPublished(result, { ...options, schema });
      } catch (error) {
        if (isFormatError(error)) return undefined;
        throw error;
      }
    },
    toEnvelope: (returned, schema) => toEnvelope(returned, { ...options, schema }),
    dataSchema: (advertised) => (isEnvelopeSchema(advertised) ? dataOf(advertised) : advertised),
  });
}

function readPublished(result: unknown, options: DecodeOptions): ReadResult | undefined {
  const { format, data, obtained, error, result: decoded } = decodeToolResult(result, options);
  if (format === "ambiguous" || obtained === undefined) return undefined;
  const isPlain = format === "mcp" || format === "response-envelope";
  const said = decoded && saidIn(decoded);
  if (isPlain && obtained !== "text-json" && said === undefined) return undefined;
  return {
    data,
    obtained,
    format,
    ...(error && { code: error.code, message: error.message, details: error.details }),
    // The blocks as they came show what the envelope says; those that are more than that are named.
    ...(said !== undefined && { said: { ...said, content: decoded?.content ?? [] } }),
  };
}

/** What a result says beyond its data and content; nothing where that is nothing. */
function saidIn(result: ToolResult): SaidFacts | undefined {
  const { content: _, _meta: __, extra: ___, ...fields } = result;
  return toFacts(fields, { content: false })?.said;
}

/** Reads any tool result as the envelope of the operation that returned it. */
function toEnvelope(returned: unknown, options: DecodeOptions): ResponseEnvelope {
  const decoded = decodeReturned(returned, options);
  const { format, isError, data, obtained, result } = decoded;
  if (result === undefined || obtained === undefined) throw unreadable(AMBIGUOUS);
  if (format === "mcp") return toPlainEnvelope(decoded, result);
  return toLocalEnvelope({ ...result, isError, data }, obtained);
}

/** MCP's own result: the blocks stay as they are, and are the data where there is no other. */
function toPlainEnvelope(
  { isError, data, obtained }: DecodedToolResult,
  result: ToolResult,
): ResponseEnvelope {
  const content = (result.content ?? derivedContent(result)).map(toKnownBlock);
  const isContent = obtained === "content";
  return mcpEnvelope(isContent ? content : data, {
    isError,
    content,
    ...(obtained === "structured-content" && { structuredContent: data }),
    ...(result._meta !== undefined && { _meta: result._meta }),
    ...(obtained !== undefined && { waybill: { obtained } }),
  });
}

function decodeReturned(returned: unknown, options: DecodeOptions): DecodedToolResult {
  try {
    return decodeToolResult(returned, options);
  } catch (cause) {
    if (!isFormatError(cause)) throw cause;
    throw unreadable("it is no object with a list of content blocks", cause);
  }
}

const AMBIGUOUS = "it can be read in more than one way";

function unreadable(reason: string, cause?: unknown): CallError {
  const message = `What the handler returned is read as a tool result, and cannot be: ${reason}.`;
  return new CallError("OUTPUT_INVALID", message, { cause });
}

/** The fields by which the schema of an envelope is known. */
const SIGNATURES = [
  { properties: ["tier", "tool_version", "tool_id", "request_id", "error", "data"] },
  { properties: ["meta", "data"], meta: ["status", "summary"] },
] as const;

function isEnvelopeSchema(schema: JsonSchema): schema is JsonSchemaObject {
  if (!isObject(schema)) return false;
  return SIGNATURES.some((signature) => {
    const hasFields = signature.properties.every((name) => propertyOf(schema, name) !== undefined);
    if (!hasFields || !("meta" in signature)) return hasFields;
    const meta = propertyOf(schema, "meta");
    return signature.meta.every((name) => propertyOf(meta, name) !== undefined);
  });
}

function propertyOf(schema: unknown, name: string): unknown {
  const properties = isObject(schema) ? schema["properties"] : undefined;
  return isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
}

const ENVELOPE_ID = "urn:waybill:envelope";

/** Points into the schema of the envelope, which is kept whole so that its own references go on working. */
function dataOf(envelope: JsonSchemaObject): JsonSchemaObject {
  const { $schema } = envelope;
  const id = typeof envelope["$id"] === "string" ? envelope["$id"] : ENVELOPE_ID;
  const place =
    isObject(envelope["$defs"]) && Object.hasOwn(envelope["$defs"], "data")
      ? "/$defs/data"
      : "/properties/data";
  return {
    ...($schema !== undefined && { $schema }),
    allOf: [{ $ref: `${id}#${place}` }],
    $defs: { envelope: { ...envelope, $id: id } },
  };
}
