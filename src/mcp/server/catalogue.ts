import { CallError } from "../../core/errors/errors.ts";
import { randomId } from "../../core/execution/request-id.ts";
import { asJson } from "../../core/json/as-json.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { CallToolResult } from "../../core/result/call-tool-result.ts";
import { textBlock } from "../../core/result/call-tool-result.ts";
import type { EndedCall } from "../../core/result/ended-call.ts";
import type { ResultFormat } from "../../core/result/result-format.ts";
import { toOperationSchema } from "../../core/schema/any-schema.ts";
import type { JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { cleanText } from "../../core/text/clean-text.ts";
import { OPERATION_META_KEY } from "../meta-keys.ts";
import { type CallScope, endOperation, isHidden, mayCall } from "./call-tool.ts";
import { searchOperations } from "./catalogue-search.ts";
import { inputOf, toShownSchema } from "./describe-tool.ts";
import { toModernSchema } from "./modern-schema.ts";
import { withOutcome } from "./outcome-meta.ts";
import { pageOf } from "./page-cursor.ts";
import type { PeerRequest } from "./peer-request.ts";
import { toErrorText } from "./plain-format.ts";
import { invalidParams, quoted } from "./protocol-errors.ts";
import type { ServedTools } from "./served-tools.ts";
import { toResult, withinLimits } from "./to-result.ts";
import type { InputRequiredResult } from "./waiting-calls.ts";

/** Calls in one batch, and how many of them run at a time. */
const BATCH_LIMITS = { calls: 50, concurrency: 8 } as const;

const MAX_FOUND = 100;
const READ_ONLY = { readOnlyHint: true, openWorldHint: false };
const ID = { type: "string", description: "The id of an operation, as search gives it." };
const INPUT = { description: "The input of the operation, as describe says." };

/** The tools of a catalogue: they find and call operations that are too many to list. */
const CATALOGUE_TOOLS = [
  tool("search", "Finds operations by words in their ids, titles, tags and descriptions.", {
    annotations: READ_ONLY,
    properties: {
      query: { type: "string", description: "Words to look for." },
      limit: { type: "integer", minimum: 1, maximum: MAX_FOUND, default: 20 },
    },
    required: ["query"],
  }),
  tool("describe", "Describes operations: what they do, the input they take and what they give back.", {
    annotations: READ_ONLY,
    properties: { id: ID, ids: { type: "array", items: ID, maxItems: BATCH_LIMITS.calls } },
  }),
  tool("call", "Calls one operation.", { properties: { id: ID, input: INPUT }, required: ["id"] }),
  tool("batch", "Calls several operations at once; each answers for itself, with its data as it is.", {
    properties: {
      calls: {
        type: "array",
        items: { type: "object", properties: { id: ID, input: INPUT }, required: ["id"] },
        minItems: 1,
        maxItems: BATCH_LIMITS.calls,
      },
    },
    required: ["calls"],
  }),
] as const;

function tool(
  name: string,
  description: string,
  { annotations, ...input }: JsonSchemaObject,
): Readonly<Record<string, unknown>> {
  const inputSchema = { type: "object", ...input, additionalProperties: false };
  return { name, description, inputSchema, ...(annotations !== undefined && { annotations }) };
}

/** Answers `tools/list` where the tools are those of a catalogue. */
export function listCatalogue(
  served: ServedTools,
  request: PeerRequest,
  cursor: unknown,
): { readonly tools: readonly object[]; readonly nextCursor?: string } {
  // What results will be written in must be known here too.
  served.formatFor(request);
  const keyOf = (item: (typeof CATALOGUE_TOOLS)[number]): string => String(CATALOGUE_TOOLS.indexOf(item));
  const { items, ...rest } = pageOf(CATALOGUE_TOOLS, keyOf, cursor, served.limits.pageSize);
  return { tools: items, ...rest };
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
  const format = served.formatFor(request);
  switch (name) {
    case "search":
      return await send(search(served, request, args), { served, request, name });
    case "describe":
      return await send(describe({ served, request, format }, args), { served, request, name });
    case "call":
      return await request.run(
        "tools/call",
        name,
        (run, exchange) => call({ served, request, run, exchange }, args, format),
        mayCall(served, idsOf([args], served)),
      );
    case "batch": {
      const operations = idsOf(args["calls"], served);
      return await request.run(
        "tools/call",
        name,
        async (run, exchange) =>
          send(await batch({ served, request, run, exchange }, args), {
            served,
            request,
            name,
            operations,
          }),
        mayCall(served, operations),
      );
    }
    default:
      throw invalidParams(`Unknown tool: ${quoted(String(name))}.`);
  }
}

/** What an answer of the catalogue is sent for. */
interface Sending {
  readonly served: ServedTools;
  readonly request: PeerRequest;
  readonly name: string;
  /** Whose results are in it. @default none */
  readonly operations?: readonly string[];
}

/** Answers of the catalogue itself are bounded like those of operations. */
function send(
  result: CallToolResult,
  { served, request, name, operations = [] }: Sending,
): Promise<CallToolResult> {
  const store = served.stored?.for(request, operations);
  return withinLimits(result, served, { isPromised: false, name, store });
}

/** The operations that the calls of a batch are of. */
function idsOf(calls: unknown, { executor }: ServedTools): readonly string[] {
  const ids = (Array.isArray(calls) ? calls : []).map((call) =>
    isPlainObject(call) ? call["id"] : undefined,
  );
  return [...new Set(ids)].filter(
    (id): id is string => typeof id === "string" && executor.get(id) !== undefined,
  );
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
    ...(title !== undefined && { title: cleanText(title).text }),
    description: cleanText(description).text,
    ...(tags !== undefined && tags.length > 0 && { tags }),
  }));
  return answer({ operations });
}

/** For whom operations are described, and what their results are written in. */
interface DescribeScope {
  readonly served: ServedTools;
  readonly request: PeerRequest;
  readonly format: ResultFormat;
}

function describe(scope: DescribeScope, args: Record<string, unknown>): CallToolResult {
  const ids = [args["id"] ?? [], args["ids"] ?? []].flat();
  if (ids.length === 0 || ids.length > BATCH_LIMITS.calls || !ids.every((id) => typeof id === "string")) {
    return refusal(`Give an "id", or from 1 to ${BATCH_LIMITS.calls} "ids".`);
  }
  const { served, request } = scope;
  const visible = new Map<string, AnyOperation>(
    served.executor.list({ identity: request.identity }).map((found) => [found.id, found]),
  );
  const operations = ids.flatMap((id) => {
    const operation = visible.get(id);
    return operation === undefined ? [] : [describeOperation(scope, operation)];
  });
  const unknown = ids.filter((id) => !visible.has(id));
  return answer({ operations, ...(unknown.length > 0 && { unknown }) });
}

/** Describes what `call` takes and gives: input of any kind goes in as it is, results come as this peer takes them. */
function describeOperation({ served, request, format }: DescribeScope, operation: AnyOperation): object {
  const { name: _, ...shown } = served.table.toolOf(operation, request.peer.era, format);
  const { id, inputSchema } = operation;
  if (inputSchema === undefined || !inputOf(operation).wrapped) return { id, ...shown };
  const { json } = toOperationSchema(inputSchema, "input");
  const { wrapsInput: __, ...facts } = shown._meta[OPERATION_META_KEY] as Record<string, unknown>;
  return {
    id,
    ...shown,
    inputSchema: typeof json === "boolean" ? json : toShownSchema(toModernSchema(json)),
    _meta: { ...shown._meta, [OPERATION_META_KEY]: facts },
  };
}

async function call(
  scope: CallScope,
  args: Record<string, unknown>,
  format: ResultFormat,
): Promise<CallToolResult> {
  const { served, request } = scope;
  const { ended, operation } = await end(scope, args);
  if ("error" in ended.outcome) request.assertCapable(ended.outcome.error);
  if (operation !== undefined) return await toResult(ended, { served, request, operation, format });
  return withOutcome("error" in ended.outcome ? toErrorText(ended.outcome.error) : refusal(""), ended);
}

async function batch(scope: CallScope, { calls }: Record<string, unknown>): Promise<CallToolResult> {
  if (!Array.isArray(calls) || calls.length === 0 || calls.length > BATCH_LIMITS.calls) {
    return refusal(`"calls" must be a list of 1 to ${BATCH_LIMITS.calls} calls.`);
  }
  const results = new Array<unknown>(calls.length);
  let next = 0;
  const work = async (): Promise<void> => {
    for (let i = next++; i < calls.length; i = next++) {
      const args = isPlainObject(calls[i]) ? calls[i] : {};
      results[i] = toEntry((await end(scope, args)).ended);
    }
  };
  await Promise.all(Array.from({ length: BATCH_LIMITS.concurrency }, work));
  return answer({ results });
}

/** A call that has ended; without an operation where the caller may see none. */
interface Ended {
  readonly ended: EndedCall;
  readonly operation: AnyOperation | undefined;
}

/** Ends one call; what the caller may not see is as if it were not there. */
async function end(scope: CallScope, { id, input }: Readonly<Record<string, unknown>>): Promise<Ended> {
  const { served, request } = scope;
  const operationId = typeof id === "string" ? id : "";
  const operation = served.executor.get(operationId);
  if (operation === undefined || operation.visibility === "internal") return missing(request, operationId);
  const isBare = input === undefined && operation.inputSchema !== undefined && !inputOf(operation).wrapped;
  const ended = await endOperation(scope, operation, isBare ? {} : input);
  return isHidden(served, ended) ? missing(request, operationId) : { ended, operation };
}

function missing({ identity }: PeerRequest, operationId: string): Ended {
  const error = new CallError("OPERATION_NOT_FOUND", `There is no operation ${quoted(operationId)}.`);
  const known = { operationId, operation: undefined, identity };
  return {
    ended: { ...known, requestId: randomId(), durationMs: 0, outcome: { error } },
    operation: undefined,
  };
}

function toEntry({ operationId: id, outcome }: EndedCall): Record<string, unknown> {
  if ("error" in outcome) return { id, outcome: "call-error", error: outcome.error.toJSON() };
  const { data, meta } = outcome.envelope;
  const { code, message, details, said } = meta.waybill ?? {};
  const isError = meta.isError === true;
  return {
    id,
    outcome: isError ? "tool-error" : "ok",
    ...(data !== undefined && { data: asJson(data) }),
    ...(isError && { error: { code, message, details } }),
    ...(said !== undefined && { said }),
  };
}

function answer(structuredContent: Record<string, unknown>): CallToolResult {
  return { content: [textBlock(JSON.stringify(structuredContent))], structuredContent };
}

function refusal(why: string): CallToolResult {
  return toErrorText(new CallError("VALIDATION_ERROR", why));
}
