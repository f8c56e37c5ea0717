import type { InputRequiredResult } from "@modelcontextprotocol/server";
import { CallError } from "../../core/errors/errors.ts";
import { randomId } from "../../core/execution/request-id.ts";
import { asJson } from "../../core/json/as-json.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { CallToolResult } from "../../core/result/call-tool-result.ts";
import { textBlock } from "../../core/result/call-tool-result.ts";
import type { EndedCall } from "../../core/result/ended-call.ts";
import type { JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { endOperation, isHidden, toExecuteOptions, toResult } from "./call-tool.ts";
import { searchOperations } from "./catalogue-search.ts";
import { describeTool } from "./describe-tool.ts";
import type { Exchange } from "./exchange.ts";
import { withOutcome } from "./outcome-meta.ts";
import type { PeerRequest } from "./peer-request.ts";
import { plainFormat, toErrorText } from "./plain-format.ts";
import { invalidParams, quoted } from "./protocol-errors.ts";
import type { ServedTools } from "./served-tools.ts";
import type { SuspendableRun } from "./waiting-calls.ts";

/** Calls in one batch, and how many of them run at a time. */
export const BATCH_LIMITS = { calls: 50, concurrency: 8 } as const;

const MAX_FOUND = 100;
const READ_ONLY = { readOnlyHint: true, openWorldHint: false };
const ID = { type: "string", description: "The id of an operation, as search gives it." };
const INPUT = { description: "The input of the operation, as describe says." };

/** The tools of a catalogue: they find and call operations that are too many to list. */
export const CATALOGUE_TOOLS = [
  tool("search", "Finds operations by words in their ids, titles, tags and descriptions.", READ_ONLY, {
    properties: {
      query: { type: "string", description: "Words to look for." },
      limit: { type: "integer", minimum: 1, maximum: MAX_FOUND, default: 20 },
    },
    required: ["query"],
  }),
  tool(
    "describe",
    "Describes operations: what they do, the input they take and what they give back.",
    READ_ONLY,
    {
      properties: { id: ID, ids: { type: "array", items: ID, maxItems: BATCH_LIMITS.calls } },
    },
  ),
  tool("call", "Calls one operation.", {}, { properties: { id: ID, input: INPUT }, required: ["id"] }),
  tool(
    "batch",
    "Calls several operations at once; each answers for itself.",
    {},
    {
      properties: {
        calls: {
          type: "array",
          items: { type: "object", properties: { id: ID, input: INPUT }, required: ["id"] },
          minItems: 1,
          maxItems: BATCH_LIMITS.calls,
        },
      },
      required: ["calls"],
    },
  ),
] as const;

function tool(
  name: string,
  description: string,
  annotations: object,
  inputSchema: JsonSchemaObject,
): Readonly<Record<string, unknown>> {
  const schema = { type: "object", ...inputSchema, additionalProperties: false };
  return {
    name,
    description,
    inputSchema: schema,
    ...(Object.keys(annotations).length > 0 && { annotations }),
  };
}

/** Answers `tools/call` where the tools are those of a catalogue. */
export async function callCatalogue(
  served: ServedTools,
  request: PeerRequest,
  params: Readonly<Record<string, unknown>>,
): Promise<CallToolResult | InputRequiredResult> {
  const { name } = params;
  const args = params["arguments"] ?? {};
  if (!isPlainObject(args)) throw invalidParams("The arguments of a call must be an object.");
  switch (name) {
    case "search":
      return search(served, request, args);
    case "describe":
      return describe(served, request, args);
    case "call":
      return await request.run("tools/call", "call", (run, exchange) =>
        call(served, request, args, run, exchange),
      );
    case "batch":
      return await request.run("tools/call", "batch", (run, exchange) =>
        batch(served, request, args, run, exchange),
      );
    default:
      throw invalidParams(`Unknown tool: ${quoted(String(name))}.`);
  }
}

function search(
  { executor }: ServedTools,
  request: PeerRequest,
  args: Record<string, unknown>,
): CallToolResult {
  const { query, limit = 20 } = args;
  if (typeof query !== "string") return refusal('"query" must be a string.');
  if (!Number.isInteger(limit) || (limit as number) < 1 || (limit as number) > MAX_FOUND) {
    return refusal(`"limit" must be an integer from 1 to ${MAX_FOUND}.`);
  }
  const found = searchOperations(executor.list({ identity: request.identity }), query, limit as number);
  const operations = found.map(({ id, title, description, type, tags }) => ({
    id,
    type,
    ...(title !== undefined && { title }),
    description,
    ...(tags !== undefined && tags.length > 0 && { tags }),
  }));
  return answer({ operations });
}

function describe(served: ServedTools, request: PeerRequest, args: Record<string, unknown>): CallToolResult {
  const ids = [args["id"] ?? [], args["ids"] ?? []].flat();
  if (ids.length === 0 || ids.length > BATCH_LIMITS.calls || !ids.every((id) => typeof id === "string")) {
    return refusal(`Give an "id", or from 1 to ${BATCH_LIMITS.calls} "ids".`);
  }
  const visible = new Map<string, AnyOperation>(
    served.executor.list({ identity: request.identity }).map((found) => [found.id, found]),
  );
  const operations = ids.flatMap((id) => {
    const operation = visible.get(id);
    return operation === undefined ? [] : [describeOperation(operation)];
  });
  const unknown = ids.filter((id) => !visible.has(id));
  return answer({ operations, ...(unknown.length > 0 && { unknown }) });
}

function describeOperation(operation: AnyOperation): Record<string, unknown> {
  const { name: _, _meta: meta, ...shown } = describeTool(operation, "", "modern", plainFormat);
  return { id: operation.id, ...shown, _meta: meta };
}

async function call(
  served: ServedTools,
  request: PeerRequest,
  args: Record<string, unknown>,
  run: SuspendableRun,
  exchange: Exchange,
): Promise<CallToolResult> {
  const format = served.formatFor(request.context);
  const { ended, operation } = await end(served, request, args, run, exchange);
  if ("error" in ended.outcome) request.assertCapable(ended.outcome.error);
  if (operation !== undefined) return await toResult(served, request, ended, operation, format);
  return withOutcome("error" in ended.outcome ? toErrorText(ended.outcome.error) : refusal(""), ended);
}

async function batch(
  served: ServedTools,
  request: PeerRequest,
  { calls }: Record<string, unknown>,
  run: SuspendableRun,
  exchange: Exchange,
): Promise<CallToolResult> {
  if (!Array.isArray(calls) || calls.length === 0 || calls.length > BATCH_LIMITS.calls) {
    return refusal(`"calls" must be a list of 1 to ${BATCH_LIMITS.calls} calls.`);
  }
  const results = new Array<unknown>(calls.length);
  let next = 0;
  const work = async (): Promise<void> => {
    for (let i = next++; i < calls.length; i = next++) {
      const args = isPlainObject(calls[i]) ? calls[i] : {};
      results[i] = toEntry((await end(served, request, args, run, exchange)).ended);
    }
  };
  await Promise.all(Array.from({ length: BATCH_LIMITS.concurrency }, work));
  return answer({ results });
}

/** Ends one call; what the caller may not see is as if it were not there. */
async function end(
  served: ServedTools,
  request: PeerRequest,
  { id, input }: Readonly<Record<string, unknown>>,
  run: SuspendableRun,
  exchange: Exchange,
): Promise<{ readonly ended: EndedCall; readonly operation: AnyOperation | undefined }> {
  const operationId = typeof id === "string" ? id : "";
  const operation = served.executor.get(operationId);
  const missing = (): { readonly ended: EndedCall; readonly operation: undefined } => {
    const error = new CallError("OPERATION_NOT_FOUND", `There is no operation ${quoted(operationId)}.`);
    const known = { operationId, operation: undefined, identity: request.identity };
    return {
      ended: { ...known, requestId: randomId(), durationMs: 0, outcome: { error } },
      operation: undefined,
    };
  };
  if (operation === undefined || operation.visibility === "internal") return missing();
  const options = toExecuteOptions(request.context, request.identity, run, exchange, operationId);
  const given = input === undefined && operation.inputSchema !== undefined ? {} : input;
  const ended = await endOperation(served, operation, given, options, exchange);
  return isHidden(served, ended) ? missing() : { ended, operation };
}

function toEntry({ operationId: id, outcome }: EndedCall): Record<string, unknown> {
  if ("error" in outcome) return { id, outcome: "call-error", error: outcome.error.toJSON() };
  const { data, meta } = outcome.envelope;
  const { code, message, details } = meta.waybill ?? {};
  const isError = meta.isError === true;
  return {
    id,
    outcome: isError ? "tool-error" : "ok",
    ...(data !== undefined && { data: asJson(data) }),
    ...(isError && { error: { code, message, details } }),
  };
}

function answer(structuredContent: Record<string, unknown>): CallToolResult {
  return { content: [textBlock(JSON.stringify(structuredContent))], structuredContent };
}

function refusal(why: string): CallToolResult {
  return toErrorText(new CallError("VALIDATION_ERROR", why));
}
