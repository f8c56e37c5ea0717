import { CallError } from "../../../core/errors/errors.ts";
import { randomId } from "../../../core/execution/call-context.ts";
import { asJson, isPlainObject } from "../../../core/json/json-value.ts";
import type { AnyOperation } from "../../../core/operation/operation-types.ts";
import type { EndedCall } from "../../../core/result/ended-call.ts";
import type { ResultFormat } from "../../../core/result/result-reader.ts";
import { type CallToolResult, textBlock } from "../../../core/result/tool-result.ts";
import { toOperationSchema } from "../../../core/schema/any-schema.ts";
import type { JsonSchemaObject } from "../../../core/schema/json-schema.ts";
import { cleanText } from "../../../core/text/clean-text.ts";
import { OPERATION_META_KEY } from "../../names.ts";
import { invalidParams, quoted } from "../../protocol/messages.ts";
import type { PeerRequest } from "../peer-request.ts";
import { pageOf } from "../resources/resource-directory.ts";
import { toErrorText } from "../results/plain-format.ts";
import { toResult, withinLimits, withOutcome } from "../results/to-result.ts";
import { planOf, runPlanned, type ToolWork } from "../tasks/task-calls.ts";
import { inputOf, toShownSchema } from "./describe-tool.ts";
import { toModernSchema } from "./served-schema.ts";
import type { ServedTools } from "./served-tools.ts";
import { endOperation, isHidden, mayCall, type ToolCallScope } from "./tool-calls.ts";

/** Calls in one batch, and how many of them run at a time. */
const BATCH_LIMITS = { calls: 50, concurrency: 8 } as const;

const MAX_FOUND = 100;
const READ_ONLY = { readOnlyHint: true, openWorldHint: false };
const ID = { type: "string", description: "The id of an operation, as search gives it." };
const INPUT = { description: "The input of the operation, as describe says." };

/** The tools of a catalogue: they find and call operations that are too many to list. */
export const CATALOGUE_TOOLS = [
  tool(
    "search",
    "Finds operations by words in their names, titles, tags, descriptions and parameters, the best first.",
    {
      annotations: READ_ONLY,
      properties: {
        query: { type: "string", description: "What is looked for, in a few words." },
        limit: { type: "integer", minimum: 1, maximum: MAX_FOUND, default: 20 },
      },
      required: ["query"],
    },
  ),
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
  const { items, ...rest } = pageOf(CATALOGUE_TOOLS, keyOf, { cursor, pageSize: served.limits.pageSize });
  const canBeTask = served.tasks !== undefined && request.peer.era === "legacy";
  const tools = canBeTask
    ? items.map((tool) =>
        tool["name"] === "call" ? { ...tool, execution: { taskSupport: "optional" } } : tool,
      )
    : items;
  return { tools, ...rest };
}

/** Answers `tools/call` where the tools are those of a catalogue. */
export async function callCatalogue(
  served: ServedTools,
  request: PeerRequest,
  params: Readonly<Record<string, unknown>>,
): Promise<object> {
  const { name } = params;
  const args = params["arguments"] ?? {};
  if (!isPlainObject(args)) throw invalidParams("The arguments of a call must be an object.");
  const format = served.formatFor(request);
  switch (name) {
    case "search":
      return await send(await search(served, request, args), { served, request, name });
    case "describe":
      return await send(describe({ served, request, format }, args), { served, request, name });
    case "call":
      return await (callAsTask({ served, request, format }, args, params) ??
        request.run(
          "tools/call",
          name,
          (run, exchange) => call({ served, request, run, exchange }, args, format),
          mayCall(served, idsOf([args], served)),
        ));
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

async function search(
  { executor, search }: ServedTools,
  request: PeerRequest,
  args: Record<string, unknown>,
): Promise<CallToolResult> {
  const { query, limit = 20 } = args;
  if (typeof query !== "string") return refusal('"query" must be a string.');
  if (!Number.isInteger(limit) || (limit as number) < 1 || (limit as number) > MAX_FOUND) {
    return refusal(`"limit" must be an integer from 1 to ${MAX_FOUND}.`);
  }
  const visible = executor.list({ identity: request.identity });
  const found = await search.find(visible, query, { limit: limit as number });
  const operations = found.map(({ id, title, description, type, tags }) => ({
    id,
    type,
    ...(title !== undefined && { title: cleanText(title).text }),
    description: cleanText(description).text,
    ...(tags !== undefined && tags.length > 0 && { tags }),
  }));
  return answer({ operations });
}

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

/** Answers a call that is a task, or may become one; nothing for any other, and for what this caller may not see. */
function callAsTask(
  { served, request, format }: DescribeScope,
  args: Record<string, unknown>,
  params: Readonly<Record<string, unknown>>,
): Promise<object> | undefined {
  if (served.tasks === undefined) return undefined;
  const { id, input } = args;
  const { identity } = request;
  const operation = served.executor.list({ identity }).find((listed) => listed.id === id);
  if (operation === undefined || operation.visibility === "internal") return undefined;
  const plan = planOf(served, request, operation, params);
  if (plan === undefined) return undefined;
  const work: ToolWork = {
    name: "call",
    operation,
    input: bareInput(operation, input),
    format,
    mayGoOn: mayCall(served, [operation.id]),
    end: (run, exchange) => endOperation({ served, request, run, exchange }, operation, work.input),
    write: (ended) => writeCall({ served, request, operation, format }, ended),
  };
  return runPlanned(served, request, work, plan);
}

/** Writes what a call came to; what the caller may not see by then is as if it were not there. */
async function writeCall(
  options: { readonly operation: AnyOperation } & DescribeScope,
  ended: EndedCall,
): Promise<CallToolResult> {
  const { served, request } = options;
  if ("error" in ended.outcome) request.assertCapable(ended.outcome.error);
  if (!isHidden(served, ended)) return await toResult(ended, options);
  const { ended: none } = missing(request, ended.operationId);
  return withOutcome("error" in none.outcome ? toErrorText(none.outcome.error) : refusal(""), none);
}

/** An operation that takes an object takes an empty one where nothing is given. */
function bareInput(operation: AnyOperation, input: unknown): unknown {
  const isBare = input === undefined && operation.inputSchema !== undefined && !inputOf(operation).wrapped;
  return isBare ? {} : input;
}

async function call(
  scope: ToolCallScope,
  args: Record<string, unknown>,
  format: ResultFormat,
): Promise<CallToolResult> {
  const { served, request } = scope;
  const { ended, operation } = await end(scope, args);
  if ("error" in ended.outcome) request.assertCapable(ended.outcome.error);
  if (operation !== undefined) return await toResult(ended, { served, request, operation, format });
  return withOutcome("error" in ended.outcome ? toErrorText(ended.outcome.error) : refusal(""), ended);
}

async function batch(scope: ToolCallScope, { calls }: Record<string, unknown>): Promise<CallToolResult> {
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
async function end(scope: ToolCallScope, { id, input }: Readonly<Record<string, unknown>>): Promise<Ended> {
  const { served, request } = scope;
  const operationId = typeof id === "string" ? id : "";
  const operation = served.executor.get(operationId);
  if (operation === undefined || operation.visibility === "internal") return missing(request, operationId);
  const ended = await endOperation(scope, operation, bareInput(operation, input));
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
