import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { Executor } from "../../core/registry/executor.ts";
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

export type { OpenApiDocument } from "./document/openapi-document.ts";

/** Describes the operations a caller may see as an HTTP API, the way `createHttpHandler` serves them; the same each time. */
export function toOpenApi(executor: Executor, options: ToOpenApiOptions = {}): OpenApiDocument {
  const { info = {}, servers = ["/"], basePath = "/api", identity, formats = [], auth = {} } = options;
  checkBasePath(basePath);
  const operations = [...executor.list({ identity })].sort((a, b) => (a.id < b.id ? -1 : 1));
  const components = new SchemaComponents();
  for (const [name, schema] of Object.entries(sharedSchemas())) components.add(name, schema);
  const schemes = securitySchemes(auth);
  const names = Object.keys(schemes);
  const authenticated = names.length > 0;
  const api = { components, formats, authenticated, examples: options.examples ?? {} };
  const paths = describePaths(operations, basePath, api);
  return {
    openapi: "3.1.1",
    info: {
      title: info.title ?? "Waybill",
      version: info.version ?? "1.0.0",
      ...(info.description !== undefined && { description: info.description }),
    },
    servers: servers.map((url) => ({ url })),
    tags: [...new Set(operations.map(({ namespace }) => namespace))].sort().map((name) => ({ name })),
    ...(authenticated && { security: names.map((name) => ({ [name]: [] })) }),
    paths,
    components: {
      schemas: components.toJson(),
      headers: SHARED_HEADERS,
      parameters: SHARED_PARAMETERS,
      responses: sharedResponses(formats.map(({ name }) => name)),
      ...(authenticated && { securitySchemes: schemes }),
    },
  };
}

function describePaths(
  operations: readonly AnyOperation[],
  basePath: string,
  api: DescribedApi,
): Readonly<Record<string, PathItem>> {
  const paths = operations.map(
    (operation) => [operationPath(operation, basePath), describeOperation(operation, api)] as const,
  );
  const callable = operations.find(({ type }) => type !== "subscription");
  return { ...Object.fromEntries(paths), ...builtInPaths(callable?.id) };
}

function securitySchemes({ bearer, apiKeyHeader }: NonNullable<ToOpenApiOptions["auth"]>): DocumentObject {
  return {
    ...(bearer === true && { bearer: { type: "http", scheme: "bearer" } }),
    ...(apiKeyHeader !== undefined && { apiKey: { type: "apiKey", in: "header", name: apiKeyHeader } }),
  };
}

/** Throws a `TypeError` unless paths that begin with it mean the same to every reader of a URL and of the document. */
function checkBasePath(basePath: unknown): asserts basePath is string {
  const segments = typeof basePath === "string" ? basePath.replace(/\/$/, "").split("/") : ["?"];
  const isUsable = segments[0] === "" && segments.slice(1).every(isSegment);
  if (isUsable) return;
  throw new TypeError('basePath must be a path such as "/api", or "" for none.');
}

function isSegment(segment: string): boolean {
  return /^[A-Za-z0-9._~!$&'()*+,;=:@-]+$/.test(segment) && segment !== "." && segment !== "..";
}
