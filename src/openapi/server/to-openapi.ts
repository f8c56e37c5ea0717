import { createHash } from "node:crypto";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { Executor } from "../../core/registry/executor.ts";
import { componentName } from "../component-schemas.ts";
import { DATA_TYPE, ENVELOPE_TYPE } from "../media-types.ts";
import { formatType } from "./accept.ts";
import { checkExecutor, checkToOpenApiOptions } from "./check-document-options.ts";
import { BUILT_IN_IDS, builtInPaths } from "./document/built-in-paths.ts";
import { type DescribedApi, describeOperation } from "./document/describe-operation.ts";
import type {
  DescribedOperation,
  DocumentObject,
  OpenApiDocument,
  PathItem,
} from "./document/openapi-document.ts";
import { FreeNames, SchemaComponents } from "./document/schema-components.ts";
import {
  SHARED_HEADERS,
  SHARED_PARAMETERS,
  SHARED_RESPONSES,
  SHARED_SCHEMAS,
  sharedRef,
} from "./document/shared-components.ts";
import type { ToOpenApiOptions } from "./http-handler-options.ts";
import { operationPath } from "./input-place.ts";
import { takeSteps } from "./take-steps.ts";

export type { OpenApiDocument } from "./document/openapi-document.ts";

/** Describes the operations a caller may see as an HTTP API, the way `createHttpHandler` serves them; the same each time. */
export function toOpenApi(executor: Executor, options: ToOpenApiOptions = {}): OpenApiDocument {
  checkExecutor(executor, "toOpenApi");
  checkToOpenApiOptions(options);
  return takeSteps(describeApi(executor, options));
}

/** Where an API is that is served beside its document. */
export const BESIDE = ".";

/** Options that were checked; `asksCallers` tells whether callers are asked who they are, in whatever way. */
export type DescribeApiOptions = ToOpenApiOptions & { readonly asksCallers?: boolean | undefined };

/** The same, step by step: whoever takes the steps may do something else after each operation. */
export function* describeApi(
  executor: Executor,
  options: DescribeApiOptions,
): Generator<undefined, OpenApiDocument, undefined> {
  const { info = {}, servers = [BESIDE], basePath = "/api", identity, formats = [], auth = {} } = options;
  const operations = [...executor.list({ identity })].sort((a, b) => (a.id < b.id ? -1 : 1));
  const components = new SchemaComponents();
  for (const [name, schema] of Object.entries(SHARED_SCHEMAS)) components.add(name, schema);
  const schemes = securitySchemes(auth);
  const names = Object.keys(schemes);
  const { asksCallers = names.length > 0, examples = {} } = options;
  const warn = toWarner(options.onWarning);
  const nameOf = createNames(operations);
  const api = { components, nameOf, authenticated: asksCallers, warn, examples };
  const described = yield* describePaths(operations, basePath, api);
  const { paths, parameters, responses } = shareRepeated(described);
  return {
    openapi: "3.1.1",
    info: {
      title: info.title ?? "Waybill",
      version: info.version ?? "1.0.0",
      ...(info.description !== undefined && { description: info.description }),
    },
    servers: servers.map((url) => ({ url })),
    tags: tagsOf(paths),
    ...(names.length > 0 && { security: names.map((name) => ({ [name]: [] })) }),
    paths,
    components: {
      schemas: components.toJson(),
      headers: SHARED_HEADERS,
      parameters: { ...SHARED_PARAMETERS, ...parameters },
      responses: { ...SHARED_RESPONSES, ...responses },
      ...(names.length > 0 && { securitySchemes: schemes }),
    },
    "x-waybill": {
      mediaTypes: [ENVELOPE_TYPE, DATA_TYPE, ...formats.map(({ name }) => formatType(name))],
      ...(options.servers === undefined && { base: BESIDE }),
    },
  };
}

type Paths = Readonly<Record<string, PathItem>>;

/** Names operations by their ids; generators make one name of ids that differ only in signs or case, so those get a digest. */
function createNames(operations: readonly AnyOperation[]): DescribedApi["nameOf"] {
  const counts = new Map<string, number>();
  for (const id of [...BUILT_IN_IDS, ...operations.map((operation) => operation.id)]) {
    counts.set(lettersOf(id), (counts.get(lettersOf(id)) ?? 0) + 1);
  }
  return ({ id }) =>
    counts.get(lettersOf(id)) === 1
      ? id
      : `${id}_${createHash("sha256").update(id).digest("hex").slice(0, 8)}`;
}

function lettersOf(id: string): string {
  return id.replace(/[^a-z0-9]/gi, "").toLowerCase();
}

/** Every tag that is used, in order. */
function tagsOf(paths: Paths): OpenApiDocument["tags"] {
  const used = Object.values(paths).flatMap(({ get, post }) => [...(get?.tags ?? []), ...(post?.tags ?? [])]);
  return [...new Set(used)].sort().map((name) => ({ name }));
}

function* describePaths(
  operations: readonly AnyOperation[],
  basePath: string,
  api: DescribedApi,
): Generator<undefined, Paths, undefined> {
  const paths: (readonly [path: string, item: PathItem])[] = [];
  for (const operation of operations) {
    paths.push([operationPath(operation, basePath), describeOperation(operation, api)]);
    yield;
  }
  const callable = operations.find(({ type }) => type !== "subscription");
  return {
    ...Object.fromEntries(paths),
    ...builtInPaths({ example: callable?.id, authenticated: api.authenticated }),
  };
}

/** Puts long parameters and answers that several operations have among the components. */
function shareRepeated(paths: Paths): {
  readonly paths: Paths;
  readonly parameters: DocumentObject;
  readonly responses: DocumentObject;
} {
  const parameters = new Repeated("parameters", SHARED_PARAMETERS);
  const responses = new Repeated("responses", SHARED_RESPONSES);
  const operations = Object.values(paths).flatMap(({ get, post }) => [get ?? [], post ?? []].flat());
  for (const operation of operations) {
    for (const parameter of operation.parameters ?? []) parameters.count(parameter);
    for (const response of Object.values(operation.responses)) responses.count(response);
  }
  const share = (operation: DescribedOperation): DescribedOperation => {
    const named = operation.parameters?.map((each) => parameters.share(each, String(each["name"])));
    const answers = Object.entries(operation.responses).map(([status, response]) => [
      status,
      responses.share(response, answerName(response)),
    ]);
    return {
      ...operation,
      ...(named !== undefined && { parameters: named }),
      responses: Object.fromEntries(answers),
    };
  };
  const items = Object.entries(paths).map(([path, { get, post }]): [string, PathItem] => [
    path,
    { ...(get !== undefined && { get: share(get) }), ...(post !== undefined && { post: share(post) }) },
  ]);
  return {
    paths: Object.fromEntries(items),
    parameters: Object.fromEntries(parameters.shared),
    responses: Object.fromEntries(responses.shared),
  };
}

/** An answer is named after its data, where that has a name. */
function answerName({ content }: DocumentObject): string {
  const { schema } = ((content as DocumentObject | undefined)?.["application/json"] ?? {}) as DocumentObject;
  const name = componentName((schema as DocumentObject | undefined)?.["$ref"]);
  return name === undefined ? "Answer" : `Answer.${name}`;
}

/** Characters of something, written as JSON, from which on several operations share it. */
const LONG = 100;

/** Things of one kind that operations have, and those that become components because several have them. */
class Repeated {
  readonly shared = new Map<string, DocumentObject>();
  readonly #kind: "parameters" | "responses";
  readonly #counts = new Map<string, number>();
  readonly #texts = new WeakMap<DocumentObject, string>();
  readonly #names = new Map<string, string>();
  readonly #free = new FreeNames();

  constructor(kind: "parameters" | "responses", taken: DocumentObject) {
    this.#kind = kind;
    for (const name of Object.keys(taken)) this.#free.take([name]);
  }

  count(thing: DocumentObject): void {
    const text = JSON.stringify(thing);
    if (text.length < LONG) return;
    this.#texts.set(thing, text);
    this.#counts.set(text, (this.#counts.get(text) ?? 0) + 1);
  }

  share(thing: DocumentObject, wanted: string): DocumentObject {
    const text = this.#texts.get(thing);
    if (text === undefined || (this.#counts.get(text) ?? 0) < 2) return thing;
    const name = this.#names.get(text) ?? this.#free.take([wanted]);
    this.#names.set(text, name);
    this.shared.set(name, thing);
    return sharedRef(this.#kind, name);
  }
}

function securitySchemes({ bearer, apiKeyHeader }: NonNullable<ToOpenApiOptions["auth"]>): DocumentObject {
  return {
    ...(bearer === true && { bearer: { type: "http", scheme: "bearer" } }),
    ...(apiKeyHeader !== undefined && { apiKey: { type: "apiKey", in: "header", name: apiKeyHeader } }),
  };
}

/** What is wrong with one schema comes up wherever that is described, and is told once. */
function toWarner(
  onWarning: ToOpenApiOptions["onWarning"] = (message, cause) => console.warn(message, cause),
): DescribedApi["warn"] {
  const told = new Set<string>();
  return (message, cause) => {
    if (!told.has(message)) onWarning(message, cause);
    told.add(message);
  };
}
