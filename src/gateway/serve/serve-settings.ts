import { parseUrl } from "../../core/text/parse-url.ts";
import { checkListenOptions } from "../../http/listen.ts";
import type { GatewayLimits, ServeAuthConfig, ServeConfig } from "../config/gateway-config.ts";
import { ConfigError, type LoadedConfig } from "../config/loaded-config.ts";

/** Where a gateway listens, in place of what its config says. */
export interface ServePlace {
  /** @default `serve.host` of the config */
  readonly host?: string | undefined;
  /** @default `serve.port` of the config */
  readonly port?: number | undefined;
}

/** How a config wants a gateway served, with what is left out filled in. */
export interface ServeSettings {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  /** Whether others than this machine can reach it. */
  readonly isPublic: boolean;
  readonly serve: ServeConfig;
  readonly limits: GatewayLimits;
  readonly auth: ServeAuthConfig | undefined;
  /** Names it may be reached under, besides those of the loopback interface. */
  readonly hosts: readonly string[];
  readonly origins: readonly string[];
  readonly metrics: boolean;
  readonly drainMs: number;
}

/** Where a gateway listens unless it is told otherwise. */
export const DEFAULT_PORT = 4_100;
/** Milliseconds that calls have to end unless the config says otherwise. */
export const DRAIN_MS = 10_000;
/** Milliseconds that `waybill serve` goes on after SIGTERM unless it is told otherwise. */
export const LAME_DUCK_MS = 5_000;
const WILDCARDS = new Set(["0.0.0.0", "::", ""]);

/** Reads settings; throws a `ConfigError` where everybody would be let in. */
export function readServeSettings({ config }: LoadedConfig, place: ServePlace = {}): ServeSettings {
  const { serve = {}, limits = {}, name = "waybill" } = config;
  const host = place.host ?? serve.host ?? "127.0.0.1";
  const port = place.port ?? serve.port ?? DEFAULT_PORT;
  const { auth, hosts = [], origins = [], metrics = true, drainMs = DRAIN_MS } = serve;
  const isAuthenticated = isAuthOn(auth);
  const isPublic = !isLoopback(host, port);
  if (isPublic && !isAuthenticated) {
    throw new ConfigError([
      `serve.host ${JSON.stringify(host)} lets others reach the gateway: say in serve.auth.tokens who may call, or listen on "127.0.0.1".`,
    ]);
  }
  const own = isPublic && !WILDCARDS.has(host) ? [host.includes(":") ? `[${host}]` : host] : [];
  return {
    name,
    host,
    port,
    isPublic,
    serve,
    limits,
    auth,
    hosts: [...hosts, ...own],
    origins,
    metrics,
    drainMs,
  };
}

/** Throws a `ConfigError` where a source is the gateway itself: each look at its tools would find more of them. */
export function refuseItself({ config }: LoadedConfig, { host, port }: ServeSettings): void {
  const { mcpServers = {}, openapi = {} } = config;
  const addresses = [
    ...Object.entries(mcpServers).map(([name, one]) => ({ ...one, place: `mcpServers.${name}.url` })),
    ...Object.entries(openapi).map(([name, one]) => {
      return { url: one.document, disabled: one.disabled, place: `openapi.${name}.document` };
    }),
  ];
  const own = WILDCARDS.has(host) || isLoopback(host, port) ? ["127.0.0.1", "localhost", "[::1]"] : [host];
  for (const { place, url, disabled } of addresses) {
    const { protocol = "", hostname = "", port: given } = parseUrl(url ?? "") ?? {};
    const other = Number(given || { "http:": 80, "https:": 443 }[protocol]);
    if (disabled === true || port === 0 || other !== port || !own.includes(hostname)) continue;
    const words = `${place} is the address at which this gateway listens: it would mount itself.`;
    throw new ConfigError([`${words} Remove the source, or set another serve.port.`]);
  }
}

/** Tells whether callers are asked who they are. */
export function isAuthOn(auth: ServeAuthConfig | undefined): boolean {
  return Object.keys(auth?.tokens ?? {}).length > 0 || auth?.jwt !== undefined;
}

/** Those who listen know what this machine is. */
function isLoopback(host: string, port: number): boolean {
  checkListenOptions({ host, port }, true);
  try {
    checkListenOptions({ host, port }, false);
    return true;
  } catch {
    return false;
  }
}

/** Where a gateway serves what, below its address; absent where it does not. */
interface ServedPaths {
  readonly mcp?: string;
  readonly api?: string;
  readonly document?: string;
  readonly docs?: string;
  readonly metrics?: string;
}

/** Where MCP is served. */
export const MCP_PATH = "/mcp";

/** Says what a config wants served, and where. */
export function servedPaths({ mcp = true, http = true, metrics = true }: ServeConfig = {}): ServedPaths {
  const hasDocs = http === true || (http !== false && http.docs !== false);
  return {
    ...(mcp !== false && { mcp: MCP_PATH }),
    ...(http !== false && { api: "/api", document: "/openapi.json" }),
    ...(hasDocs && { docs: "/docs" }),
    ...(metrics && { metrics: "/metrics" }),
  };
}
