import { tierOf } from "../core/access/tier.ts";
import type { ResponseEnvelope } from "../core/envelope/response-meta.ts";
import { errorTraits } from "../core/errors/error-codes.ts";
import { CallError, isCallError, isTurnedDown } from "../core/errors/errors.ts";
import { quoteSaid, saidIn } from "../core/errors/source-words.ts";
import { isRequestId, randomId } from "../core/execution/call-context.ts";
import { idOf } from "../core/execution/dispatch.ts";
import { asJson, isPlainJson, isPlainObject, toJsonTextOrNone } from "../core/json/json-value.ts";
import type { AnyOperation, CallArguments } from "../core/operation/operation-types.ts";
import { checkOption } from "../core/options/check-options.ts";
import type { ExecuteOptions, Executor } from "../core/registry/executor.ts";
import { type EndedCall, endCall } from "../core/result/ended-call.ts";
import { isBlank, sentenceOf, textsIn } from "../core/result/human-text.ts";
import { withMissedSchema } from "../core/result/missed-schema.ts";
import type { ResultFormat } from "../core/result/result-reader.ts";
import {
  type CallToolResult,
  type ContentBlock,
  FORMAT_NAMES,
  type FormatName,
  fromFacts,
  type ResultError,
  type ToolResult,
  type UpgradeHint,
  withResultFacts,
} from "../core/result/tool-result.ts";
import { toOperationSchema } from "../core/schema/any-schema.ts";
import { isEqual } from "../core/schema/compare-values.ts";
import { type AdvertisedSchema, createDataSchema } from "./envelope-schema.ts";
import { previewResult, type ResultPreview } from "./preview/preview-result.ts";
import { readEnvelope } from "./response-envelope/response-envelope-codec.ts";
import { isUpgradeHints } from "./result-fields.ts";
import { createToolResponseEnvelopeSchema } from "./status-envelope/compose-tool-payload.ts";
import { nextStepsOf } from "./status-envelope/status-envelope-codec.ts";
import { type ExposeError, withAuthoredError, withSafeError } from "./tiered-envelope/safe-error.ts";
import { createTieredEnvelopeSchema, ENVELOPE_CAPABILITY } from "./tiered-envelope/tiered-envelope.ts";
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
    const { result, facts } = await previewResult(
      prepare(call, options),
      { schema, keeps: call.keeps },
      preview,
    );
    const written = write(result, options);
    return facts === undefined ? written : withResultFacts(written, facts);
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

/** The published formats that need the structured content for themselves. */
const STRUCTURED: ReadonlySet<string> = new Set(["mcp", "tiered-envelope", "status-envelope"]);

/**
 * Writes every result in several formats at once, for readers of different kinds: the blocks of each in turn, without those an
 * earlier one has written, and the structured content of the first that has any. A status envelope with previews stays one; a
 * tool envelope beside it holds the whole.
 */
export function combineFormats(first: ResultFormat, ...others: readonly ResultFormat[]): ResultFormat {
  const formats = [first, ...others];
  for (const format of formats) assertFormat(format);
  const rivals = formats.filter(({ name }) => STRUCTURED.has(name));
  if (rivals.length > 1) {
    const names = rivals.map(({ name }) => `"${name}"`).join(" and ");
    throw new TypeError(
      `The formats ${names} both fill the structured content; combine one of them with others.`,
    );
  }
  return Object.freeze<ResultFormat>({
    name: formats.map(({ name }) => name).join("+"),
    async write(call) {
      return join(await Promise.all(formats.map((format) => format.write(call))));
    },
    outputSchema(operation) {
      for (const format of formats) {
        const schema = format.outputSchema(operation);
        if (schema !== undefined) return schema;
      }
      return undefined;
    },
    ...(formats.some(({ previews }) => previews) && { previews: true }),
  });
}

function assertFormat(format: unknown): void {
  const { name, write, outputSchema } = (format ?? {}) as Partial<ResultFormat>;
  if (typeof name === "string" && typeof write === "function" && typeof outputSchema === "function") return;
  const hint = Array.isArray(format) ? "not in a list" : 'such as createResultFormat("tool-envelope")';
  throw new TypeError(`combineFormats takes formats one by one, ${hint}: combineFormats(first, second).`);
}

function join(results: readonly CallToolResult[]): CallToolResult {
  const content: ContentBlock[] = [];
  const joined: CallToolResult = { content };
  for (const result of results) {
    for (const block of result.content) {
      if (!content.some((known) => isEqual(known, block))) content.push(block);
    }
    if (result.structuredContent !== undefined && joined.structuredContent === undefined) {
      joined.structuredContent = result.structuredContent;
    }
    if (result.isError === true) joined.isError = true;
    if (result._meta !== undefined) joined._meta = { ...result._meta, ...joined._meta };
  }
  return joined;
}

/** Calls an operation and writes what comes of it as a tool result; failures too, so that it never throws for one. */
export type ToolCaller = <const T extends AnyOperation | string>(
  target: T,
  ...rest: CallArguments<T, ExecuteOptions>
) => Promise<CallToolResult>;

/** Wraps the operations of a registry so that every call answers in one of the published formats. */
export function createToolCaller(executor: Executor, options: ResultFormatOptions): ToolCaller {
  const format = createResultFormat(options);
  return async (target, ...rest) => {
    const [input, callOptions] = rest as [unknown, ExecuteOptions?];
    const requestId = isRequestId(callOptions?.requestId) ? callOptions.requestId : randomId();
    const call = await endCall(executor, idOf(target), input, { ...callOptions, requestId });
    return asAnnounced(await format.write(call), call, format);
  };
}

/** A server of the SDK refuses to send a result that misses the schema which `toolOutputSchema` gave it. */
function asAnnounced(result: CallToolResult, call: EndedCall, format: ResultFormat): CallToolResult {
  const { operation, outcome } = call;
  const violations = "envelope" in outcome ? (outcome.envelope.meta.waybill?.violations ?? []) : [];
  if (!("envelope" in outcome) || violations.length === 0 || result.isError === true) return result;
  if (operation?.outputSchema === undefined || format.outputSchema(operation) === undefined) return result;
  return withMissedSchema(result, asJson(outcome.envelope.data), violations);
}

/** Reads a call that has ended into the canonical result. */
function fromEndedCall(call: EndedCall): ToolResult {
  const { operationId, operation, requestId, identity, durationMs, outcome } = call;
  return {
    ...("envelope" in outcome ? readOutcome(outcome.envelope, operation) : failedResult(outcome.error)),
    tool: call.calledAs ?? operationId,
    ...(operation !== undefined && { toolVersion: operation.version }),
    requestId,
    durationMs,
    tier: tierOf(identity),
  };
}

/** What takes its wire form says so, which `readEnvelope` sees to. */
function readOutcome({ data, meta }: ResponseEnvelope, operation: AnyOperation | undefined): ToolResult {
  const isWritten = data !== undefined && toJsonTextOrNone(data) !== undefined;
  const { result } = readEnvelope({ data: isWritten ? asJson(data) : data, meta });
  return meta.source === "mcp" ? result : withHeadline(withReason(result, operation));
}

/** Where a handler wrote a text about its error that does not say what went wrong, that stands above it. */
function withHeadline(result: ToolResult): ToolResult {
  const { error, summary, content = [], facts } = result;
  const texts = textsIn(content);
  if (error === undefined || summary !== undefined || texts.length === 0) return result;
  // The first block of a tool envelope is the whole of what its author says to people.
  const isWhole = facts?.obtained === "envelope-block" || texts.some((text) => text.includes(error.message));
  return isWhole ? result : { ...result, summary: error.message };
}

/** An error whose author gave a code, a category or advice and no message gets the sentence that is known for it. */
function withReason(result: ToolResult, operation: AnyOperation | undefined): ToolResult {
  const { facts, error, isError, summary } = result;
  if (!isError || error !== undefined || facts === undefined) return result;
  const { code, details, said, ...others } = facts;
  if (code === undefined && details === undefined && said === undefined) return result;
  const message = summary ?? sentenceOf(code, operation);
  const { error: told } = fromFacts(true, {
    message,
    details,
    ...(code !== undefined && { code }),
    ...(said !== undefined && { said }),
  });
  return { ...result, facts: others, ...(told && { error: told }) };
}

function failedResult(error: CallError): ToolResult {
  const upgradeHints = hintsOf(error);
  const said = saidIn(error.details);
  return {
    isError: true,
    error: toResultError(error),
    // For people, in formats that show lines and have no place for the facts of an error.
    ...(said !== undefined && { details: [quoteSaid(said)] }),
    ...(upgradeHints && { upgradeHints }),
  };
}

/** Says what a failed call may say on a wire. */
function toResultError(error: CallError): ResultError {
  const { code, message, details, retryable, correctable } = error.toJSON();
  return {
    message,
    code,
    category: errorTraits(code).category,
    ...(details !== undefined && { details }),
    recoverable: retryable || correctable,
  };
}

/** The hints of an error that asks for a higher tier. */
function hintsOf({ code, details }: CallError): readonly UpgradeHint[] | undefined {
  if (code !== "UPGRADE_REQUIRED" || !isPlainObject(details)) return undefined;
  const { upgradeHints } = details;
  return isUpgradeHints(upgradeHints) ? (upgradeHints as unknown as readonly UpgradeHint[]) : undefined;
}
