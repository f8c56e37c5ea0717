import type { HTTPResponseMeta, ResponseEnvelope } from "../../core/envelope/response-meta.ts";
import { type CallError, isCallError } from "../../core/errors/errors.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { compileSchema } from "../../core/schema/compile-schema.ts";
import type { OperationPlan } from "../../openapi/client/plan.ts";
import { mediaFor, responseFor } from "../../openapi/client/response/declared-media.ts";
import { dataSchemaOf } from "../../openapi/client/response/output-schema.ts";
import { withDefinitions } from "../../openapi/client/response/schema-view.ts";
import { parseMediaType } from "../../openapi/media-types.ts";
import type { CheckList } from "./check-report.ts";
import { addFindings, type Finding } from "./findings.ts";
import { describeIssues } from "./mcp-result-checks.ts";
import { tryCompile } from "./mcp-tool-checks.ts";
import type { ApiOperation } from "./openapi-document-checks.ts";
import { sampleInput } from "./sample-input.ts";

/** Which operations are called, and how. */
export interface ApiCallPlan {
  /** Operations that are called whatever their method. */
  readonly named: ReadonlySet<ApiOperation>;
  readonly inputs: ReadonlyMap<ApiOperation, unknown>;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  onCall(label: string): void;
}

/** Operations that are called; an API with more is known well enough by then. */
const MOST_CALLED = 200;

/** Calls what may be called, and holds the answers against the document. */
export async function checkApiCalls(
  list: CheckList,
  operations: readonly ApiOperation[],
  plan: ApiCallPlan,
): Promise<void> {
  // Answers are judged as they came: nothing is mended on the way.
  const registry = new OperationRegistry([], { outputPolicy: "off", onWarning: () => {} });
  let called = 0;
  for (const one of operations) {
    const reason = whyNotCalled(one, plan, called);
    const input = reason === undefined ? inputFor(one, plan) : undefined;
    if (reason !== undefined || input === undefined) {
      list.skip("openapi.call", one.label, `Not called: ${reason ?? NO_SAMPLE}`);
      continue;
    }
    called += 1;
    plan.onCall(one.label);
    registry.register(one.operation);
    addFindings(list, one.label, await callOnce(registry, one, input, plan));
  }
}

const NO_SAMPLE = "no input could be made that passes its schema; give one with --input.";

function whyNotCalled(one: ApiOperation, plan: ApiCallPlan, called: number): string | undefined {
  const { method, type } = one.described;
  if (type === "subscription") return "it answers with a stream.";
  if (plan.named.has(one) || plan.inputs.has(one)) {
    const isSafe = method === "GET" || plan.named.has(one);
    return isSafe ? undefined : "it may change something; name it with --call.";
  }
  if (method !== "GET") return "it may change something; name it with --call.";
  if (called >= MOST_CALLED) return `${MOST_CALLED} operations were; name it with --call.`;
  const schema: unknown = one.operation.inputSchema;
  const required = isPlainObject(schema) ? schema["required"] : undefined;
  if (!Array.isArray(required) || required.length === 0) return undefined;
  return `it needs ${required.slice(0, 5).join(", ")}; give an input with --input.`;
}

function inputFor(one: ApiOperation, { inputs, named }: ApiCallPlan): unknown {
  if (inputs.has(one)) return inputs.get(one);
  if (!named.has(one)) return {};
  const compiled = tryCompile(one.operation.inputSchema ?? {});
  return "schema" in compiled ? sampleInput(compiled.schema) : {};
}

async function callOnce(
  registry: OperationRegistry,
  { operation, described }: ApiOperation,
  input: unknown,
  { timeoutMs, signal }: ApiCallPlan,
): Promise<readonly Finding[]> {
  const plan = described.plan();
  try {
    const options = { timeoutMs, ...(signal !== undefined && { signal }) };
    const envelope = (await registry.execute(operation.id, input as never, options)) as ResponseEnvelope;
    return judgeEnvelope(plan, envelope);
  } catch (thrown) {
    signal?.throwIfAborted();
    if (!isCallError(thrown)) throw thrown;
    return judgeFailure(plan, thrown);
  }
}

function judgeEnvelope(plan: OperationPlan, { data, meta }: ResponseEnvelope): readonly Finding[] {
  const { statusCode: status, contentType } = meta as HTTPResponseMeta;
  const answered: Finding = { id: "openapi.call", status: "pass", message: `It answered with ${status}.` };
  const hasBody = data !== undefined && data !== "";
  const inexact = (meta.waybill?.violations ?? []).filter(({ expected }) => /2\^53|exact/.test(expected));
  const odd: Finding[] = inexact.map(({ pointer }) => ({
    id: "openapi.response.schema",
    status: "warn",
    message: `The number at "${pointer}" is too large for many clients to keep; send it as a string.`,
  }));
  return [answered, ...judgeAnswer(plan, { status, type: contentType ?? "", data, hasBody }), ...odd];
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly data: unknown;
  readonly hasBody: boolean;
}

/** Holds an answer against what is declared for its status and media type. */
function judgeAnswer(plan: OperationPlan, { status, type, data, hasBody }: Answer): readonly Finding[] {
  const response = responseFor(plan, status);
  if (response === undefined) {
    const declared = plan.responses.map((one) => one.status).join(", ") || "none";
    const message = `It answered with ${status}, which is not declared (${declared}).`;
    return [{ id: "openapi.response.status", status: "fail", message }];
  }
  const findings: Finding[] = [
    { id: "openapi.response.status", status: "pass", message: `${status} is declared.` },
  ];
  if (!hasBody || plan.method === "HEAD" || response.content.length === 0) return findings;
  const media = mediaFor(response, parseMediaType(type).type);
  if (media === undefined) {
    const declared = response.content.map(({ mediaType }) => mediaType).join(", ");
    const message = `It answered ${status} as ${type || "nothing in particular"}; declared is ${declared}.`;
    return [...findings, { id: "openapi.response.media", status: "fail", message }];
  }
  findings.push({ id: "openapi.response.media", status: "pass", message: `${media.mediaType} is declared.` });
  const schema = dataSchemaOf(media, plan.definitions);
  if (schema === undefined) return findings;
  return [...findings, ...judgeData(withDefinitions(schema, plan.definitions), data)];
}

function judgeData(schema: unknown, data: unknown): readonly Finding[] {
  const id = "openapi.response.schema";
  let compiled: ReturnType<typeof compileSchema>;
  try {
    compiled = compileSchema(schema);
  } catch {
    // Told among the schemas of the document.
    return [];
  }
  const issues = compiled.errors(data);
  if (issues.length === 0) return [{ id, status: "pass", message: "The answer keeps its schema." }];
  const message = `The answer misses its schema: ${describeIssues(issues)}`;
  return [{ id, status: "fail", message, evidence: data }];
}

/** Statuses that say more of the caller than of the API. */
const CALLERS_FAULT = new Set([400, 401, 403, 404, 409, 410, 412, 422, 429]);

function judgeFailure(plan: OperationPlan, error: CallError): readonly Finding[] {
  const id = "openapi.call";
  const details = isPlainObject(error.details) ? error.details : {};
  const { status, body } = details;
  if (typeof status !== "number" || error.code === "OUTPUT_INVALID") {
    return [{ id, status: "fail", message: error.message, evidence: body }];
  }
  if (!CALLERS_FAULT.has(status)) {
    return [{ id, status: "fail", message: `It answered with ${status}.`, evidence: body }];
  }
  const hint =
    status === 401 || status === 403 ? " It wants credentials: see --token-env, or auth of a config." : "";
  const answered: Finding = { id, status: "pass", message: `It answered with ${status}.${hint}` };
  if (responseFor(plan, status) === undefined) {
    const message = `It answered with ${status}, which is not declared.`;
    return [answered, { id: "openapi.response.status", status: "warn", message }];
  }
  return [answered, { id: "openapi.response.status", status: "pass", message: `${status} is declared.` }];
}
