import type { ReadResult, ResultReader } from "../core/result/result-reader.ts";
import { isObject, type JsonSchema, type JsonSchemaObject } from "../core/schema/json-schema.ts";
import type { ReadOptions } from "./codec.ts";
import { decodeToolResult } from "./decode-tool-result.ts";
import { isFormatError } from "./format-error.ts";

/** How published envelopes are read, and whether JSON in text counts as data. */
export interface ResultReaderOptions extends ReadOptions {
  /** Takes a single text block that is a JSON object or array for the data. @default false */
  readonly recoverJson?: boolean | undefined;
}

/** Makes a reader of all published formats, for importers of tools; what is ambiguous or unreadable is left to them. */
export function createResultReader(options: ResultReaderOptions = {}): ResultReader {
  return Object.freeze<ResultReader>({
    read(result, schema) {
      try {
        return readPublished(result, { ...options, schema });
      } catch (error) {
        if (isFormatError(error)) return undefined;
        throw error;
      }
    },
    dataSchema: (advertised) => (isEnvelopeSchema(advertised) ? dataOf(advertised) : advertised),
  });
}

function readPublished(
  result: unknown,
  options: Parameters<typeof decodeToolResult>[1],
): ReadResult | undefined {
  const { format, data, obtained, error } = decodeToolResult(result, options);
  if (format === "ambiguous" || obtained === undefined) return undefined;
  const isPlain = format === "mcp" || format === "response-envelope";
  if (isPlain && obtained !== "text-json") return undefined;
  return {
    data,
    obtained,
    format,
    ...(error && { code: error.code, message: error.message, details: error.details }),
  };
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
