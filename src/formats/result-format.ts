import { CallError } from "../core/errors/errors.ts";
import { isTurnedDown } from "../core/execution/turned-down.ts";
import { asJson } from "../core/json/as-json.ts";
import { isPlainJson } from "../core/json/json-text.ts";
import type { AnyOperation } from "../core/operation/operation-types.ts";
import type { CallToolResult } from "../core/result/call-tool-result.ts";
import type { EndedCall } from "../core/result/ended-call.ts";
import type { ResultFormat } from "../core/result/result-format.ts";
import type { FormatName, ToolResult } from "../core/result/tool-result.ts";
import { toOperationSchema } from "../core/schema/any-schema.ts";
import { fromEndedCall } from "./ended-call.ts";
import { createDataSchema, type EnvelopeSchema } from "./envelope-schema.ts";
import { codecOf } from "./formats.ts";
import { createToolResponseEnvelopeSchema } from "./status-envelope/response-schema.ts";
import { type ExposeError, withSafeError } from "./tiered-envelope/safe-error.ts";
import { ENVELOPE_CAPABILITY } from "./tiered-envelope/tiered-envelope.ts";
import { createTieredEnvelopeSchema } from "./tiered-envelope/tiered-schema.ts";
import { encodeResult } from "./transcode.ts";

/** A format that rides in a tool result. */
export type ToolFormat = Exclude<FormatName, "response-envelope">;

/** How calls are written down. */
export interface ResultFormatOptions {
  readonly format: ToolFormat;
  /** What the tools can do beyond the format itself; for the tiered envelope. */
  readonly capabilities?: readonly string[] | undefined;
  /** Keeps what the format cannot hold in `_meta`, for readers who know it. @default true */
  readonly residual?: boolean | undefined;
  /** Lets messages and details of errors through; for the tiered envelope, which keeps both back. */
  readonly exposeError?: ExposeError | undefined;
}

/** Makes a published format into what servers write results with; a name alone is enough. */
export function createResultFormat(options: ToolFormat | ResultFormatOptions): ResultFormat {
  const settings = typeof options === "string" ? { format: options } : options;
  const { format } = settings;
  if ((format as string) === "response-envelope") {
    throw new TypeError(
      "A response envelope is no tool result; call execute() for one, or choose another format.",
    );
  }
  codecOf(format);
  return Object.freeze<ResultFormat>({
    name: format,
    write: (call) => writeCall(call, settings),
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
  const { format, residual = true } = options;
  const write = (result: ToolResult) => encodeResult(result, format, { residual });
  try {
    assertAdvertised(call);
    return write(prepare(call, options));
  } catch (cause) {
    const error = new CallError("OUTPUT_INVALID", "The result cannot be written as JSON.", { cause });
    // Without what the author wanted to expose: that may be what failed.
    return write(prepare({ ...call, outcome: { error } }, { ...options, exposeError: undefined }));
  }
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
