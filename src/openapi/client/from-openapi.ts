import { CallError } from "../../core/errors/errors.ts";
import { createAuthorizer } from "./auth/authorizer.ts";
import { trustedTokenHosts } from "./auth/token-address.ts";
import { checkOpenApiOptions } from "./check-options.ts";
import { readApi } from "./document/read-api.ts";
import type { OutgoingRequest, Transport, WholeResponse } from "./http-message.ts";
import { ImportedOperation, type ImportSettings } from "./imported-operation.ts";
import type { OpenApiOptions, OpenApiOverlay, OperationOverlay } from "./openapi-options.ts";
import { type ImportedApi, OpenApiSource } from "./openapi-source.ts";
import type { DescribedApi, DescribedOperation } from "./plan.ts";
import { resolveServer } from "./request/server-address.ts";
import { createTransport } from "./transport/create-transport.ts";
import { isOwnEndpoint, readWaybillFacts } from "./waybill-facts.ts";

export { OpenApiSource };

/**
 * Imports an HTTP API from its OpenAPI document (Swagger 2.0, OpenAPI 3.0 to 3.2; JSON or YAML): a path, a URL, or the document
 * itself. Every operation of it becomes one of ours; what they say in detail is read when they are first looked at or called.
 */
export async function fromOpenApi(
  document: string | URL | object,
  options: OpenApiOptions,
): Promise<OpenApiSource> {
  checkOpenApiOptions(document, options);
  const transport = createTransport({ ...options, trusted: trustedHosts(document, options) });
  const warn = warner(options);
  const overlays = [options.overlay ?? []].flat();
  const read = async () => {
    const limits = options.limits ?? {};
    const fetchText = (url: URL) => fetchDocument(transport, url);
    const api = await readApi(document, { overlays, limits, fetchText, warn });
    return importApi(api, overlays, { transport, options, warn });
  };
  try {
    return new OpenApiSource({ transport, first: await read(), read, warn });
  } catch (thrown) {
    await transport.close();
    throw thrown;
  }
}

interface Surroundings {
  readonly transport: Transport;
  readonly options: OpenApiOptions;
  warn(message: string, cause?: unknown): void;
}

function importApi(
  api: DescribedApi,
  overlays: readonly OpenApiOverlay[],
  around: Surroundings,
): ImportedApi {
  const { transport, options, warn } = around;
  const base = options.baseUrl === undefined ? undefined : new URL(options.baseUrl).origin;
  const authorizer = createAuthorizer(api, {
    auth: options.auth,
    origins: (origin) => base === undefined || origin === base,
    send: (request, sending) => transport.send(request, sending),
    warn,
  });
  const settings: ImportSettings = { transport, authorizer, options, location: api.location };
  const operations = new Map<string, ImportedOperation>();
  for (const described of api.operations) {
    if (isOwnEndpoint(described.waybill)) continue;
    const imported = importOperation(described, api, overlayOf(described, overlays), settings);
    const { id } = imported.operation;
    if (operations.has(id))
      throw new TypeError(`The document has two operations "${id}"; rename one with an overlay.`);
    operations.set(id, imported);
  }
  checkServerOptions(api, options);
  return { api, operations };
}

/** Tells of a server or a variable that no operation knows before anything is called. */
function checkServerOptions({ operations, location }: DescribedApi, options: OpenApiOptions): void {
  const { server, serverVariables, baseUrl } = options;
  const [first] = operations;
  if (first === undefined || (server === undefined && serverVariables === undefined)) return;
  resolveServer(first.plan().servers, { server, serverVariables, baseUrl, location });
}

function importOperation(
  described: DescribedOperation,
  api: DescribedApi,
  overlay: OperationOverlay,
  settings: ImportSettings,
): ImportedOperation {
  const { namespace, keepIds = false } = settings.options;
  const waybill = readWaybillFacts(described.waybill);
  const kept = keepIds && overlay.name === undefined ? waybill : undefined;
  const names = {
    namespace: kept?.namespace ?? namespace,
    name: kept?.name ?? described.name,
    version: api.version,
    overlay,
    waybill,
  };
  return new ImportedOperation(described, names, settings);
}

/** What all overlays together say about one operation; later ones win. */
function overlayOf(
  { operationId, method, path }: DescribedOperation,
  overlays: readonly OpenApiOverlay[],
): OperationOverlay {
  let overlay: OperationOverlay = NO_OVERLAY;
  for (const { operations = {} } of overlays) {
    for (const key of [operationId, `${method} ${path}`]) {
      const found = key !== undefined && Object.hasOwn(operations, key) ? operations[key] : undefined;
      if (found !== undefined) overlay = { ...overlay, ...found };
    }
  }
  return overlay;
}

const NO_OVERLAY: OperationOverlay = Object.freeze({});

/** Hosts that the user named, and not a document: their addresses may be private. */
function trustedHosts(document: string | URL | object, { baseUrl, auth }: OpenApiOptions): readonly string[] {
  const named = [baseUrl, isAddress(document) ? document : undefined].filter((url) => url !== undefined);
  return [...named.map((url) => new URL(url).host), ...trustedTokenHosts(auth)];
}

function isAddress(document: unknown): document is string | URL {
  return (typeof document === "string" || document instanceof URL) && /^https?:/i.test(String(document));
}

const DOCUMENT_TIMEOUT_MS = 30_000;

/** Reads a document over HTTP; anything but a success is an error that names the address. */
async function fetchDocument(transport: Transport, url: URL): Promise<string> {
  const request: OutgoingRequest = {
    method: "GET",
    origin: url.origin,
    path: `${url.pathname}${url.search}`,
    headers: { accept: "application/openapi+json, application/json, application/yaml, */*;q=0.1" },
    body: undefined,
  };
  const signal = AbortSignal.timeout(DOCUMENT_TIMEOUT_MS);
  const { status, body }: WholeResponse = await transport.send(request, { signal, repeatable: true });
  if (status >= 200 && status < 300) return new TextDecoder("utf-8", { fatal: true }).decode(body);
  const shown = `${url.origin}${url.pathname}`;
  throw new CallError("UNAVAILABLE", `The document cannot be read: ${shown} answered ${status}.`, {
    details: { status, url: shown },
  });
}

function warner({ onWarning }: OpenApiOptions): (message: string, cause?: unknown) => void {
  return (message, cause) => {
    try {
      if (onWarning !== undefined) onWarning(message, cause);
      else console.warn(`[waybill] ${message}`, ...(cause === undefined ? [] : [cause]));
    } catch {
      // There is nobody left to tell.
    }
  };
}
