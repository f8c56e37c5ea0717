import { processRevocationResponse, revocationRequest } from "oauth4webapi";
import { CallError } from "../../core/errors/errors.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import { DEVICE_GRANT } from "./device-consent.ts";
import type { EncryptedStore } from "./encrypted-store.ts";
import { isTooNarrow, namedFetch, readChallenge, SignInError, union } from "./oauth-authorizer.ts";
import {
  type AuthorizationPlace,
  type DiscoveredServer,
  discoverAt,
  discoverServer,
  type Fetch,
} from "./oauth-discovery.ts";
import { clientAuthOf, type DevicePrompt, signIn } from "./oauth-flow.ts";
import {
  createKeptCredentials,
  createMemoryTokenStore,
  createOAuthStore,
  type LoginStore,
  type OAuthClientInformation,
  type OAuthStore,
  type OAuthTokens,
  type StoredAuthorization,
  type TokenStore,
} from "./oauth-store.ts";
import { StoreFault } from "./store-key.ts";
import { plainOptions } from "./token-request.ts";

/** The client that a person logs in with; without an id it is registered. */
export interface LoginClient {
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
  /** The authorization server that knows the client, or that is asked in place of the one that is found. */
  readonly issuer?: string | undefined;
  /** An https address that describes the client. */
  readonly clientMetadataUrl?: string | undefined;
  /** What to ask for. @default what the server asks for */
  readonly scope?: string | undefined;
}

/** Where a login is kept: in a file, or wherever replicas share it. */
export type LoginKept = Pick<EncryptedStore, "load" | "save" | "exclusive" | "remove">;

/** How a person is asked. */
export type LoginWay =
  | {
      readonly redirectUrl: string;
      /** Sends them to an address; gives the one they came back on. */
      send(url: URL): Promise<string>;
    }
  | { show(prompt: DevicePrompt): void; readonly signal?: AbortSignal | undefined };

/** A login of one source. */
export interface LoginOptions {
  readonly serverUrl: URL;
  /** Sends requests past the guard. */
  readonly fetch: Fetch;
  readonly client: LoginClient;
  readonly way: LoginWay;
  /** Where tokens are had, as the issuer of the client or somebody who describes the server says. @default as the server's metadata says */
  readonly place?: AuthorizationPlace | undefined;
  /** What the server answered a request without a token. */
  readonly refusal?: Response | undefined;
  /** What is kept of the login before. */
  readonly before?: StoredAuthorization | undefined;
}

/** Has a person log in, and gives what is to be kept; rejects with a `SignInError` or a `CallError`. */
export async function logIn(options: LoginOptions): Promise<StoredAuthorization> {
  const { serverUrl, client, way, refusal, before = {} } = options;
  const isDevice = "show" in way;
  const redirectUrl = isDevice ? DEVICE_REDIRECT : way.redirectUrl;
  // A client is registered for one address and one set of scopes, so each login registers its own.
  const memory = createMemoryTokenStore();
  const created = createOAuthStore({
    ...client,
    redirectUrl,
    tokens: memory,
    ...(!isDevice && { onAuthorize: way.send }),
  });
  const store = isDevice ? withGrant(created, DEVICE_GRANT) : created;
  const fetch = namedFetch(options.fetch, serverUrl);
  const challenge = refusal === undefined ? new Map<string, string>() : readChallenge(refusal);
  const named = parseUrl(challenge.get("resource_metadata") ?? "");
  let found: DiscoveredServer | undefined;
  const outcome = await signIn(store, {
    serverUrl,
    fetch,
    resourceMetadataUrl: named,
    scope: wantedScope(before, client, challenge.get("scope")),
    isWider: true,
    discover: async () => {
      found = await (options.place === undefined
        ? discoverServer(serverUrl, named, fetch)
        : discoverAt(options.place, { serverUrl, fetch, isUsers: client.issuer !== undefined }));
      return found;
    },
    ...(isDevice && { onDevice: way.show, signal: way.signal }),
  });
  if (outcome === "nobody" || found === undefined) {
    throw new SignInError("consent_needed", "The login did not come back.");
  }
  // A client of the config is kept beside its tokens: with another client they cannot be renewed.
  const { clientId, clientSecret } = client;
  const { issuer } = found.server;
  if (clientId !== undefined) {
    const known = { client_id: clientId, ...(clientSecret !== undefined && { client_secret: clientSecret }) };
    await store.saveClientInformation?.(known, { issuer });
  }
  return {
    ...(await memory.load()),
    server: serverUrl.href,
    found: toKept(found),
    at: new Date().toISOString(),
  };
}

/** A device is sent nowhere; a client needs an address all the same. */
const DEVICE_REDIRECT = "http://127.0.0.1/callback";

function withGrant(store: OAuthStore, grant: string): OAuthStore {
  const { clientMetadata } = store;
  const grants = [...(clientMetadata.grant_types ?? []), grant];
  return { ...store, clientMetadata: { ...clientMetadata, grant_types: grants } };
}

/** What was missing last time is asked for beside what is had. */
function wantedScope(
  before: StoredAuthorization,
  { scope }: LoginClient,
  asked: string | undefined,
): string | undefined {
  const { wanted } = before;
  if (typeof wanted !== "string") return scope ?? asked;
  return union(wanted, scope ?? asked);
}

/** What renewals and the end of a login need of what was found. */
function toKept({ server, address, isGuessed, resource }: DiscoveredServer): DiscoveredServer {
  const {
    issuer,
    token_endpoint,
    revocation_endpoint,
    token_endpoint_auth_methods_supported: methods,
  } = server;
  return {
    server: {
      issuer,
      ...(token_endpoint !== undefined && { token_endpoint }),
      ...(revocation_endpoint !== undefined && { revocation_endpoint }),
      ...(methods !== undefined && { token_endpoint_auth_methods_supported: methods }),
    },
    address,
    isGuessed,
    resource,
  };
}

/** What is kept is ours, and bound to its key; an older version may have written it otherwise. */
function foundIn(stored: StoredAuthorization | undefined): DiscoveredServer | undefined {
  const found = stored?.["found"];
  const server = isPlainObject(found) ? found["server"] : undefined;
  const isUsable = isPlainObject(server) && typeof server["issuer"] === "string";
  return isUsable ? (found as unknown as DiscoveredServer) : undefined;
}

/** Makes the OAuth side of a source whose login is kept: renews it, and asks nobody. */
export function createLoginStore(kept: LoginKept, { issuer }: LoginClient): LoginStore {
  // Never sent anywhere: with an address, a client stands for a person.
  const tokens: TokenStore = { load: () => kept.load().catch(toUsable), save: (stored) => kept.save(stored) };
  const store = createOAuthStore({ redirectUrl: DEVICE_REDIRECT, tokens });
  return {
    ...store,
    issuer,
    // What cannot be renewed is no login any more.
    invalidateCredentials: async () => await kept.remove(),
    login: { found: async () => foundIn(await kept.load()), exclusive: (run) => kept.exclusive(run) },
    widenScope: async (scope) => {
      const stored = await kept.load();
      if (stored !== undefined && stored["wanted"] !== scope) await kept.save({ ...stored, wanted: scope });
    },
  };
}

/** What keeps a login from being used is told to the caller: it is nothing that a server said. */
function toUsable(thrown: unknown): never {
  if (!(thrown instanceof StoreFault)) throw thrown;
  throw new CallError("UNAUTHENTICATED", thrown.message, { cause: thrown, stack: false });
}

/** Characters of the scopes that are noted for the next login. */
const MOST_SCOPE_CHARACTERS = 1_000;

/** Notes the scope that a refusal says is missing, for the next login; true where it says so. */
export async function noteMissingScope(kept: LoginKept, refusal: Response): Promise<boolean> {
  if (!isTooNarrow(refusal)) return false;
  const missing = readChallenge(refusal).get("scope") ?? "";
  if (missing.length > MOST_SCOPE_CHARACTERS) return true;
  await kept.exclusive(async () => {
    const store = createLoginStore(kept, {});
    await store.widenScope?.(union((await store.tokens())?.scope, missing));
  });
  return true;
}

/** What can be told of a login. */
export interface LoginFacts {
  readonly issuer: string;
  readonly scope?: string | undefined;
  /** When it was made, as RFC 3339 writes it. */
  readonly at?: string | undefined;
  /** When its access token ends, in Unix epoch milliseconds. */
  readonly expiresAt?: number | undefined;
  /** Whether it can be renewed. */
  readonly isRenewable: boolean;
  /** Scopes that a call needed and that it does not have. */
  readonly wanted?: string | undefined;
}

/** Tells what is kept of a login, without its secrets; nothing where nobody is logged in. */
export async function loginFacts(kept: LoginKept): Promise<LoginFacts | undefined> {
  const stored = await kept.load();
  const credentials = await createKeptCredentials(kept).of(undefined);
  const tokens = credentials?.tokens as Partial<OAuthTokens> | undefined;
  if (credentials === undefined || tokens?.access_token === undefined) return undefined;
  const { at, wanted } = stored ?? {};
  return {
    issuer: credentials.issuer,
    isRenewable: tokens.refresh_token !== undefined,
    ...(tokens.scope !== undefined && { scope: tokens.scope }),
    ...(tokens.expires_at !== undefined && { expiresAt: tokens.expires_at }),
    ...(typeof at === "string" && { at }),
    ...(typeof wanted === "string" && { wanted }),
  };
}

/** How a login ended at the authorization server. */
export type Revocation = "revoked" | "unsupported" | "failed";

/** Ends a login: forgets it here first, then has its tokens revoked (RFC 7009). Nothing where nobody is logged in. */
export async function logOut(
  kept: LoginKept,
  { serverUrl, fetch }: { readonly serverUrl: URL; readonly fetch: Fetch },
): Promise<Revocation | undefined> {
  const stored = await kept.exclusive(async () => {
    const found = await kept.load();
    await kept.remove();
    return found;
  });
  if (stored === undefined) return undefined;
  const memory = createMemoryTokenStore();
  await memory.save(stored);
  return await revoke(createOAuthStore({ redirectUrl: DEVICE_REDIRECT, tokens: memory }), {
    found: foundIn(stored),
    fetch: namedFetch(fetch, serverUrl),
  });
}

/** Has the tokens of a login revoked, the one that others are had for first. */
async function revoke(
  store: OAuthStore,
  { found, fetch }: { readonly found: DiscoveredServer | undefined; readonly fetch: Fetch },
): Promise<Revocation> {
  const at = found && { issuer: found.server.issuer };
  const client: OAuthClientInformation | undefined = at && (await store.clientInformation(at));
  const tokens = at && (await store.tokens(at));
  if (found === undefined || at === undefined || client === undefined || tokens === undefined)
    return "unsupported";
  if (found.server.revocation_endpoint === undefined) return "unsupported";
  const { server } = found;
  let isRevoked = false;
  try {
    for (const token of [tokens.refresh_token, tokens.access_token]) {
      if (token === undefined) continue;
      const auth = clientAuthOf(store, { server, client, at });
      const response = await revocationRequest(
        server,
        { client_id: client.client_id },
        auth,
        token,
        plainOptions(fetch),
      );
      await processRevocationResponse(response);
      isRevoked = true;
    }
    return "revoked";
  } catch {
    // Access tokens that servers check by themselves cannot be revoked: they go with the one that others are had for.
    return isRevoked ? "revoked" : "failed";
  }
}
