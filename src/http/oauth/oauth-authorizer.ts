import { CallError } from "../../core/errors/errors.ts";
import { monotonicNow } from "../../core/execution/cancellation.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import { LOOPBACK } from "../address-guard.ts";
import type { DpopKey } from "./dpop-key.ts";
import type { Fetch } from "./oauth-discovery.ts";
import { signIn } from "./oauth-flow.ts";
import { loginIn, type OAuthStore, type OAuthTokens } from "./oauth-store.ts";

interface OAuthTarget {
  readonly serverUrl: URL;
  readonly fetch: Fetch;
}

/** How often scopes are asked for that then do not help, before the server is believed to want ever more. */
const VAIN_WIDENINGS = 2;
/** Milliseconds for one answer of an authorization server: everybody waits for a renewal. */
const ANSWER_MS = 30_000;
/** Milliseconds before its end at which the token of a login is renewed. */
const EARLY_MS = 10_000;
/** Milliseconds for which a renewal that failed answers for the next calls too. */
const FAILURE_HOLDS_MS = 1_000;
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
  return response.status === 403 && readChallenge(response).get("error") === "insufficient_scope";
}

/** Gets and renews tokens for one server; many requests that are refused at once share one renewal, which may be good only once. */
export function createOAuthAuthorizer(store: OAuthStore, target: OAuthTarget): HttpAuthorizer {
  const { serverUrl } = target;
  let renewal: Promise<boolean> | undefined;
  /** Scopes that were asked for beyond those of the first consent; a server need not say which it gave. */
  let widened: string | undefined;
  let vain = 0;
  const login = loginIn(store);
  const share = (run: () => Promise<boolean>): Promise<boolean> => {
    renewal ??= (login === undefined ? run() : login.exclusive(run)).finally(() => {
      renewal = undefined;
    });
    return renewal;
  };
  const isReplaced = async (used: string | undefined): Promise<boolean> => {
    const now = (await store.tokens())?.access_token;
    return used !== undefined && now !== undefined && used !== now;
  };
  const isOutdated = (refusal: Response): Promise<boolean> =>
    isReplaced(sentWith.get(refusal)?.replace(/^(?:Bearer|DPoP) /, ""));
  /** Renews a login that ends soon; where that cannot be, the token is sent as long as there is one. */
  const renewInTime = async (): Promise<OAuthTokens | undefined> => {
    const tokens = await store.tokens();
    const { access_token: used, expires_at: end, refresh_token: next } = tokens ?? {};
    if (login === undefined || end === undefined || next === undefined || Date.now() + EARLY_MS < end)
      return tokens;
    await renewUsed(used).catch(() => false);
    return await store.tokens();
  };
  let failure: { readonly thrown: unknown; readonly until: number } | undefined;
  const renewUsed = (used: string | undefined): Promise<boolean> =>
    share(async () => {
      if (await isReplaced(used)) return true;
      // What could not be had a moment ago is not asked for by every call.
      if (failure !== undefined && monotonicNow() < failure.until) throw failure.thrown;
      try {
        return (await authorize(undefined, undefined, false)) !== "nobody";
      } catch (thrown) {
        failure = { thrown, until: monotonicNow() + FAILURE_HOLDS_MS };
        throw thrown;
      }
    });
  const fetch = namedFetch(target.fetch, serverUrl);
  const authorize = (metadata: string | undefined, scope: string | undefined, isWider: boolean) => {
    const named = metadata === undefined ? undefined : parseUrl(metadata);
    const resourceMetadataUrl = named !== undefined && mayAsk(named, serverUrl) ? named : undefined;
    return signIn(store, { serverUrl, fetch, resourceMetadataUrl, scope, isWider });
  };
  return {
    dpopKey: store.dpopKey,
    token: async () => (await renewInTime())?.access_token,
    renew: async (used) => {
      if (renewal === undefined && (await isReplaced(used))) return (await store.tokens())?.access_token;
      return (await renewUsed(used)) ? (await store.tokens())?.access_token : undefined;
    },
    onUnauthorized: async (refusal) => {
      if ((await isOutdated(refusal)) && renewal === undefined) return;
      const isAuthorized = await share(async () => {
        if (login !== undefined && (await isOutdated(refusal))) return true;
        const challenge = readChallenge(refusal);
        const outcome = await authorize(challenge.get("resource_metadata"), challenge.get("scope"), false);
        if (outcome === "consented") widened = undefined;
        return outcome !== "nobody";
      });
      if (!isAuthorized) {
        throw new SignInError("consent_needed", "The person has to authorize this client first.");
      }
    },
    widen: async (refusal) => {
      const isLate = await isOutdated(refusal);
      const has = union(widened, (await store.tokens())?.scope);
      if (renewal !== undefined) return await renewal;
      if (isLate) return true;
      const challenge = readChallenge(refusal);
      const scope = union(has, ownScope(store), challenge.get("scope"));
      if (scope === has || vain >= VAIN_WIDENINGS) return false;
      return await share(async () => {
        vain += 1;
        await store.widenScope?.(scope);
        const known = (await store.discoveryState?.())?.resourceMetadataUrl;
        if ((await authorize(challenge.get("resource_metadata") ?? known, scope, true)) === "nobody")
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

/** The parameters of a `Bearer` challenge, or of one for tokens that are bound to a key; the first of a name counts. */
export function readChallenge(response: Response): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  let isMeant = false;
  for (const part of (response.headers.get("www-authenticate") ?? "").matchAll(CHALLENGE_PART)) {
    const [, separator = "", name = "", quoted, plain] = part;
    const value = quoted?.replace(/\\(.)/g, "$1") ?? plain;
    if (value === undefined) {
      // A word between commas begins the next challenge; any other belongs to a value that somebody forgot to quote.
      if (part.index === 0 || separator.includes(",")) isMeant = /^(?:bearer|dpop)$/i.test(name);
    } else if (isMeant && value !== "" && !found.has(name.toLowerCase())) {
      found.set(name.toLowerCase(), value);
    }
  }
  return found;
}

/** A name alone, or with a value. */
const CHALLENGE_PART = /([\s,]*)([^\s,="]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+)))?/g;

/** Every scope once, in the order in which they first come. */
export function union(...scopes: readonly (string | undefined)[]): string {
  return [...new Set(scopes.flatMap((scope) => scope?.match(/\S+/g) ?? []))].join(" ");
}

/** A client that stands for itself asks for its own scope every time. */
function ownScope({ redirectUrl, clientMetadata }: OAuthStore): string | undefined {
  return redirectUrl === undefined ? clientMetadata.scope : undefined;
}

/**
 * Decides whether a server may have a request sent to an address that it names, or that a server it names does: to its own origin,
 * over https to other machines, and to this machine where it is there itself.
 */
export function mayAsk(target: URL, server: URL): boolean {
  if (target.origin === server.origin) return true;
  if (LOOPBACK.test(target.hostname)) return LOOPBACK.test(server.hostname);
  // Plain http to another machine is what `allowHttp` allows.
  return target.protocol === "https:" || (server.protocol === "http:" && !LOOPBACK.test(server.hostname));
}

/** Makes what sends requests to addresses that a server named: within bounds, and only where it may have them sent. */
export function namedFetch(fetch: Fetch, serverUrl: URL): Fetch {
  const bounds = { fetch, server: serverUrl };
  return (to, init) => fetchNamed(bounds, to, { ...init, signal: AbortSignal.timeout(ANSWER_MS) });
}

/** Sends a request to an address that a server named; redirects of what only reads are followed one by one, and looked at as well. */
async function fetchNamed(
  { fetch, server }: { readonly fetch: Fetch; readonly server: URL },
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

/** Gets, renews and widens tokens for one MCP server. */
export interface HttpAuthorizer {
  /** Gets the key that tokens are bound to; nothing where they are not. */
  readonly dpopKey: (() => Promise<DpopKey>) | undefined;
  /** The access token to send, if there is one. */
  token(): Promise<string | undefined>;
  /** Gets another token than one that was refused; nothing where a person has to sign in first. */
  renew(used: string | undefined): Promise<string | undefined>;
  /** Gets a token that works after a 401; rejects with a `CallError`, or with a `SignInError` such as that a person must sign in first. */
  onUnauthorized(refusal: Response): Promise<void>;
  /** After a 403 with `insufficient_scope`: asks for the scopes that the refusal names. True when the request is worth another try. */
  widen(refusal: Response): Promise<boolean>;
  /** A request was served after its token was widened. */
  noteServed(): void;
}

/** Why there is no token that the server takes. */
type SignInReason =
  /** A person has to sign in first. */
  | "consent_needed"
  /** The server does not take the token that the application gave. */
  | "token_refused"
  /** The authorization server answered with an OAuth error. */
  | "refused"
  /** The authorization server is not the one it says it is, or not the one that the client belongs to. */
  | "wrong_issuer"
  /** Tokens would travel in the clear, or be good for another server than this one. */
  | "unsafe"
  /** The authorization server cannot do what is needed, or its answer cannot be used. */
  | "unusable"
  /** The authorization server failed, and may work later. */
  | "unavailable";

/** There is no token that the server takes. Its message is in our own words and shows no secret. */
export class SignInError extends Error {
  override readonly name = "SignInError";
  readonly reason: SignInReason;
  /** What the authorization server answered with, where it is an error code of OAuth. */
  readonly oauthError: string | undefined;

  constructor(reason: SignInReason, message: string, oauthError?: string) {
    super(message);
    this.reason = reason;
    this.oauthError = oauthError;
  }
}
