import { createGuardedFetch } from "../../http/oauth/guarded-fetch.ts";
import type { AuthorizationPlace, Fetch } from "../../http/oauth/oauth-discovery.ts";
import type { McpServerConfig, OpenApiConfig } from "../config/gateway-config.ts";
import type { LoadedConfig } from "../config/loaded-config.ts";
import { toApiOptions, toDocument } from "./api-source.ts";
import { SourceFault } from "./source.ts";
import type { SourceLogin } from "./source-login.ts";

/** Milliseconds that a server has to answer a request without a token. */
const PROBE_MS = 10_000;

/** What the config says of a source, of either kind. */
export type LoginEntry = Partial<McpServerConfig & OpenApiConfig>;

/** Finds what the config says at a place such as `mcpServers.github`. */
export function entryOf({ config }: LoadedConfig, place: string): LoginEntry {
  const [kind, key] = [place.slice(0, place.indexOf(".")), place.slice(place.indexOf(".") + 1)];
  return ((kind === "openapi" ? config.openapi?.[key] : config.mcpServers?.[key]) ?? {}) as LoginEntry;
}

/** Where a login leads. */
export interface LoginTarget {
  readonly serverUrl: URL;
  readonly fetch: Fetch;
  readonly place?: AuthorizationPlace | undefined;
  /** What the server answered a request without a token. */
  readonly refusal?: Response | undefined;
}

/** Finds out where a person logs in: asks an MCP server, or reads the document of an API. */
export async function findLoginTarget(login: SourceLogin, loaded: LoadedConfig): Promise<LoginTarget> {
  const entry = entryOf(loaded, login.place);
  const { issuer } = login.client;
  if (entry.url !== undefined) {
    const serverUrl = await toUrl(entry as McpServerConfig);
    const fetch = createGuardedFetch(serverUrl, [issuer]);
    return { serverUrl, fetch, refusal: await probe(serverUrl, fetch, entry.headers) };
  }
  const { url, place } = await readPlace(entry as OpenApiConfig, loaded, login);
  return {
    serverUrl: url,
    fetch: createGuardedFetch(url, [issuer]),
    place: issuer === undefined ? place : { issuer },
  };
}

async function toUrl(server: McpServerConfig): Promise<URL> {
  const { toServerUrl } = await import("../../mcp/client/connection-options.ts");
  try {
    return toServerUrl({ url: server.url ?? "", allowHttp: server.allowHttp });
  } catch (thrown) {
    throw thrown instanceof TypeError ? new SourceFault(thrown.message, { cause: thrown }) : thrown;
  }
}

/** The challenge of a server says which metadata and scopes it means; without one they are looked for. */
async function probe(
  url: URL,
  fetch: Fetch,
  headers: McpServerConfig["headers"],
): Promise<Response | undefined> {
  const params = {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "waybill", version: "0" },
  };
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: {
        ...headers,
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }),
      signal: AbortSignal.timeout(PROBE_MS),
    });
    return response.status === 401 ? response : undefined;
  } catch {
    // A server that cannot be reached says so when its metadata is asked for.
    return undefined;
  }
}

async function readPlace(api: OpenApiConfig, loaded: LoadedConfig, login: SourceLogin) {
  const [{ readApi }, { createDocumentReader }, { resolveServer }, { findLoginPlace }] = await Promise.all([
    import("../../openapi/client/document/read-api.ts"),
    import("../../openapi/client/fetch-document.ts"),
    import("../../openapi/client/request/server-address.ts"),
    import("../../openapi/client/auth/login-place.ts"),
  ]);
  const document = toDocument(api.document, loaded.baseDir);
  const options = toApiOptions(api);
  const fetchText = createDocumentReader(document, { ...options, namespace: "api" });
  const overlays = [api.overlay ?? []].flat();
  const described = await readApi(document, { overlays, limits: {}, fetchText });
  const { baseUrl, server, serverVariables } = options;
  const { location, schemes, servers } = described;
  const address = resolveServer(servers, { baseUrl, server, serverVariables, location });
  if (address.refusal !== undefined) throw address.refusal();
  const url = new URL(`${address.origin}${address.basePath}`);
  const key = "scheme" in login ? String(login.scheme) : "oauth2";
  return { url, place: findLoginPlace(schemes, key, location) };
}
