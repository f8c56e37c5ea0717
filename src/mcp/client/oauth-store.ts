import { randomBytes, timingSafeEqual } from "node:crypto";
import { type OAuthClientProvider, UnauthorizedError } from "@modelcontextprotocol/client";
import { createMemoryTokenStore, type StoredAuthorization, type TokenStore } from "./token-store.ts";

/** What a person's consent came back with. */
export interface OAuthGrant {
  readonly code: string;
  readonly iss?: string | undefined;
}

/** An OAuth provider of the SDK that also hands over a consent given while it waited. */
export interface OAuthStore extends OAuthClientProvider {
  /** The grant of the last `onAuthorize`, once. */
  takeGrant?(): OAuthGrant | undefined;
}

/** Settings of `createOAuthStore`: a person who consents, or a client that stands for itself. */
export interface OAuthStoreOptions {
  /** @default in memory */
  readonly tokens?: TokenStore | undefined;
  /** @default registered with the authorization server */
  readonly clientId?: string | undefined;
  /** @default none */
  readonly clientSecret?: string | undefined;
  /** @default what the server asks for */
  readonly scope?: string | undefined;
  /** @default "Waybill" */
  readonly clientName?: string | undefined;
  /** Where the authorization server sends the person back to; without it the client stands for itself (client credentials). */
  readonly redirectUrl?: string | undefined;
  /**
   * Sends the person to the address. Resolves with the address they came back on, so that the connection goes on at once, or
   * with nothing: the connection then fails with `UNAUTHENTICATED`.
   */
  readonly onAuthorize?: ((url: URL) => Promise<string | undefined>) | undefined;
}

const KINDS = { all: ["client", "tokens", "discovery", "verifier"] } as const;

/** Creates the OAuth side of a connection, with tokens that outlive it where the store does. */
export function createOAuthStore(options: OAuthStoreOptions): OAuthStore {
  const { redirectUrl, clientId, clientSecret, scope } = options;
  if (redirectUrl === undefined && (clientId === undefined || clientSecret === undefined)) {
    throw new TypeError("Without a redirectUrl, OAuth needs a clientId and a clientSecret.");
  }
  const kept = createKept(options.tokens ?? createMemoryTokenStore());
  let state: string | undefined;
  let grant: OAuthGrant | undefined;
  return {
    redirectUrl,
    clientMetadata: toClientMetadata(options),
    state: () => {
      state = randomBytes(24).toString("base64url");
      return state;
    },
    clientInformation: async () => {
      const known = (await kept.get("client")) as { client_id: string } | undefined;
      if (clientId === undefined) return known as never;
      // Which authorization server it was used with is remembered; the secret is not written down.
      const stamped = known?.client_id === clientId ? known : { client_id: clientId };
      return { ...stamped, ...(clientSecret === undefined ? {} : { client_secret: clientSecret }) };
    },
    saveClientInformation: ({ client_secret, ...client }) =>
      kept.set("client", clientId === undefined ? { ...client, client_secret } : client),
    tokens: async () => (await kept.get("tokens")) as never,
    saveTokens: (tokens) => kept.set("tokens", tokens),
    saveCodeVerifier: (verifier) => kept.set("verifier", verifier),
    codeVerifier: async () => String(await kept.get("verifier")),
    discoveryState: async () => (await kept.get("discovery")) as never,
    saveDiscoveryState: (discovery) => kept.set("discovery", discovery),
    invalidateCredentials: (what) => kept.drop(what === "all" ? KINDS.all : [what]),
    redirectToAuthorization: async (url) => {
      const back = await options.onAuthorize?.(url);
      grant = back === undefined ? undefined : readGrant(back, state);
    },
    takeGrant: () => {
      const taken = grant;
      grant = undefined;
      return taken;
    },
    ...(redirectUrl === undefined ? { prepareTokenRequest: toClientCredentials(scope) } : {}),
  };
}

function toClientMetadata({ redirectUrl, clientName, clientSecret, scope }: OAuthStoreOptions) {
  return {
    client_name: clientName ?? "Waybill",
    redirect_uris: redirectUrl === undefined ? [] : [redirectUrl],
    grant_types: redirectUrl === undefined ? ["client_credentials"] : ["authorization_code", "refresh_token"],
    token_endpoint_auth_method: clientSecret === undefined ? "none" : "client_secret_basic",
    ...(scope === undefined ? {} : { scope }),
  };
}

function toClientCredentials(own: string | undefined) {
  return (scope?: string): URLSearchParams => {
    const params = new URLSearchParams({ grant_type: "client_credentials" });
    const wanted = own ?? scope;
    if (wanted !== undefined && wanted !== "") params.set("scope", wanted);
    return params;
  };
}

/** Reads the address a person came back on; one with another state was not asked for by this client. */
function readGrant(back: string, state: string | undefined): OAuthGrant {
  const params = new URL(back, "http://localhost").searchParams;
  const code = params.get("code");
  if (!isSame(params.get("state") ?? "", state ?? "")) {
    throw new UnauthorizedError("The authorization came back with another state than it was asked with.");
  }
  if (code === null) throw new UnauthorizedError("The authorization came back without a code.");
  return { code, iss: params.get("iss") ?? undefined };
}

function isSame(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && left.length > 0 && timingSafeEqual(left, right);
}

/** One record in a store, changed field by field and in order. */
function createKept(store: TokenStore) {
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(run: () => Promise<T>): Promise<T> => {
    const next = last.catch(() => {}).then(run);
    last = next;
    return next;
  };
  const change = (edit: (record: Record<string, unknown>) => void) =>
    inTurn(async () => {
      const record: Record<string, unknown> = { ...(await store.load()) };
      edit(record);
      await store.save(record satisfies StoredAuthorization);
    });
  return {
    get: (key: string) => inTurn(async () => (await store.load())?.[key]),
    set: (key: string, value: unknown) =>
      change((record) => {
        record[key] = value;
      }),
    drop: (keys: readonly string[]) =>
      change((record) => {
        for (const key of keys) delete record[key];
      }),
  };
}
