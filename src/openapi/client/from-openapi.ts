import { collectOptionSecrets } from "../../core/secrets/collect-secrets.ts";
import { SecretMask, SourceSecrets } from "../../core/secrets/secret-mask.ts";
import { namedPlace } from "../../http/address-guard.ts";
import { createAuthorizer } from "./auth/authorizer.ts";
import { trustedTokenHosts } from "./auth/token-address.ts";
import { TokenSources } from "./auth/token-source.ts";
import { findOverlay } from "./document/overlays.ts";
import { readApi } from "./document/read-api.ts";
import { createDocumentReader, isAddress } from "./fetch-document.ts";
import { ImportedOperation, type ImportSettings } from "./imported-operation.ts";
import {
  checkOpenApiOptions,
  type OpenApiOptions,
  type OpenApiOverlay,
  type OperationOverlay,
} from "./openapi-options.ts";
import { type ImportedApi, LiveSource, type OpenApiSource } from "./openapi-source.ts";
import type { IndexedApi, IndexedOperation } from "./plan.ts";
import { resolveServer } from "./request/server-address.ts";
import { createTransport } from "./transport/create-transport.ts";
import { isOwnEndpoint, readWaybillFacts } from "./waybill-facts.ts";

export type { OpenApiSource };

/**
 * Imports an HTTP API from its OpenAPI document (Swagger 2.0, OpenAPI 3.0 to 3.2; JSON or YAML): a path, a URL, or the document
 * itself. Every operation of it becomes one of ours; what they say in detail is read when they are first looked at or called.
 */
export async function fromOpenApi(
  document: string | URL | object,
  options: OpenApiOptions,
): Promise<OpenApiSource> {
  checkOpenApiOptions(document, options);
  const secrets = secretsOf(options);
  const tell = warner(options);
  const warn = (message: string, cause?: unknown): void => tell(secrets.mask(message), cause);
  const transport = createTransport({ ...options, trusted: trustedHosts(document, options) });
  const tokens = new TokenSources((request, sending) => transport.send(request, sending), warn);
  const overlays = [options.overlay ?? []].flat();
  const fetchText = createDocumentReader(document, options);
  const read = async () => {
    const api = await readApi(document, { overlays, limits: options.limits ?? {}, fetchText, warn });
    return importApi(api, overlays, { transport, tokens, options, secrets, warn });
  };
  try {
    return new LiveSource({ transport, first: await read(), read, warn });
  } catch (thrown) {
    await transport.close();
    throw secrets.maskError(thrown);
  }
}

/** The credentials among the options. */
function secretsOf(options: OpenApiOptions): SourceSecrets {
  const known = new SecretMask();
  const { auth, headers, baseUrl, serverVariables } = options;
  collectOptionSecrets({ auth, headers, baseUrl, serverVariables }, ["openapi", ""], known);
  return new SourceSecrets(known, options);
}

interface Surroundings extends Pick<ImportSettings, "transport" | "options" | "secrets"> {
  readonly tokens: TokenSources;
  warn(message: string, cause?: unknown): void;
}

function importApi(
  api: IndexedApi,
  overlays: readonly OpenApiOverlay[],
  { transport, tokens, options, secrets, warn }: Surroundings,
): ImportedApi {
  const own = ownOrigins(api, options);
  const origins = (origin: string) => own.has(origin);
  const { auth } = options;
  const authorizer = auth && createAuthorizer(api, { auth, origins, tokens, secrets, warn });
  if (options.auth !== undefined && Object.keys(api.schemes).length > 0 && !api.asksForCredentials) {
    warn(
      "auth is never sent: no operation of the document asks for credentials. " +
        'Add them with an overlay, such as { document: { security: [{ "scheme": [] }] } }.',
    );
  }
  const { location } = api;
  const settings: ImportSettings = { transport, authorizer, options, secrets, location, origins };
  const operations = new Map<string, ImportedOperation>();
  for (const described of api.operations) {
    if (isOwnEndpoint(described.waybill)) continue;
    const imported = importOperation({ described, overlay: findOverlay(described, overlays) }, api, settings);
    const { id } = imported.operation;
    if (operations.has(id))
      throw new TypeError(`The document has two operations "${id}"; rename one with an overlay.`);
    operations.set(id, imported);
  }
  return { api, operations };
}

/** Where credentials and headers may go; a server or a variable that the document does not know is a `TypeError`. */
function ownOrigins(api: IndexedApi, options: OpenApiOptions): ReadonlySet<string> {
  const { server, serverVariables, baseUrl, authOrigins = [] } = options;
  const address = resolveServer(api.servers, { server, serverVariables, baseUrl, location: api.location });
  const own = address.refusal === undefined ? [address.origin] : [];
  return new Set([...own, ...authOrigins.map((origin) => new URL(origin).origin)]);
}

function importOperation(
  { described, overlay }: { readonly described: IndexedOperation; readonly overlay: OperationOverlay },
  api: IndexedApi,
  settings: ImportSettings,
): ImportedOperation {
  const { namespace, keepIds = false } = settings.options;
  const waybill = readWaybillFacts(described, api.servedSchemas);
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

/** Hosts and ports that the user named, and not a document: their addresses may be private. */
function trustedHosts(document: string | URL | object, { baseUrl, auth }: OpenApiOptions): readonly string[] {
  const named = [baseUrl, isAddress(document) ? document : undefined].filter((url) => url !== undefined);
  return [...named.map(namedPlace), ...trustedTokenHosts(auth)];
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
