import { join } from "node:path";
import { changedError, isCallError } from "../../core/errors/errors.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { OperationContext } from "../../core/operation/operation-context.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import { createEncryptedStore, type EncryptedStore, storedFiles } from "../../http/oauth/encrypted-store.ts";
import type { LoginClient, LoginKept } from "../../http/oauth/login.ts";
import type { HttpAuthorizer } from "../../http/oauth/oauth-authorizer.ts";
import { StoreFault, type StoreKeyOptions } from "../../http/oauth/store-key.ts";
import { type Credential, unauthenticated } from "../../openapi/client/auth/credentials.ts";
import { identityOf } from "../config/check-identity.ts";
import type { McpServerConfig, OpenApiConfig } from "../config/gateway-config.ts";
import { type LoadedConfig, sourceNames } from "../config/loaded-config.ts";
import { stateFolder } from "../embedded/state-folder.ts";
import { stampOf, watchFile } from "../watch-stamps.ts";
import type { Wording } from "./shown-text.ts";
import { type Source, SourceFault, type SourceState } from "./source.ts";

/** How a person logs in to a source of a config, and where that is kept. */
export interface SourceLogin {
  /** The namespace of the source. */
  readonly name: string;
  /** Where it stands in the config: `mcpServers.github`. */
  readonly place: string;
  readonly client: LoginClient;
  /** Where the browser comes back to, for a client that is registered with one address. @default a free port of this machine */
  readonly redirectUrl?: string | undefined;
  readonly kept: EncryptedStore;
  /** Where the logins of callers are kept, each under a key of its own. */
  readonly ofCallers: CallerFiles;
  /** Whether the config says that a person logs in; otherwise the server may ask for it. */
  readonly isConfigured: boolean;
}

/** Where the logins of the callers of one source are kept in files. */
export interface CallerFiles {
  readonly folder: string;
  /** What tells this source, at its address and for its client, from others. */
  readonly id: readonly string[];
  /** The login of one caller. */
  of(caller: string): EncryptedStore;
  /** Those of all callers, and of sources that are called almost the same. */
  all(): Promise<readonly EncryptedStore[]>;
  /** How many there are. */
  count(): Promise<number>;
}

type LoginSettings = Omit<LoginClient, "scope"> & {
  readonly login?: boolean | undefined;
  readonly scope?: string | undefined;
  readonly redirectUrl?: string | undefined;
};

/** The login of an MCP server: one at an address to which the config shows nothing else. */
export function loginOfServer(
  name: string,
  server: McpServerConfig,
  loaded: LoadedConfig,
): SourceLogin | undefined {
  const { url, bearer, headers = {}, oauth } = server;
  if (url === undefined || bearer !== undefined || (oauth !== undefined && oauth.login !== true))
    return undefined;
  if (Object.keys(headers).some((header) => header.toLowerCase() === "authorization")) return undefined;
  return toLogin(loaded, { name, place: "mcpServers", address: url, settings: oauth });
}

/** The login of an API, where one of its credentials is one; with the name of that credential. */
export function loginOfApi(name: string, api: OpenApiConfig, loaded: LoadedConfig): ApiLogin | undefined {
  const [first] = Object.entries(api.auth ?? {}).filter(([, credential]) => isLogin(credential));
  if (first === undefined) return undefined;
  const [scheme, credential] = first;
  const { scopes, ...settings } = credential as Exclude<typeof credential, string> & {
    readonly scopes?: readonly string[];
  };
  const address = api.baseUrl ?? api.document;
  const scope = scopes?.join(" ");
  return {
    ...toLogin(loaded, { name, place: "openapi", address, settings: { ...settings, scope } }),
    scheme,
  };
}

/** A login of an API. */
export interface ApiLogin extends SourceLogin {
  /** The name of the credential: that of a scheme, or a kind. */
  readonly scheme: string;
}

/** Tells whether a credential is a person who logs in. */
export function isLogin(credential: unknown): boolean {
  return (
    typeof credential === "object" &&
    credential !== null &&
    "login" in credential &&
    credential.login === true
  );
}

/** What a login is for. */
export interface LoginParts {
  readonly name: string;
  readonly place: "mcpServers" | "openapi";
  readonly address: string;
  readonly settings: LoginSettings | undefined;
}

/** The login of a source, whether a person has one there or each caller has. */
export function toLogin(
  loaded: LoadedConfig,
  { name, place, address, settings = {} }: LoginParts,
): SourceLogin {
  const { login, redirectUrl, ...client } = settings;
  const env = loaded.env ?? process.env;
  // A login goes to nobody else when the source of that name moves to another address.
  const id = [name, place, address, client.clientId ?? "", client.issuer ?? ""];
  const folder = join(stateFolder({ env }), "logins");
  return {
    name,
    place: placeOf(loaded, place, name),
    client,
    redirectUrl,
    kept: createEncryptedStore({ folder, id, env }),
    ofCallers: callerFiles({ folder, id, env }),
    isConfigured: login === true,
  };
}

function callerFiles({ folder, id, env }: StoreKeyOptions & { readonly id: readonly string[] }): CallerFiles {
  const [name = "", ...rest] = id;
  const own = `caller-of-${name}`;
  return {
    folder,
    id,
    of: (caller) => createEncryptedStore({ folder, env, id: [own, ...rest, caller] }),
    all: async () =>
      (await storedFiles(folder, own)).map((file) => createEncryptedStore({ folder, env, id: file })),
    count: async () => (await storedFiles(folder, own)).length,
  };
}

function placeOf({ config }: LoadedConfig, kind: string, name: string): string {
  const names = [...sourceNames(config)];
  return (
    names.find(([place, given]) => given === name && place.startsWith(`${kind}.`))?.[0] ?? `${kind}.${name}`
  );
}

/** Throws a `SourceFault` for a login that cannot work as it is configured. */
export function checkLogin({ redirectUrl, client }: SourceLogin, api?: OpenApiConfig): void {
  if (Object.values(api?.auth ?? {}).filter(isLogin).length > 1)
    throw new SourceFault("auth has two credentials with login, and a source has one login");
  if (redirectUrl !== undefined && !isLoopbackRedirect(redirectUrl)) {
    throw new SourceFault(
      "redirectUrl must be http on this machine, with a port, such as http://127.0.0.1:8765/callback",
    );
  }
  if (client.clientSecret !== undefined && (client.issuer ?? client.clientId) === undefined) {
    throw new SourceFault("A clientSecret needs a clientId, and the issuer that both belong to");
  }
}

function isLoopbackRedirect(address: string): boolean {
  const url = parseUrl(address);
  const isHere = url !== undefined && ["127.0.0.1", "localhost", "[::1]"].includes(url.hostname);
  return isHere && url.protocol === "http:" && url.port !== "" && url.search === "" && url.hash === "";
}

/** Every login that the sources of a config may have. */
export function loginsOf(loaded: LoadedConfig): readonly SourceLogin[] {
  const { mcpServers = {}, openapi = {} } = loaded.config;
  return [...sourceNames(loaded.config)].flatMap(([place, name]) => {
    const key = place.slice(place.indexOf(".") + 1);
    const [server, api] = [mcpServers[key], openapi[key]];
    if (place.startsWith("mcpServers.")) return (server && loginOfServer(name, server, loaded)) ?? [];
    // Callers log in to an API that is asked as each of them, and nobody else does.
    const isShared = api !== undefined && identityOf(api).mode === "shared";
    return (isShared && loginOfApi(name, api, loaded)) || [];
  });
}

/** Tells whether what a source failed with is that a person has to log in. Looks at names: what signs in is loaded when it is needed. */
export function wantsLogin(thrown: unknown): boolean {
  for (let at: unknown = thrown, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    const { reason } = at as { readonly reason?: unknown };
    if (at.name === "SignInError") return reason === "consent_needed";
    if (at.name === "ChannelError") return reason === "sign-in";
  }
  return false;
}

/** Makes the credential of an API out of its login: a token that is renewed, or none while nobody is logged in. */
export function createLoginCredential({ name, kept, client }: SourceLogin): Credential {
  const given = new WeakMap<OperationContext, string>();
  let last: { readonly server: string; readonly authorizer: Promise<HttpAuthorizer> } | undefined;
  const authorizerAt = (server: string): Promise<HttpAuthorizer> => {
    if (last?.server !== server) last = { server, authorizer: openAuthorizer(kept, client, server) };
    return last.authorizer;
  };
  return async ({ context, refused, origin }) => {
    try {
      const server = (await kept.load())?.["server"];
      // The document may lead elsewhere by now; the token is for where the person logged in.
      if (typeof server !== "string" || parseUrl(server)?.origin !== origin) return undefined;
      const authorizer = await authorizerAt(server);
      const token = await (refused ? authorizer.renew(given.get(context)) : authorizer.token());
      if (token !== undefined) given.set(context, token);
      return token;
    } catch (thrown) {
      if (isCallError(thrown)) throw thrown;
      const why = thrown instanceof StoreFault ? thrown.message : "It could not be renewed.";
      throw unauthenticated(`The login of "${name}" cannot be used: ${why}`, thrown, true);
    }
  };
}

/** Opens what renews the tokens of one login. */
export async function openAuthorizer(
  kept: LoginKept,
  client: LoginClient,
  server: string,
): Promise<HttpAuthorizer> {
  const [{ createLoginStore }, { createOAuthAuthorizer }, { createGuardedFetch }] = await Promise.all([
    import("../../http/oauth/login.ts"),
    import("../../http/oauth/oauth-authorizer.ts"),
    import("../../http/oauth/guarded-fetch.ts"),
  ]);
  const serverUrl = new URL(server);
  const fetch = createGuardedFetch(serverUrl, [client.issuer]);
  return createOAuthAuthorizer(createLoginStore(kept, client), { serverUrl, fetch });
}

/** Tries a source again as soon as somebody has logged in, for as long as it is down. */
export function followLogin({ kept }: SourceLogin, source: () => Source) {
  let stop: (() => void) | undefined;
  let stamp = stampOf(kept.path);
  return {
    /** What is kept is read from now on. */
    begin: (): void => {
      stamp = stampOf(kept.path);
    },
    onState: ({ status }: SourceState): void => {
      if (status === "down" && stop === undefined) {
        stop = watchFile({ path: kept.path, stamp, listener: () => void source().retry() });
      } else if (status === "up" || status === "closed") {
        stop?.();
        stop = undefined;
      }
    },
  };
}

/** What is said of a source that nobody is logged in to. */
export function loginWording(name: string): Wording {
  const command = `"npx --no waybill login ${name}"`;
  const words = `it waits for a login; run ${command}`;
  return {
    "sign-in": words,
    authorization: words,
    scope: `its login lacks a scope; run ${command}`,
    "no-credential": words,
    credentials: `set bearer or headers for it, or run ${command}`,
  };
}

/** Notes which scopes a login lacks, for the next one. */
export interface ScopeNotes {
  /** Says in an error that its login lacks a scope, where a server says so. */
  review(thrown: unknown, context: OperationContext): unknown;
  /** Resolves once everything is noted. */
  settled(): Promise<void>;
}

/** Makes what notes the scopes that the login of a source lacks. */
export function createScopeNotes({ name, kept }: SourceLogin): ScopeNotes {
  let last: Promise<unknown> = Promise.resolve();
  return {
    review: (thrown) => {
      const refusal = narrowRefusal(thrown);
      if (refusal === undefined || !isCallError(thrown)) return thrown;
      // That it could not be noted makes the next login ask for less, and nothing worse.
      last = Promise.all([last, note(kept, refusal).catch(() => {})]);
      const message = `${thrown.message} Its login lacks a scope; run "npx --no waybill login ${name}".`;
      return changedError(thrown, { message });
    },
    settled: async () => void (await last),
  };
}

async function note(kept: EncryptedStore, refusal: Response): Promise<void> {
  const { noteMissingScope } = await import("../../http/oauth/login.ts");
  await noteMissingScope(kept, refusal);
}

/** The refusal that an error of an API came from, where it says that a scope is missing. */
export function narrowRefusal(thrown: unknown): Response | undefined {
  if (!isCallError(thrown) || !isPlainObject(thrown.details)) return undefined;
  const { status, headers } = thrown.details;
  const challenge = isPlainObject(headers) ? headers["www-authenticate"] : undefined;
  if (status !== 403 || typeof challenge !== "string") return undefined;
  if (!/\binsufficient_scope\b/.test(challenge)) return undefined;
  return new Response(null, { status, headers: { "www-authenticate": challenge } });
}
