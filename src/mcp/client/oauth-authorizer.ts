import {
  type AuthProvider,
  auth,
  computeScopeUnion,
  extractWWWAuthenticateParams,
  type FetchLike,
  isStrictScopeSuperset,
  UnauthorizedError,
} from "@modelcontextprotocol/client";
import { CallError } from "../../core/errors/errors.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import { LOOPBACK } from "./http-options.ts";
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
/** Redirects of one answer that are followed. */
const REDIRECTS = 5;

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

/**
 * Decides whether a server may have a request sent to an address that it names, or that whoever it names does: to its own origin,
 * over https to other machines, and to this machine where it is there itself.
 */
function mayAsk(target: URL, server: URL): boolean {
  if (target.origin === server.origin) return true;
  if (LOOPBACK.test(target.hostname)) return LOOPBACK.test(server.hostname);
  // Plain http to another machine is what `allowHttp` allows.
  return target.protocol === "https:" || (server.protocol === "http:" && !LOOPBACK.test(server.hostname));
}

/** Sends a request to an address that a server named; redirects of what only reads are followed one by one, and looked at as well. */
async function fetchNamed(
  fetch: FetchLike,
  server: URL,
  to: string | URL,
  init: RequestInit,
): Promise<Response> {
  let target = new URL(String(to));
  for (let hops = 0; ; hops++) {
    if (!mayAsk(target, server)) {
      const message = `The server names ${target.host} for its authorization, but may have requests sent https alone, and to other machines than this one.`;
      throw new CallError("ACCESS_DENIED", message, { details: { host: target.host } });
    }
    const isRead = (init.method ?? "GET").toUpperCase() === "GET";
    const response = await fetch(target, { ...init, redirect: isRead ? "manual" : "error" });
    const location = response.headers.get("location");
    const next = location === null ? undefined : parseUrl(location, target);
    if (response.status < 300 || response.status > 399 || next === undefined || hops >= REDIRECTS)
      return response;
    await response.body?.cancel().catch(() => {});
    target = next;
  }
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
  const resourceMetadataUrl = named !== undefined && mayAsk(named, serverUrl) ? named : undefined;
  const options = {
    serverUrl,
    fetchFn: ((to, init) =>
      fetchNamed(fetch, serverUrl, to, {
        ...init,
        signal: init?.signal ?? AbortSignal.timeout(ANSWER_MS),
      })) satisfies FetchLike,
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
