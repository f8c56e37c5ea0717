import { CallError } from "../../core/errors/errors.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import { type HttpAuthorizer, SignInError } from "./http-authorizer.ts";
import { LOOPBACK } from "./http-options.ts";
import type { Fetch } from "./oauth-discovery.ts";
import { signIn } from "./oauth-flow.ts";
import type { OAuthStore } from "./oauth-store.ts";

/** What the tokens are for, and how to reach whoever gives them. */
export interface OAuthTarget {
  readonly serverUrl: URL;
  readonly fetch: Fetch;
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
  return response.status === 403 && readChallenge(response).get("error") === "insufficient_scope";
}

/** Gets and renews tokens for one server; many requests that are refused at once share one renewal, which may be good only once. */
export function createOAuthAuthorizer(store: OAuthStore, target: OAuthTarget): HttpAuthorizer {
  const { serverUrl } = target;
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
  const fetch: Fetch = (to, init) =>
    fetchNamed(target.fetch, serverUrl, to, { ...init, signal: AbortSignal.timeout(ANSWER_MS) });
  const authorize = (metadata: string | undefined, scope: string | undefined, isWider: boolean) => {
    const named = metadata === undefined ? undefined : parseUrl(metadata);
    const resourceMetadataUrl = named !== undefined && mayAsk(named, serverUrl) ? named : undefined;
    return signIn(store, { serverUrl, fetch, resourceMetadataUrl, scope, isWider });
  };
  return {
    token: async () => (await store.tokens())?.access_token,
    onUnauthorized: async (refusal) => {
      if ((await isOutdated(refusal)) && renewal === undefined) return;
      const isAuthorized = await share(async () => {
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
        store.widenScope?.(scope);
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
function readChallenge(response: Response): ReadonlyMap<string, string> {
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
function union(...scopes: readonly (string | undefined)[]): string {
  return [...new Set(scopes.flatMap((scope) => scope?.match(/\S+/g) ?? []))].join(" ");
}

/** A client that stands for itself asks for its own scope every time. */
function ownScope({ redirectUrl, clientMetadata }: OAuthStore): string | undefined {
  return redirectUrl === undefined ? clientMetadata.scope : undefined;
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
async function fetchNamed(fetch: Fetch, server: URL, to: string | URL, init: RequestInit): Promise<Response> {
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
