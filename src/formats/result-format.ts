import { CallError, isCallError } from "../core/errors/errors.ts";
import { isTurnedDown } from "../core/execution/turned-down.ts";
import { asJson } from "../core/json/as-json.ts";
import { isPlainJson } from "../core/json/json-text.ts";
import { isPlainObject } from "../core/json/json-value.ts";
import type { AnyOperation } from "../core/operation/operation-types.ts";
import { checkOption } from "../core/options/check-options.ts";
import { type CallToolResult, RESULT_META_KEY } from "../core/result/call-tool-result.ts";
import type { EndedCall } from "../core/result/ended-call.ts";
import { isBlank } from "../core/result/human-text.ts";
import type { ResultFormat } from "../core/result/result-format.ts";
import { FORMAT_NAMES, type FormatName, type ToolResult } from "../core/result/tool-result.ts";
import { toOperationSchema } from "../core/schema/any-schema.ts";
import { fromEndedCall } from "./ended-call.ts";
import { type AdvertisedSchema, createDataSchema } from "./envelope-schema.ts";
import { previewResult, type ResultPreview } from "./preview/preview-result.ts";
import { createToolResponseEnvelopeSchema } from "./status-envelope/response-schema.ts";
import { nextStepsOf } from "./status-envelope/status-envelope-codec.ts";
import { type ExposeError, withAuthoredError, withSafeError } from "./tiered-envelope/safe-error.ts";
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
   * Sends a preview of what is large, with a link to the whole and the tokens of both; for the status envelope, which has a place for
   * them. Without it, and in the other formats, an MCP server that has a store cuts what is over its budget.
   */
  readonly preview?: ResultPreview | undefined;
  /** Keeps the next steps out of the text; they stay in `meta.nextSteps`. For the status envelope. @default false */
  readonly omitNextSteps?: boolean | undefined;
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
  checkOption("omitNextSteps", settings.omitNextSteps, "true or false", isFlag(settings.omitNextSteps));
  if (settings.omitNextSteps === true && format !== "status-envelope") {
    throw new TypeError(
      `omitNextSteps is an option of the format "status-envelope"; the format "${format}" does not take it.`,
    );
  }
  return Object.freeze<ResultFormat>({
    name: format,
    write: (call) => {
      const { preview } = settings;
      return preview === undefined ? writeCall(call, settings) : writePreview(call, settings, preview);
    },
    outputSchema: (operation) => toolOutputSchema(operation, format),
    ...(settings.preview !== undefined && { previews: true }),
  });
}

function isFlag(value: unknown): boolean {
  return typeof value === "boolean";
}

/**
 * The schema to advertise for an operation whose results are written in a format: plain JSON Schema, and a Standard Schema for
 * SDKs that take one. Nothing for a format without structured content, or an operation without a schema.
 */
export function toolOutputSchema(
  { outputSchema }: AnyOperation,
  format: ToolFormat,
): AdvertisedSchema | undefined {
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
    const { result, facts } = await previewResult(prepare(call, options), schema, preview, call.keeps);
    const written = write(result, options);
    return facts === undefined ? written : withPreviewFacts(written, facts);
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

/** Servers add nothing of the whole to what says that it is a preview. */
function withPreviewFacts(result: CallToolResult, facts: Readonly<Record<string, unknown>>): CallToolResult {
  const known = result._meta?.[RESULT_META_KEY];
  const merged = { ...(isPlainObject(known) && known), ...facts };
  return { ...result, _meta: { ...result._meta, [RESULT_META_KEY]: merged } };
}

/** Data that JSON writes otherwise than the handler returned it may have passed its schema, and not pass it any more. */
function assertAdvertised({ operation, outcome }: EndedCall): void {
  if (operation?.outputSchema === undefined || !("envelope" in outcome)) return;
  const { data, meta } = outcome.envelope;
  if (data === undefined || meta.isError === true || isPlainJson(data)) return;
  const schema = toOperationSchema(operation.outputSchema, "output");
  if (schema.check(data) && !schema.check(asJson(data))) throw new CallError("OUTPUT_INVALID");
}

function prepare(
  call: EndedCall,
  { format, capabilities, exposeError, omitNextSteps }: ResultFormatOptions,
): ToolResult {
  const { operation, operationId, outcome } = call;
  // Where a result came from, headers and cookies among it, is not for the next one to know; where it goes on is.
  const { tier, extra, http: _, facts, ...result } = fromEndedCall(call);
  const page = facts?.page;
  const bare: ToolResult = { ...result, ...layoutOf(extra), ...(page !== undefined && { facts: { page } }) };
  const isForeign = "envelope" in outcome && outcome.envelope.meta.source === "mcp";
  switch (format) {
    case "tool-envelope":
      return bare;
    case "status-envelope": {
      if (omitNextSteps !== true || !nextStepsOf(bare)?.some((step) => !isBlank(step))) return bare;
      const layout = { ...bare.extra?.[format], omitsNextSteps: true };
      return { ...bare, extra: { ...bare.extra, [format]: layout } };
    }
    case "mcp": {
      // Clients check structured content against the schema of a success, and throw an error away that misses it.
      const layout = {
        ...(bare.isError && { textOnly: true }),
        ...(!isForeign && hidesData(bare) && { showsData: true }),
      };
      return Object.keys(layout).length === 0 ? bare : { ...bare, extra: { ...bare.extra, mcp: layout } };
    }
    case "tiered-envelope": {
      const isOwnRefusal = "error" in outcome && isTurnedDown(outcome.error, operationId);
      // What a handler here returned it said on purpose; what it threw, or another source said, may quote anything.
      const isAuthored = "envelope" in outcome && outcome.envelope.meta.source === "local";
      return {
        ...(isAuthored
          ? withAuthoredError(bare, { operation, expose: exposeError })
          : withSafeError(bare, { operation, isOwnRefusal, expose: exposeError })),
        ...(bare.extra && { extra: bare.extra }),
        ...(operation === undefined && { tool: "unknown" }),
        ...(tier !== undefined && { tier }),
        capabilities: [
          ...new Set([ENVELOPE_CAPABILITY, ...(capabilities ?? []), ...(bare.capabilities ?? [])]),
        ],
      };
    }
  }
}

/** Of how a result was laid out, what a handler's own helpers said stays; of where it came from, that its data took its wire form. */
function layoutOf(extra: ToolResult["extra"]): Pick<ToolResult, "extra"> {
  if (extra === undefined) return {};
  const { "response-envelope": own, ...layout } = extra;
  const kept = { ...layout, ...(own?.["wire"] === true && { "response-envelope": { wire: true } }) };
  return Object.keys(kept).length === 0 ? {} : { extra: kept };
}

/** Blocks that a handler added, none of them text, stand beside the data's JSON and not in its place. */
function hidesData({ content, data }: ToolResult): boolean {
  return content !== undefined && data !== undefined && !content.some(({ type }) => type === "text");
}
