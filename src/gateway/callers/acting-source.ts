import { identityOf } from "../config/check-identity.ts";
import type {
  IdentityMode,
  McpServerConfig,
  OpenApiConfig,
  SourceIdentityConfig,
} from "../config/gateway-config.ts";
import { type LoadedConfig, sourceNames } from "../config/loaded-config.ts";
import { isLogin, loginOfApi, type SourceLogin, toLogin } from "../sources/source-login.ts";

/** A source that is asked as each caller. */
export interface ActingSource {
  readonly name: string;
  readonly identity: SourceIdentityConfig & { readonly mode: Exclude<IdentityMode, "shared"> };
  /** The client that callers log in with, and where what is theirs is kept. */
  readonly login: SourceLogin;
}

/** How an MCP server is asked as each caller; nothing where it is asked as one for all. */
export function actingServer(
  name: string,
  server: McpServerConfig,
  loaded: LoadedConfig,
): ActingSource | undefined {
  const identity = identityOf(server);
  if (!isActing(identity) || server.url === undefined) return undefined;
  // Credentials of the gateway itself, with which it lists the tools, are nobody's who logs in.
  const settings = server.oauth?.login === true ? server.oauth : undefined;
  return {
    name,
    identity,
    login: toLogin(loaded, { name, place: "mcpServers", address: server.url, settings }),
  };
}

/** The same for an API. */
export function actingApi(name: string, api: OpenApiConfig, loaded: LoadedConfig): ActingSource | undefined {
  const identity = identityOf(api);
  if (!isActing(identity)) return undefined;
  const address = api.baseUrl ?? api.document;
  const login =
    loginOfApi(name, api, loaded) ??
    toLogin(loaded, { name, place: "openapi", address, settings: undefined });
  return { name, identity, login };
}

/** Every source of a config that is asked as each caller. */
export function actingSources(loaded: LoadedConfig): readonly ActingSource[] {
  const { mcpServers = {}, openapi = {} } = loaded.config;
  return [...sourceNames(loaded.config)].flatMap(([place, name]) => {
    const key = place.slice(place.indexOf(".") + 1);
    const [server, api] = [mcpServers[key], openapi[key]];
    if (place.startsWith("mcpServers.")) return (server && actingServer(name, server, loaded)) ?? [];
    return (api && actingApi(name, api, loaded)) ?? [];
  });
}

/** Tells whether callers have something of their own for a source that is kept: a login, or a key. */
export function keepsGrants({ identity }: ActingSource): boolean {
  return identity.mode === "caller" || identity.mode === "key";
}

/** The name of the credential of an API that stands for the caller. */
export function schemeOf({ identity, login }: ActingSource, { auth = {} }: OpenApiConfig): string {
  if (identity.mode !== "caller") return identity.scheme ?? "bearer";
  return Object.entries(auth).find(([, credential]) => isLogin(credential))?.[0] ?? login.name;
}

function isActing(identity: SourceIdentityConfig): identity is ActingSource["identity"] {
  return identity.mode !== "shared";
}
