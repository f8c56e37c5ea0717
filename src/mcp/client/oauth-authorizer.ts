import {
  type AuthProvider,
  auth,
  computeScopeUnion,
  extractWWWAuthenticateParams,
  type FetchLike,
  isStrictScopeSuperset,
  UnauthorizedError,
} from "@modelcontextprotocol/client";
import type { OAuthStore } from "./oauth-store.ts";

/** Gets, renews and widens tokens for one server. */
export interface OAuthAuthorizer extends AuthProvider {
  /**
   * Asks for the scopes that a refusal names beside those there are. True when the request is worth another try; false when
   * nobody consented, or when what is missing was asked for before.
   */
  widen(refusal: Response): Promise<boolean>;
  /** A request was served after its token was widened. */
  noteServed(): void;
}

/** What the tokens are for, and how to reach whoever gives them. */
export interface OAuthTarget {
  readonly serverUrl: URL;
  readonly fetch: FetchLike;
}

/** How often scopes are asked for that then do not help, before the server is believed to want ever more. */
const VAIN_WIDENINGS = 2;
/** Milliseconds for one answer of an authorization server: everybody waits for a renewal. */
const ANSWER_MS = 30_000;

/** The `Authorization` that each refused request was sent with. */
const sentWith = new WeakMap<Response, string>();

/** Remembers what a refused request was sent with, so that a token is renewed once however late the refusals come in. */
export function noteRefusal(response: Response, authorization: string | null): void {
  if ((response.status === 401 || response.status === 403) && authorization !== null) {
    sentWith.set(response, authorization);
  }
}

/** Tells whether a server refuses a token because its scope is not enough. */
export function isTooNarrow(response: Response): boolean {
  return response.status === 403 && extractWWWAuthenticateParams(response).error === "insufficient_scope";
}

/** Gets and renews tokens for one server; many requests that are refused at once share one renewal, which may be good only once. */
export function createOAuthAuthorizer(store: OAuthStore, target: OAuthTarget): OAuthAuthorizer {
  let renewal: Promise<boolean> | undefined;
  /** Scopes that were asked for beyond those of the first consent; a server need not say which it gave. */
  let widened: string | undefined;
  let vain = 0;
  const share = (run: () => Promise<boolean>): Promise<boolean> => {
    renewal ??= run().finally(() => {
      renewal = undefined;
    });
    return renewal;
  };
  const isOutdated = async (refusal: Response): Promise<boolean> => {
    const used = sentWith.get(refusal);
    const now = (await store.tokens())?.access_token;
    return used !== undefined && now !== undefined && used !== `Bearer ${now}`;
  };
  return {
    token: async () => (await store.tokens())?.access_token,
    onUnauthorized: async ({ response }) => {
      if ((await isOutdated(response)) && renewal === undefined) return;
      const isAuthorized = await share(async () => {
        // The server may have moved to another authorization server since.
        await store.invalidateCredentials?.("discovery");
        const outcome = await authorize(store, target, response, {});
        if (outcome === "consented") widened = undefined;
        return outcome !== "nobody";
      });
      if (!isAuthorized) throw new UnauthorizedError("The person has to authorize this client first.");
    },
    widen: async (refusal) => {
      const isLate = await isOutdated(refusal);
      const has = computeScopeUnion(widened, (await store.tokens())?.scope);
      if (renewal !== undefined) return await renewal;
      if (isLate) return true;
      const scope = computeScopeUnion(has, ownScope(store), extractWWWAuthenticateParams(refusal).scope);
      if (scope === undefined || !isStrictScopeSuperset(scope, has) || vain >= VAIN_WIDENINGS) return false;
      return await share(async () => {
        vain += 1;
        store.widenScope?.(scope);
        if ((await authorize(store, target, refusal, { scope, forceReauthorization: true })) === "nobody")
          return false;
        widened = scope;
        return true;
      });
    },
    noteServed: () => {
      vain = 0;
    },
  };
}

/** A client that stands for itself asks for its own scope every time. */
function ownScope({ redirectUrl, clientMetadata }: OAuthStore): string | undefined {
  return redirectUrl === undefined ? clientMetadata.scope : undefined;
}

async function authorize(
  store: OAuthStore,
  { serverUrl, fetch }: OAuthTarget,
  refusal: Response,
  more: { readonly scope?: string; readonly forceReauthorization?: boolean },
): Promise<"renewed" | "consented" | "nobody"> {
  const { resourceMetadataUrl: named, scope } = extractWWWAuthenticateParams(refusal);
  // A server must not have requests sent to wherever it likes from here.
  const isOwn = named?.origin === serverUrl.origin || named?.protocol === "https:";
  const resourceMetadataUrl = isOwn ? named : undefined;
  const options = {
    serverUrl,
    fetchFn: ((to, init) =>
      fetch(to, { ...init, signal: init?.signal ?? AbortSignal.timeout(ANSWER_MS) })) satisfies FetchLike,
    ...(resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }),
    ...(scope === undefined ? {} : { scope }),
    ...more,
  };
  if ((await auth(store, options)) === "AUTHORIZED") return "renewed";
  const grant = store.takeGrant?.();
  if (grant === undefined) return "nobody";
  const { code: authorizationCode, iss } = grant;
  const given = { ...options, authorizationCode, ...(iss === undefined ? {} : { iss }) };
  if ((await auth(store, given)) !== "AUTHORIZED") throw new UnauthorizedError("The authorization failed.");
  return "consented";
}
