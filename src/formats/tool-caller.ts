import { toCallError } from "../core/errors/errors.ts";
import { isRequestId } from "../core/execution/call-scope.ts";
import { monotonicNow } from "../core/execution/deadline.ts";
import type { AnyOperation } from "../core/operation/operation-types.ts";
import type { ExecuteOptions, Executor } from "../core/registry/executor.ts";
import type { FormatName, ToolResult } from "../core/result/tool-result.ts";
import { toOperationSchema } from "../core/schema/any-schema.ts";
import type { JsonSchemaObject } from "../core/schema/json-schema.ts";
import type { CallToolResult } from "./call-tool-result.ts";
import { type EndedCall, fromEndedCall } from "./ended-call.ts";
import { codecOf } from "./formats.ts";
import { createToolResponseEnvelopeSchema } from "./status-envelope/response-schema.ts";
import { createRequestId } from "./tiered-envelope/request-id.ts";
import { type ExposeError, withSafeError } from "./tiered-envelope/safe-error.ts";
import { ENVELOPE_CAPABILITY } from "./tiered-envelope/tiered-envelope.ts";
import { createTieredEnvelopeSchema } from "./tiered-envelope/tiered-schema.ts";

/** A format that rides in a tool result. */
export type ToolFormat = Exclude<FormatName, "response-envelope">;

/** How calls are written down. */
export interface ToolCallerOptions {
  readonly format: ToolFormat;
  /** What the tools can do beyond the format itself; for the tiered envelope. */
  readonly capabilities?: readonly string[] | undefined;
  /** Lets messages and details of errors through; for the tiered envelope, which keeps both back. */
  readonly exposeError?: ExposeError | undefined;
}

/** Calls an operation and writes what comes of it as a tool result; failures too, so that it never throws for one. */
export type ToolCaller = (
  target: AnyOperation | string,
  input?: unknown,
  options?: ExecuteOptions,
) => Promise<CallToolResult>;

/** Wraps the operations of a registry so that every call answers in one of the published formats. */
export function createToolCaller(executor: Executor, options: ToolCallerOptions): ToolCaller {
  const codec = codecOf(options.format);
  return async (target, input, callOptions = {}) => {
    const call = await end(executor, target, input, callOptions);
    return codec.encode(prepare(call, options));
  };
}

/** The schema to advertise for an operation whose results are written in a format; nothing where there is none. */
export function toolOutputSchema(
  { outputSchema }: AnyOperation,
  format: ToolFormat,
): JsonSchemaObject | undefined {
  switch (format) {
    case "tiered-envelope":
      return createTieredEnvelopeSchema(outputSchema ?? {});
    case "status-envelope":
      return createToolResponseEnvelopeSchema(outputSchema ?? {});
    case "mcp": {
      const json = outputSchema === undefined ? undefined : toOperationSchema(outputSchema, "output").json;
      return typeof json === "object" ? json : undefined;
    }
    case "tool-envelope":
      return undefined;
  }
}

async function end(
  executor: Executor,
  target: AnyOperation | string,
  input: unknown,
  options: ExecuteOptions,
): Promise<EndedCall> {
  const operationId = typeof target === "string" ? target : target.id;
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

function prepare(call: EndedCall, { format, capabilities = [], exposeError }: ToolCallerOptions): ToolResult {
  const result = fromEndedCall(call);
  if (format !== "tiered-envelope") return result;
  return {
    ...withSafeError(result, call.operation, exposeError),
    capabilities: [ENVELOPE_CAPABILITY, ...capabilities.filter((name) => name !== ENVELOPE_CAPABILITY)],
  };
}
