import { createHash } from "node:crypto";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { Executor } from "../../core/registry/executor.ts";
import { DATA_TYPE, ENVELOPE_TYPE } from "../media-types.ts";
import { formatType } from "./accept.ts";
import { checkExecutor, checkToOpenApiOptions } from "./check-document-options.ts";
import { BUILT_IN_IDS, builtInPaths } from "./document/built-in-paths.ts";
import { type DescribedApi, describeOperation } from "./document/describe-operation.ts";
import type { DocumentObject, OpenApiDocument, PathItem } from "./document/openapi-document.ts";
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
  const { paths, parameters } = shareParameters(yield* describePaths(operations, basePath, api));
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
      responses: SHARED_RESPONSES,
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

/** Characters of a parameter, written as JSON, from which on several operations share it. */
const LONG_PARAMETER = 100;

/** Puts long parameters that several operations have among the components, each under its name. */
function shareParameters(paths: Paths): { readonly paths: Paths; readonly parameters: DocumentObject } {
  const operations = Object.values(paths).flatMap(({ get }) => (get === undefined ? [] : [get]));
  const counts = new Map<string, number>();
  for (const parameter of operations.flatMap(({ parameters = [] }) => parameters)) {
    const text = JSON.stringify(parameter);
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  const free = new FreeNames();
  for (const name of Object.keys(SHARED_PARAMETERS)) free.take([name]);
  const names = new Map<string, string>();
  const shared = new Map<string, DocumentObject>();
  const share = (parameter: DocumentObject): DocumentObject => {
    const text = JSON.stringify(parameter);
    if (text.length < LONG_PARAMETER || (counts.get(text) ?? 0) < 2) return parameter;
    const name = names.get(text) ?? free.take([String(parameter["name"])]);
    names.set(text, name);
    shared.set(name, parameter);
    return sharedRef("parameters", name);
  };
  const items = Object.entries(paths).map(([path, item]): [string, PathItem] => {
    const { get } = item;
    if (get?.parameters === undefined) return [path, item];
    return [path, { ...item, get: { ...get, parameters: get.parameters.map(share) } }];
  });
  return { paths: Object.fromEntries(items), parameters: Object.fromEntries(shared) };
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
