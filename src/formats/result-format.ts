import { CallError, isCallError } from "../core/errors/errors.ts";
import { isTurnedDown } from "../core/execution/turned-down.ts";
import { asJson } from "../core/json/as-json.ts";
import { isPlainJson } from "../core/json/json-text.ts";
import { isPlainObject } from "../core/json/json-value.ts";
import type { AnyOperation } from "../core/operation/operation-types.ts";
import { type CallToolResult, RESULT_META_KEY } from "../core/result/call-tool-result.ts";
import type { EndedCall } from "../core/result/ended-call.ts";
import type { ResultFormat } from "../core/result/result-format.ts";
import { FORMAT_NAMES, type FormatName, type ToolResult } from "../core/result/tool-result.ts";
import { toOperationSchema } from "../core/schema/any-schema.ts";
import { fromEndedCall } from "./ended-call.ts";
import { createDataSchema, type EnvelopeSchema } from "./envelope-schema.ts";
import { previewResult, type ResultPreview } from "./preview/preview-result.ts";
import { createToolResponseEnvelopeSchema } from "./status-envelope/response-schema.ts";
import { type ExposeError, withSafeError } from "./tiered-envelope/safe-error.ts";
import { ENVELOPE_CAPABILITY } from "./tiered-envelope/tiered-envelope.ts";
import { createTieredEnvelopeSchema } from "./tiered-envelope/tiered-schema.ts";
import { encodeResult } from "./transcode.ts";

/** A format that rides in a tool result. */
export type ToolFormat = Exclude<FormatName, "response-envelope">;

const TOOL_FORMATS = FORMAT_NAMES.filter((name) => name !== "response-envelope").join(", ");

/** How calls are written down. */
export interface ResultFormatOptions {
  readonly format: ToolFormat;
  /** What the tools can do beyond the format itself; for the tiered envelope. */
  readonly capabilities?: readonly string[] | undefined;
  /** Keeps what the format cannot hold in `_meta`, for readers who know it. @default true */
  readonly residual?: boolean | undefined;
  /** Lets messages and details of errors through; for the tiered envelope, which keeps both back. */
  readonly exposeError?: ExposeError | undefined;
  /**
   * Sends a preview of what is large, with a link to the whole; for the status envelope, which can say so. Tool and tiered envelopes
   * have no place for it and go whole, and what is in the plain format is cut by the server that has a store.
   */
  readonly preview?: ResultPreview | undefined;
}

/** Makes a published format into what servers write results with; a name alone is enough. */
export function createResultFormat(options: ToolFormat | ResultFormatOptions): ResultFormat {
  if (typeof options !== "string" && !isPlainObject(options)) {
    throw new TypeError(
      `createResultFormat takes the name of a format, or an object with it: ${TOOL_FORMATS}.`,
    );
  }
  const settings: ResultFormatOptions = typeof options === "string" ? { format: options } : options;
  const { format } = settings;
  if ((format as string) === "response-envelope") {
    throw new TypeError(
      "A response envelope is no tool result; call execute() for one, or choose another format.",
    );
  }
  if (!FORMAT_NAMES.includes(format)) {
    throw new TypeError(
      `There is no format ${JSON.stringify(format) ?? "undefined"}; there are ${TOOL_FORMATS}.`,
    );
  }
  if (settings.preview !== undefined && format !== "status-envelope") {
    throw new TypeError(`There are no previews in the format "${format}"; choose "status-envelope".`);
  }
  return Object.freeze<ResultFormat>({
    name: format,
    write: (call) => {
      const { preview } = settings;
      return preview === undefined ? writeCall(call, settings) : writePreview(call, settings, preview);
    },
    outputSchema: (operation) => toolOutputSchema(operation, format),
  });
}

/**
 * The schema to advertise for an operation whose results are written in a format: plain JSON Schema, and a Standard Schema for
 * SDKs that take one. Nothing for a format without structured content, or an operation without a schema.
 */
export function toolOutputSchema(
  { outputSchema }: AnyOperation,
  format: ToolFormat,
): EnvelopeSchema<unknown> | undefined {
  switch (format) {
    case "tiered-envelope":
      return createTieredEnvelopeSchema(outputSchema ?? {});
    case "status-envelope":
      return createToolResponseEnvelopeSchema(outputSchema ?? {});
    case "mcp":
      return outputSchema === undefined ? undefined : createDataSchema(outputSchema);
    case "tool-envelope":
      return undefined;
  }
}

/** Data that cannot be written is a failure like any other, and is told as one. */
function writeCall(call: EndedCall, options: ResultFormatOptions): CallToolResult {
  try {
    assertAdvertised(call);
    return write(prepare(call, options), options);
  } catch (cause) {
    return writeFailure(call, options, unwritable(cause));
  }
}

/** What is too large, or could not be kept, says so itself. */
const PREVIEW_FAILURES: ReadonlySet<string> = new Set(["TOO_LARGE", "EXECUTION_ERROR"]);

async function writePreview(
  call: EndedCall,
  options: ResultFormatOptions,
  preview: ResultPreview,
): Promise<CallToolResult> {
  try {
    assertAdvertised(call);
    const schema = call.operation?.outputSchema;
    const { result, isCut } = await previewResult(prepare(call, options), schema, preview);
    const written = write(result, options);
    return isCut ? markPreview(written) : written;
  } catch (cause) {
    const isTold = isCallError(cause) && PREVIEW_FAILURES.has(cause.code);
    return writeFailure(call, options, isTold ? cause : unwritable(cause));
  }
}

function write(result: ToolResult, { format, residual = true }: ResultFormatOptions): CallToolResult {
  return encodeResult(result, format, { residual });
}

function writeFailure(call: EndedCall, options: ResultFormatOptions, error: CallError): CallToolResult {
  // Without what the author wanted to expose: that may be what failed.
  const prepared = prepare({ ...call, outcome: { error } }, { ...options, exposeError: undefined });
  return write(prepared, options);
}

function unwritable(cause: unknown): CallError {
  return new CallError("OUTPUT_INVALID", "The result cannot be written as JSON.", { cause });
}

/** Servers add nothing of the whole to what is marked so. */
function markPreview(result: CallToolResult): CallToolResult {
  const facts = result._meta?.[RESULT_META_KEY];
  const marked = { ...(isPlainObject(facts) && facts), preview: true };
  return { ...result, _meta: { ...result._meta, [RESULT_META_KEY]: marked } };
}

/** Data that JSON writes otherwise than the handler returned it may have passed its schema, and not pass it any more. */
function assertAdvertised({ operation, outcome }: EndedCall): void {
  if (operation?.outputSchema === undefined || !("envelope" in outcome)) return;
  const { data, meta } = outcome.envelope;
  if (data === undefined || meta.isError === true || isPlainJson(data)) return;
  const schema = toOperationSchema(operation.outputSchema, "output");
  if (schema.check(data) && !schema.check(asJson(data))) throw new CallError("OUTPUT_INVALID");
}

function prepare(call: EndedCall, { format, capabilities, exposeError }: ResultFormatOptions): ToolResult {
  const { operation, operationId, outcome } = call;
  // Where a result came from, headers and cookies among it, is not for the next one to know.
  const { tier, extra, http: _, facts: __, ...result } = fromEndedCall(call);
  const isWired = extra?.["response-envelope"]?.["wire"] === true;
  const bare: ToolResult = { ...result, ...(isWired && { extra: { "response-envelope": { wire: true } } }) };
  switch (format) {
    case "tool-envelope":
    case "status-envelope":
      return bare;
    case "mcp":
      // Clients check structured content against the schema of a success, and throw an error away that misses it.
      return bare.isError ? { ...bare, extra: { ...bare.extra, mcp: { textOnly: true } } } : bare;
    case "tiered-envelope": {
      const isOwnRefusal = "error" in outcome && isTurnedDown(outcome.error, operationId);
      return {
        ...withSafeError(bare, { operation, isOwnRefusal, expose: exposeError }),
        ...(bare.extra && { extra: bare.extra }),
        ...(operation === undefined && { tool: "unknown" }),
        ...(tier !== undefined && { tier }),
        capabilities: [
          ENVELOPE_CAPABILITY,
          ...(capabilities ?? []).filter((name) => name !== ENVELOPE_CAPABILITY),
        ],
      };
    }
  }
}
