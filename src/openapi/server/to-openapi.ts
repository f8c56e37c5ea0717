import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { Executor } from "../../core/registry/executor.ts";
import { checkExecutor, checkToOpenApiOptions } from "./check-document-options.ts";
import { builtInPaths } from "./document/built-in-paths.ts";
import { type DescribedApi, describeOperation } from "./document/describe-operation.ts";
import type { DocumentObject, OpenApiDocument, PathItem } from "./document/openapi-document.ts";
import { SchemaComponents } from "./document/schema-components.ts";
import {
  SHARED_HEADERS,
  SHARED_PARAMETERS,
  sharedResponses,
  sharedSchemas,
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

/** Options that were checked; `asksCallers` tells whether callers are asked who they are, in whatever way. */
export type DescribeApiOptions = ToOpenApiOptions & { readonly asksCallers?: boolean | undefined };

/** The same, step by step: whoever takes the steps may do something else after each operation. */
export function* describeApi(
  executor: Executor,
  options: DescribeApiOptions,
): Generator<undefined, OpenApiDocument, undefined> {
  const { info = {}, servers = ["."], basePath = "/api", identity, formats = [], auth = {} } = options;
  const operations = [...executor.list({ identity })].sort((a, b) => (a.id < b.id ? -1 : 1));
  const components = new SchemaComponents();
  for (const [name, schema] of Object.entries(sharedSchemas())) components.add(name, schema);
  const schemes = securitySchemes(auth);
  const names = Object.keys(schemes);
  const { asksCallers = names.length > 0, examples = {} } = options;
  const warn = toWarner(options.onWarning);
  const paths = yield* describePaths(operations, basePath, {
    components,
    formats,
    authenticated: asksCallers,
    warn,
    examples,
  });
  return {
    openapi: "3.1.1",
    info: {
      title: info.title ?? "Waybill",
      version: info.version ?? "1.0.0",
      ...(info.description !== undefined && { description: info.description }),
    },
    servers: servers.map((url) => ({ url })),
    tags: [...new Set(operations.map(({ namespace }) => namespace))].sort().map((name) => ({ name })),
    ...(names.length > 0 && { security: names.map((name) => ({ [name]: [] })) }),
    paths,
    components: {
      schemas: components.toJson(),
      headers: SHARED_HEADERS,
      parameters: SHARED_PARAMETERS,
      responses: sharedResponses(formats.map(({ name }) => name)),
      ...(names.length > 0 && { securitySchemes: schemes }),
    },
  };
}

function* describePaths(
  operations: readonly AnyOperation[],
  basePath: string,
  api: DescribedApi,
): Generator<undefined, Readonly<Record<string, PathItem>>, undefined> {
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
