import type { HTTPResponseMeta, ResponseEnvelope } from "../../core/envelope/response-meta.ts";
import { type CallError, isCallError } from "../../core/errors/errors.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { compileSchema } from "../../core/schema/compile-schema.ts";
import { sampleInput } from "../../core/schema/sample-values.ts";
import { counted, didYouMean, nearestName } from "../../core/text/nearest-name.ts";
import { withDefinitions } from "../../openapi/client/definitions.ts";
import { readApi } from "../../openapi/client/document/read-api.ts";
import { createDocumentReader } from "../../openapi/client/fetch-document.ts";
import { fromOpenApi } from "../../openapi/client/from-openapi.ts";
import type { OpenApiOptions } from "../../openapi/client/openapi-options.ts";
import type { OpenApiSource } from "../../openapi/client/openapi-source.ts";
import type { IndexedApi, IndexedOperation, OperationPlan } from "../../openapi/client/plan.ts";
import { mediaFor, mediaSchemaOf, responseFor } from "../../openapi/client/response/output-schema.ts";
import { EXACT_NUMBER } from "../../openapi/client/response/response-body.ts";
import { parseMediaType } from "../../openapi/media-types.ts";
import { CommandError } from "../io.ts";
import { CheckList, type CheckOptions, type CheckReport } from "./check-report.ts";
import { addFindings, describeIssues, type Finding } from "./mcp-call-checks.ts";
import { tryCompile } from "./mcp-tool-checks.ts";
import { probeApi } from "./probe-api.ts";

/** How an OpenAPI document, and the API behind it, is checked. */
interface OpenApiCheckOptions extends CheckOptions {
  /** A path or an address. */
  readonly document: string;
  readonly api: Omit<OpenApiOptions, "namespace" | "keepIds" | "onWarning">;
  /** Nothing is called. */
  readonly offline: boolean;
  readonly calls: { readonly named: ReadonlySet<string>; readonly inputs: ReadonlyMap<string, unknown> };
}

const NAMESPACE = "api";

/** Checks a document, and what its API answers to calls that only read; never rejects because of either. */
export async function checkOpenApi(options: OpenApiCheckOptions): Promise<CheckReport> {
  const list = new CheckList({ target: options.target, kind: "openapi" }, options.mask);
  options.onProgress(`reading ${options.target}`);
  const read = await readDocument(list, options);
  if (read === undefined) return list.report;
  const { api, source } = read;
  try {
    list.describe({ name: api.title, version: api.version });
    const operations = operationsOf(api, source);
    const calls = resolveCalls(operations, options.calls);
    await checkDocument(list, { api, operations }, options.onProgress);
    if (options.offline) {
      list.skip("openapi.server", "", "Nothing was called, as --offline says.");
      list.notCalled("--offline says so");
    } else if (await isReachable(list, api, options)) {
      const { timeoutMs, signal, onProgress } = options;
      const onCall = (label: string) => onProgress(`calling ${label}`);
      await checkApiCalls(list, operations, { ...calls, timeoutMs, signal, onCall });
    }
  } finally {
    await source.close();
  }
  return list.report;
}

interface ReadDocument {
  readonly api: IndexedApi;
  readonly source: OpenApiSource;
}

async function readDocument(
  list: CheckList,
  options: OpenApiCheckOptions,
): Promise<ReadDocument | undefined> {
  const { document, api: how, timeoutMs } = options;
  const warnings = new Set<string>();
  const given: OpenApiOptions = {
    timeoutMs,
    retry: false,
    ...how,
    namespace: NAMESPACE,
    onWarning: (message) => void warnings.add(message),
  };
  try {
    const overlays = [how.overlay ?? []].flat();
    const fetchText = createDocumentReader(document, given);
    const source = await fromOpenApi(document, given);
    const api = await readApi(document, { overlays, limits: {}, fetchText }).catch(
      async (thrown: unknown) => {
        await source.close();
        throw thrown;
      },
    );
    list.pass("openapi.read", "", `Read "${api.title}" ${api.version}.`);
    for (const warning of warnings) list.warn("openapi.note", "", warning);
    return { api, source };
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    if (isCallError(thrown) && thrown.code !== "TOO_LARGE") list.unreachable("openapi.read", message);
    else list.fail("openapi.read", "", message);
    return undefined;
  }
}

/** What Waybill serves besides operations is none of the source's. */
function operationsOf(api: IndexedApi, source: OpenApiSource): readonly ApiOperation[] {
  const byId = new Map(source.operations.map((operation) => [operation.id as string, operation]));
  return api.operations.flatMap((described) => {
    const operation = byId.get(`${NAMESPACE}.${described.name}`);
    return operation === undefined ? [] : [{ label: labelOf(described), described, operation }];
  });
}

/** Finds the operations that are named by operationId, name, or method and path. */
function resolveCalls(operations: readonly ApiOperation[], { named, inputs }: OpenApiCheckOptions["calls"]) {
  const byName = new Map<string, ApiOperation>();
  for (const one of operations) {
    const { name, operationId } = one.described;
    for (const known of [one.label, name, operationId]) if (known !== undefined) byName.set(known, one);
  }
  const find = (wanted: string): ApiOperation => {
    const found = byName.get(wanted);
    if (found !== undefined) return found;
    const near = nearestName(wanted, [...byName.keys()].slice(0, 5_000));
    const hint = didYouMean(near, '; name it by operationId, or as "GET /path".');
    throw new CommandError(`There is no operation "${wanted}"${hint}`);
  };
  return {
    named: new Set([...named].map(find)),
    inputs: new Map([...inputs].map(([name, input]) => [find(name), input] as const)),
  };
}

async function isReachable(list: CheckList, api: IndexedApi, options: OpenApiCheckOptions): Promise<boolean> {
  const id = "openapi.server";
  const probe = await probeApi(api, options);
  switch (probe.kind) {
    case "up":
      list.pass(id, "", `${probe.origin} can be reached.`);
      return true;
    case "nowhere":
      list.warn(id, "", probe.message);
      list.notCalled("it is not known where the API is");
      return false;
    case "private": {
      const message = `Nothing was called: ${probe.place} is at a private or reserved address, where a document leads nobody unasked.`;
      const fix = `If you mean it: --allow-private, --base-url ${probe.origin}, or allowPrivate of a config.`;
      list.warn(id, "", message, { fix });
      list.notCalled("the API is at a private address");
      return false;
    }
    case "down": {
      const message = `${probe.origin} cannot be reached. ${probe.message}`;
      if (options.api.baseUrl === undefined) list.warn(id, "", message);
      else list.unreachable(id, message);
      list.notCalled("the API cannot be reached");
      return false;
    }
  }
}

/** An operation of the document, and what it became. */
interface ApiOperation {
  /** How people know it: method and path. */
  readonly label: string;
  readonly described: IndexedOperation;
  readonly operation: AnyOperation;
}

/** Names an operation by method and path. */
function labelOf({ method, path }: Pick<IndexedOperation, "method" | "path">): string {
  return `${method} ${path}`;
}

/** Checks what a document says, without calling anything. */
async function checkDocument(
  list: CheckList,
  { api, operations }: { readonly api: IndexedApi; readonly operations: readonly ApiOperation[] },
  onProgress: (text: string) => void,
): Promise<void> {
  for (const { name, reason } of api.unusable) list.fail("openapi.operation", name, reason);
  if (api.unusable.length === 0) {
    list.pass(
      "openapi.operation",
      "",
      `${counted(operations.length, "operation")}, each of which can be used.`,
    );
  }
  checkOperationIds(list, operations);
  let count = 0;
  for (const one of operations) {
    count += 1;
    if (count % 100 === 0) {
      onProgress(`reading operations: ${count} of ${operations.length}`);
      // Others get a turn: a document may hold thousands.
      await new Promise((resolve) => setImmediate(resolve));
    }
    const plan = one.described.plan();
    for (const note of plan.notes) list.warn("openapi.note", one.label, note);
    checkSecurity(list, one.label, plan);
    checkSchemas(list, one);
  }
}

function checkOperationIds(list: CheckList, operations: readonly ApiOperation[]): void {
  const id = "openapi.operation-id";
  const owners = new Map<string, string[]>();
  const without: string[] = [];
  for (const { label, described } of operations) {
    const { operationId } = described;
    if (operationId === undefined) without.push(label);
    else owners.set(operationId, [...(owners.get(operationId) ?? []), label]);
  }
  const repeated = [...owners].filter(([, labels]) => labels.length > 1);
  for (const [operationId, labels] of repeated) {
    list.fail(id, operationId, `${labels.length} operations have this operationId.`, { evidence: labels });
  }
  for (const label of without)
    list.warn(id, label, "It has no operationId; its name is made of method and path.");
  if (repeated.length + without.length === 0 && operations.length > 0) {
    list.pass(id, "", "Every operation has an operationId of its own.");
  }
}

function checkSecurity(list: CheckList, label: string, plan: OperationPlan): void {
  const id = "openapi.security";
  const names = new Set(plan.security.flatMap((alternative) => Object.keys(alternative)));
  if (names.size === 0) return;
  let isRight = true;
  for (const name of names) {
    const scheme = Object.hasOwn(plan.schemes, name) ? plan.schemes[name] : undefined;
    if (scheme !== undefined && scheme.type !== "unknown") continue;
    isRight = false;
    const what = scheme === undefined ? "is not declared" : "is of a type that OpenAPI does not know";
    list.fail(id, label, `The security scheme "${name}" ${what}.`);
  }
  if (isRight) list.pass(id, label, `It asks for ${[...names].join(", ")}.`);
}

function checkSchemas(list: CheckList, { label, operation }: ApiOperation): void {
  const id = "openapi.schema";
  let isRight = true;
  for (const side of ["inputSchema", "outputSchema"] as const) {
    const schema = operation[side];
    if (schema === undefined) continue;
    const compiled = tryCompile(schema);
    if ("schema" in compiled) continue;
    isRight = false;
    const what = side === "inputSchema" ? "what it takes" : "what it answers";
    list.fail(id, label, `The schema of ${what} cannot be used. ${compiled.reason}`);
  }
  if (isRight) list.pass(id, label, "Its schemas can be used.");
}

/** Which operations are called, and how. */
interface ApiCallPlan {
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
async function checkApiCalls(
  list: CheckList,
  operations: readonly ApiOperation[],
  plan: ApiCallPlan,
): Promise<void> {
  const { timeoutMs, signal } = plan;
  const options = { timeoutMs, ...(signal !== undefined && { signal }) };
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
    const call = () => registry.execute(one.operation.id, input as never, options);
    addFindings(list, one.label, await judgeCall(one.described.plan(), call, signal));
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
  if (!("schema" in compiled)) return {};
  const sample = sampleInput(compiled.schema);
  return sample.isAccepted ? sample.value : undefined;
}

async function judgeCall(
  plan: OperationPlan,
  call: () => Promise<unknown>,
  signal: AbortSignal | undefined,
): Promise<readonly Finding[]> {
  try {
    return judgeEnvelope(plan, (await call()) as ResponseEnvelope);
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
  const inexact = (meta.waybill?.violations ?? []).filter(({ expected }) => expected === EXACT_NUMBER);
  const odd: Finding[] = inexact.map(({ pointer }) => ({
    id: "openapi.response.schema",
    status: "warn",
    message: `The number at "${pointer}" is too large for many clients to keep; send it as a string.`,
  }));
  const answer: Answer = {
    status,
    type: contentType ?? "",
    data,
    hasBody,
    isToolError: meta.isError === true,
  };
  return [answered, ...judgeAnswer(plan, answer), ...odd];
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly data: unknown;
  readonly hasBody: boolean;
  /** Then `data` is what the problem carried, and the problem itself is not known any more. */
  readonly isToolError: boolean;
}

/** Holds an answer against what is declared for its status and media type. */
function judgeAnswer(
  plan: OperationPlan,
  { status, type, data, hasBody, isToolError }: Answer,
): readonly Finding[] {
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
  const schema = mediaSchemaOf(media, plan.definitions);
  if (schema === undefined || isToolError) return findings;
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
