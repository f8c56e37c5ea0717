import { CallError, toCallError } from "../core/errors/errors.ts";
import { monotonicNow } from "../core/execution/deadline.ts";
import { idOf } from "../core/execution/lookup.ts";
import { isRequestId } from "../core/execution/request-id.ts";
import { isTurnedDown } from "../core/execution/turned-down.ts";
import type { AnyOperation, CallArguments } from "../core/operation/operation-types.ts";
import type { ExecuteOptions, Executor } from "../core/registry/executor.ts";
import type { FormatName, ToolResult } from "../core/result/tool-result.ts";
import { toOperationSchema } from "../core/schema/any-schema.ts";
import type { CallToolResult } from "./call-tool-result.ts";
import { asJson, type EndedCall, fromEndedCall } from "./ended-call.ts";
import { createDataSchema, type EnvelopeSchema } from "./envelope-schema.ts";
import { codecOf } from "./formats.ts";
import { isPlainJson } from "./json-text.ts";
import { createToolResponseEnvelopeSchema } from "./status-envelope/response-schema.ts";
import { createRequestId } from "./tiered-envelope/request-id.ts";
import { type ExposeError, withSafeError } from "./tiered-envelope/safe-error.ts";
import { ENVELOPE_CAPABILITY } from "./tiered-envelope/tiered-envelope.ts";
import { createTieredEnvelopeSchema } from "./tiered-envelope/tiered-schema.ts";
import { encodeResult } from "./transcode.ts";

/** A format that rides in a tool result. */
export type ToolFormat = Exclude<FormatName, "response-envelope">;

/** How calls are written down. */
export interface ToolCallerOptions {
  readonly format: ToolFormat;
  /** What the tools can do beyond the format itself; for the tiered envelope. */
  readonly capabilities?: readonly string[] | undefined;
  /** Keeps what the format cannot hold in `_meta`, for readers who know it. @default true */
  readonly residual?: boolean | undefined;
  /** Lets messages and details of errors through; for the tiered envelope, which keeps both back. */
  readonly exposeError?: ExposeError | undefined;
}

/** Calls an operation and writes what comes of it as a tool result; failures too, so that it never throws for one. */
export type ToolCaller = <const T extends AnyOperation | string>(
  target: T,
  ...rest: CallArguments<T, ExecuteOptions>
) => Promise<CallToolResult>;

/** Wraps the operations of a registry so that every call answers in one of the published formats. */
export function createToolCaller(executor: Executor, options: ToolCallerOptions): ToolCaller {
  const { format, residual = true } = options;
  if ((format as string) === "response-envelope") {
    throw new TypeError(
      "A response envelope is no tool result; call execute() for one, or choose another format.",
    );
  }
  codecOf(format);
  return async (target, ...rest) => {
    const [input, callOptions] = rest as [unknown, ExecuteOptions?];
    const call = await end(executor, idOf(target), input, callOptions ?? {});
    return writeCall(call, options, (result) => encodeResult(result, format, { residual }));
  };
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

async function end(
  executor: Executor,
  operationId: string,
  input: unknown,
  options: ExecuteOptions,
): Promise<EndedCall> {
  const requestId = isRequestId(options.requestId) ? options.requestId : createRequestId();
  const startedAt = monotonicNow();
  const outcome = await execute(executor, operationId, input, { ...options, requestId });
  const durationMs = Math.max(0, monotonicNow() - startedAt);
  const isMissing = "error" in outcome && outcome.error.code === "OPERATION_NOT_FOUND";
  const operation = isMissing ? undefined : executor.get(operationId);
  return { operationId, operation, requestId, identity: options.identity, durationMs, outcome };
}

async function execute(
  executor: Executor,
  operationId: string,
  input: unknown,
  options: ExecuteOptions,
): Promise<EndedCall["outcome"]> {
  try {
    return { envelope: await executor.execute(operationId, input, options) };
  } catch (thrown) {
    return { error: toCallError(thrown) };
  }
}

/** Data that cannot be written is a failure like any other, and is told as one. */
function writeCall(
  call: EndedCall,
  options: ToolCallerOptions,
  write: (result: ToolResult) => CallToolResult,
): CallToolResult {
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

function prepare(call: EndedCall, { format, capabilities, exposeError }: ToolCallerOptions): ToolResult {
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
